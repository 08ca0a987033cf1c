// Reads and writes at a position (pread, pwrite, ...). They are for regular files, and never wait for data or room, but may
// wait for the disk: with the option `files` they run on the pool for blocking calls. At the position -1, preadv2() and pwritev2()
// are readv() and writev() with flags, of all kinds of files.
#include <sys/uio.h>
#include <unistd.h>

#include "hook/descriptors.hpp"
#include "hook/next.hpp"

extern "C" {
// NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming)
ssize_t __pread_chk(int number, void* into, std::size_t size, off_t at, std::size_t room);
ssize_t __pread64_chk(int number, void* into, std::size_t size, off64_t at, std::size_t room);
// NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming)
}

namespace weft::detail {
namespace {

WEFT_HOOK_NEXT(pread);
WEFT_HOOK_NEXT(pread64);
WEFT_HOOK_NEXT(pwrite);
WEFT_HOOK_NEXT(pwrite64);
WEFT_HOOK_NEXT(preadv);
WEFT_HOOK_NEXT(preadv64);
WEFT_HOOK_NEXT(pwritev);
WEFT_HOOK_NEXT(pwritev64);
WEFT_HOOK_NEXT(preadv2);
WEFT_HOOK_NEXT(preadv64v2);
WEFT_HOOK_NEXT(pwritev2);
WEFT_HOOK_NEXT(pwritev64v2);
WEFT_HOOK_NEXT(__pread_chk);
WEFT_HOOK_NEXT(__pread64_chk);

template <class Plain>
ssize_t positional(Plain plain) noexcept {
  const hooked_call call{&weft::hook_options::files};
  if (!call) return plain();
  return call.is_stopped() ? call.give(plain()) : run_on_pool(call, plain);
}

// Flags that mean nothing where there is no disk.
constexpr int for_disks = RWF_HIPRI | RWF_DSYNC | RWF_SYNC | RWF_APPEND;

// preadv2() or pwritev2(). at_its_own() makes the hooked call without position and flags. With RWF_NOWAIT a call never waits; with
// any other flag that is not for disks, as RWF_NOSIGNAL, it blocks the thread. So it does with those for disks, but for RWF_HIPRI,
// on what is neither a regular file, nor a socket or pipe: some of these refuse them.
template <class Plain, class AtItsOwn>
ssize_t with_flags(int number, off64_t at, int flags, Plain plain, AtItsOwn at_its_own) noexcept {
  if (hooks_here() == nullptr || (flags & RWF_NOWAIT) != 0) return plain();
  if (at != -1) return positional(plain);
  if (flags == 0) return at_its_own();
  const file_kind kind = kind_of(number);
  if (kind == file_kind::regular) return positional(plain);
  const int ignored = kind == file_kind::socket || kind == file_kind::pipe ? for_disks : RWF_HIPRI;
  return (flags & ~ignored) == 0 ? at_its_own() : plain();
}

}  // namespace

extern const char hooks_files;
const char hooks_files = 0;  // makes the linker include this file; see all_sources in fiber_hooks.cpp

}  // namespace weft::detail

using namespace weft::detail;  // NOLINT(google-build-using-namespace): the hooks below belong to weft

extern "C" {

ssize_t pread(int number, void* into, std::size_t size, off_t at) {
  return positional([&] { return next_pread(number, into, size, at); });
}
ssize_t pread64(int number, void* into, std::size_t size, off64_t at) {
  return positional([&] { return next_pread64(number, into, size, at); });
}
ssize_t pwrite(int number, const void* data, std::size_t size, off_t at) {
  return positional([&] { return next_pwrite(number, data, size, at); });
}
ssize_t pwrite64(int number, const void* data, std::size_t size, off64_t at) {
  return positional([&] { return next_pwrite64(number, data, size, at); });
}
ssize_t preadv(int number, const iovec* parts, int count, off_t at) {
  return positional([&] { return next_preadv(number, parts, count, at); });
}
ssize_t preadv64(int number, const iovec* parts, int count, off64_t at) {
  return positional([&] { return next_preadv64(number, parts, count, at); });
}
ssize_t pwritev(int number, const iovec* parts, int count, off_t at) {
  return positional([&] { return next_pwritev(number, parts, count, at); });
}
ssize_t pwritev64(int number, const iovec* parts, int count, off64_t at) {
  return positional([&] { return next_pwritev64(number, parts, count, at); });
}
ssize_t preadv2(int number, const iovec* parts, int count, off_t at, int flags) {
  return with_flags(
      number, at, flags, [&] { return next_preadv2(number, parts, count, at, flags); },
      [&] { return readv(number, parts, count); });
}
ssize_t preadv64v2(int number, const iovec* parts, int count, off64_t at, int flags) {
  return with_flags(
      number, at, flags, [&] { return next_preadv64v2(number, parts, count, at, flags); },
      [&] { return readv(number, parts, count); });
}
ssize_t pwritev2(int number, const iovec* parts, int count, off_t at, int flags) {
  return with_flags(
      number, at, flags, [&] { return next_pwritev2(number, parts, count, at, flags); },
      [&] { return writev(number, parts, count); });
}
ssize_t pwritev64v2(int number, const iovec* parts, int count, off64_t at, int flags) {
  return with_flags(
      number, at, flags, [&] { return next_pwritev64v2(number, parts, count, at, flags); },
      [&] { return writev(number, parts, count); });
}
// NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming): names that -D_FORTIFY_SOURCE calls
ssize_t __pread_chk(int number, void* into, std::size_t size, off_t at, std::size_t room) {
  return size > room ? next___pread_chk(number, into, size, at, room) : pread(number, into, size, at);
}
ssize_t __pread64_chk(int number, void* into, std::size_t size, off64_t at, std::size_t room) {
  return size > room ? next___pread64_chk(number, into, size, at, room) : pread64(number, into, size, at);
}
// NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming)

}  // extern "C"
