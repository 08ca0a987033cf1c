// Whether a ring or a thread makes a system call on a file, and the error if it fails.
#pragma once

#include <string_view>
#include <system_error>
#include <weft/error.hpp>
#include <weft/task.hpp>

#include "core/turns.hpp"
#include "io/ring_call.hpp"

namespace weft::detail {

/// Makes the call by the ring of the worker that runs the task, or else by a thread of the blocking pool. Gives its result, or a
/// negative error number. `what` and all that it refers to outlive the task. A stop abandons a thread that opens a file which is
/// there already; it waits for the other calls of threads.
task<int> perform_elsewhere(const file_request& what);

/// Of a call that has failed on a file, which is recorded.
inline error file_error(int refused, const char* operation, std::string_view subject = {}, int number = -1) {
  record_io_error(refused, number, operation);
  return error{std::error_code{refused, std::generic_category()}, operation, subject};
}

}  // namespace weft::detail
