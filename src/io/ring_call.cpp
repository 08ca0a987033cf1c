#include "io/ring_call.hpp"

#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>

namespace weft::detail {
namespace {

ssize_t call(const file_request& of, int flag) noexcept {
  using kind = file_request::kind;
  const auto at = static_cast<off_t>(of.offset);
  const auto* const parts = static_cast<const iovec*>(of.memory);
  switch (of.what) {
    case kind::read: return ::preadv2(of.number, parts, static_cast<int>(of.count), at, flag);
    case kind::write: return ::pwritev2(of.number, parts, static_cast<int>(of.count), at, flag);
    case kind::append: return ::pwritev2(of.number, parts, static_cast<int>(of.count), 0, RWF_APPEND | flag);
    case kind::sync: return ::fsync(of.number);
    case kind::sync_data: return ::fdatasync(of.number);
    case kind::allocate: return ::fallocate(of.number, 0, at, static_cast<off_t>(of.size));
    case kind::truncate: return ::ftruncate(of.number, static_cast<off_t>(of.size));
    case kind::open: return ::openat(AT_FDCWD, of.path, of.flags, of.permissions);
    case kind::close: return ::close(of.number) == 0 || errno == EINTR ? 0 : -1;  // after EINTR it is closed, too
    case kind::stat:
      return ::statx(of.number, "", AT_EMPTY_PATH, STATX_BASIC_STATS, static_cast<struct statx*>(of.memory));
    case kind::lock: return ::fcntl(of.number, F_OFD_SETLK, of.memory);
  }
  return (errno = EINVAL, -1);
}

int result_of(const file_request& of, int flag) noexcept {
  ssize_t got;
  do got = call(of, flag);
  while (got < 0 && errno == EINTR && of.what != file_request::kind::close);
  return got < 0 ? -errno : static_cast<int>(got);
}

}  // namespace

int perform(const file_request& what) noexcept { return result_of(what, 0); }
int perform_at_once(const file_request& what) noexcept { return result_of(what, RWF_NOWAIT); }

on_stop ring_call::leave(waiter& self) noexcept {
  auto& mine = static_cast<ring_call&>(self);
  mine.of->cancel(mine);
  return on_stop::forwarded;
}

void ring_call::end() noexcept {
  finish(is_cancelled && (result == -ECANCELED || result == -EINTR) ? wake_up::stopped : wake_up::completed);
}

}  // namespace weft::detail
