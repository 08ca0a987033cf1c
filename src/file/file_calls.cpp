#include "file/file_calls.hpp"

#include <fcntl.h>

#include <cerrno>
#include <string>
#include <utility>
#include <weft/blocking.hpp>
#include <weft/env.hpp>
#include <weft/executor.hpp>

#include "file/owned_number.hpp"
#include "io/io_service.hpp"

namespace weft::detail {
namespace {

call_ring* ring_here() noexcept {
  const executor* const where = current_env().executor;
  io_service* const its = where != nullptr ? where->io() : nullptr;
  return its != nullptr ? its->ring_here() : nullptr;
}

// Whether a thread must make the call after this result of a ring: the ring can't make it, or was interrupted. A close is never
// made again: it has closed the number whatever its result is.
bool is_for_thread(const file_request& what, int result) noexcept {
  constexpr int interrupted = 512;  // ERESTARTSYS: an open that had to wait; rings do not translate it
  if (what.what == file_request::kind::close) return false;
  return result == -EAGAIN || result == -EINTR || result == -interrupted || result == -ECANCELED ||
         result == -EOPNOTSUPP;
}

int perform_one(const file_request* what) noexcept { return perform(*what); }

// Whether a stop may abandon the call. An open that makes or empties a file could do so when its caller has gone on, and perhaps
// written the file anew.
bool may_be_abandoned(const file_request& what) noexcept {
  return what.what == file_request::kind::open && (what.flags & (O_CREAT | O_TRUNC)) == 0;
}
// Gives a number, which is closed if the call was abandoned; or a negative error number.
owned_number open_one(const std::string& path, int flags, unsigned permissions) noexcept {
  return owned_number{
      perform({.what = file_request::kind::open, .path = path.c_str(), .flags = flags, .permissions = permissions})};
}

}  // namespace

task<int> perform_elsewhere(const file_request& what) {
  if (call_ring* const ring = what.is_for_ring() ? ring_here() : nullptr; ring != nullptr) {
    ring_call call{what};
    ring_wait wait{call, *ring};
    if (co_await wait && !is_for_thread(what, call.result)) co_return call.result;
  }
  if (may_be_abandoned(what)) {
    auto opening = blocking(abandon_on_stop, open_one, std::string{what.path}, what.flags, what.permissions);
    owned_number opened = co_await std::move(opening);
    co_return opened.give();
  }
  co_return co_await blocking(perform_one, &what);
}

}  // namespace weft::detail
