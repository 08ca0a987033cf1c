#include "file/file_calls.hpp"

#include <cerrno>
#include <weft/blocking.hpp>
#include <weft/env.hpp>
#include <weft/executor.hpp>

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

}  // namespace

task<int> perform_elsewhere(const file_request& what) {
  if (call_ring* const ring = what.is_for_ring() ? ring_here() : nullptr; ring != nullptr) {
    ring_call call{what};
    ring_wait wait{call, *ring};
    if (co_await wait && !is_for_thread(what, call.result)) co_return call.result;
  }
  co_return co_await blocking(perform_one, &what);
}

}  // namespace weft::detail
