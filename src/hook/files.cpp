// Reads and writes at a position (pread, pwrite, ...). They are for regular files, and never wait for data or room, but may
// wait for the disk: with the option `files` they run on the pool for blocking calls.
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
WEFT_HOOK_NEXT(__pread_chk);
WEFT_HOOK_NEXT(__pread64_chk);

template <class Plain>
ssize_t positional(Plain plain) noexcept {
  const hooked_call call{&weft::hook_options::files};
  if (!call) return plain();
  return call.is_stopped() ? call.give(plain()) : run_on_pool(call, plain);
}

}  // namespace

extern const char hooks_files;
const char hooks_files = 0;  // makes the linker include this file; see all_sources in hook.cpp

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
// NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming): names that -D_FORTIFY_SOURCE calls
ssize_t __pread_chk(int number, void* into, std::size_t size, off_t at, std::size_t room) {
  return size > room ? next___pread_chk(number, into, size, at, room) : pread(number, into, size, at);
}
ssize_t __pread64_chk(int number, void* into, std::size_t size, off64_t at, std::size_t room) {
  return size > room ? next___pread64_chk(number, into, size, at, room) : pread64(number, into, size, at);
}
// NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming)

}  // extern "C"
