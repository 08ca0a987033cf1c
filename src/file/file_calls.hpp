// Which way a call about a file goes, and how it fails.
#pragma once

#include <string_view>
#include <system_error>
#include <weft/error.hpp>
#include <weft/task.hpp>

#include "io/ring_call.hpp"

namespace weft::detail {

/// By the ring of the worker that it runs on, or else by a thread that may block: what it gives, or an error number below zero.
/// `what` and all that it refers to stay.
task<int> perform_elsewhere(const file_request& what);

inline error file_error(int refused, const char* operation, std::string_view subject = {}) {
  return error{std::error_code{refused, std::generic_category()}, operation, subject};
}

}  // namespace weft::detail
