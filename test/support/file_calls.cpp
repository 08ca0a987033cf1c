#include "support/file_calls.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/uio.h>

#include <algorithm>
#include <cstdarg>
#include <cstring>
#include <mutex>
#include <unordered_map>
#include <utility>

#ifdef WEFT_WITH_URING
#include <liburing.h>
#endif

// NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming): the linker's names
extern "C" {
ssize_t __real_preadv2(int number, const iovec* parts, int count, off_t offset, int flags);
ssize_t __real_pwritev2(int number, const iovec* parts, int count, off_t offset, int flags);
int __real_fsync(int number);
int __real_fdatasync(int number);
int __real_fallocate(int number, int how, off_t offset, off_t size);
int __real_ftruncate(int number, off_t size);
int __real_openat(int from, const char* path, int flags, ...);
int __real_statx(int from, const char* path, int flags, unsigned what, struct statx* into);
int __real_close(int number);
int __real_fcntl(int number, int what, ...);
int __real_rename(const char* from, const char* to);
}

namespace test {
namespace {

std::atomic<bool> all_wait{false};
std::atomic<std::size_t> handed{0};

int outcome_of(file_call which) noexcept { return file_injection::outcome_of(which); }

std::atomic<bool> are_noted{false};
std::mutex lock_of_notes;
std::vector<noted_call> notes;

void note(file_call what, const struct stat& of) {
  const std::lock_guard guard{lock_of_notes};
  notes.push_back({what, of.st_ino});
}
// A result that is no error has the call noted.
template <class Result>
Result noted(file_call what, int number, Result came) noexcept {
  const int error = errno;
  struct stat of{};
  if (came >= 0 && are_noted && ::fstat(number, &of) == 0) note(what, of);
  errno = error;
  return came;
}

// A move of some parts, or of the first byte of them.
template <class Move>
ssize_t moves(int result, const iovec* parts, int count, Move move) noexcept {
  if (result > 0) return fails_with(result);
  if (result == 0) return move(parts, count);
  for (int i = 0; i != count; ++i)
    if (parts[i].iov_len != 0) {
      const iovec one{.iov_base = parts[i].iov_base, .iov_len = 1};
      return move(&one, 1);
    }
  return move(parts, count);
}

template <class Call>
int does(file_call which, Call call) noexcept {
  const int result = outcome_of(which);
  return result > 0 ? fails_with(result) : call();
}

constexpr const char* names[] = {"none",      "try_read",  "try_write", "read",   "write", "fsync",
                                 "fdatasync", "fallocate", "ftruncate", "openat", "statx", "close",
                                 "lock",      "rename",    "ring",      "submit"};

}  // namespace

const char* name_of(file_call one) noexcept { return names[static_cast<std::size_t>(one)]; }

nothing_at_once::nothing_at_once() noexcept { all_wait = true; }
nothing_at_once::~nothing_at_once() { all_wait = false; }

noted_calls::noted_calls() noexcept {
  notes.clear();
  are_noted = true;
}
noted_calls::~noted_calls() { are_noted = false; }
std::vector<noted_call> noted_calls::so_far() const {  // NOLINT: of this one
  const std::lock_guard guard{lock_of_notes};
  return notes;
}

std::size_t handed_to_rings() noexcept { return handed; }

}  // namespace test

using test::does;
using test::fails_with;
using test::file_call;
using test::moves;
using test::noted;
using test::outcome_of;

extern "C" {

ssize_t __wrap_preadv2(int number, const iovec* parts, int count, off_t offset, int flags) {
  const bool tries = (flags & RWF_NOWAIT) != 0;
  if (tries && test::all_wait) return fails_with(EAGAIN);
  return moves(outcome_of(tries ? file_call::try_read : file_call::read), parts, count,
               [&](const iovec* those, int size) { return __real_preadv2(number, those, size, offset, flags); });
}

ssize_t __wrap_pwritev2(int number, const iovec* parts, int count, off_t offset, int flags) {
  const bool tries = (flags & RWF_NOWAIT) != 0;
  if (tries && test::all_wait) return fails_with(EAGAIN);
  const int result = outcome_of(tries ? file_call::try_write : file_call::write);
  const auto writes = [&](const iovec* those, int size) { return __real_pwritev2(number, those, size, offset, flags); };
  return noted(file_call::write, number, moves(result, parts, count, writes));
}

int __wrap_fsync(int number) {
  return noted(file_call::fsync, number, does(file_call::fsync, [&] { return __real_fsync(number); }));
}
int __wrap_fdatasync(int number) {
  return noted(file_call::fdatasync, number, does(file_call::fdatasync, [&] { return __real_fdatasync(number); }));
}
int __wrap_fallocate(int number, int how, off_t offset, off_t size) {
  return does(file_call::fallocate, [&] { return __real_fallocate(number, how, offset, size); });
}
int __wrap_ftruncate(int number, off_t size) {
  return does(file_call::ftruncate, [&] { return __real_ftruncate(number, size); });
}
int __wrap_openat(int from, const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const unsigned permissions = va_arg(rest, unsigned);
  va_end(rest);
  return does(file_call::openat, [&] { return __real_openat(from, path, flags, permissions); });
}
int __wrap_statx(int from, const char* path, int flags, unsigned what, struct statx* into) {
  return does(file_call::statx, [&] { return __real_statx(from, path, flags, what, into); });
}
// A number is closed whatever comes of it.
int __wrap_close(int number) {
  const int result = outcome_of(file_call::close);
  const int came = __real_close(number);
  return result > 0 ? fails_with(result) : came;
}
int __wrap_fcntl(int number, int what, ...) {
  va_list rest;
  va_start(rest, what);
  const long argument = va_arg(rest, long);
  va_end(rest);
  const bool locks =
      what == F_OFD_SETLK && reinterpret_cast<const struct flock*>(argument)->l_type != F_UNLCK;  // NOLINT
  const int result = locks ? outcome_of(file_call::lock) : 0;
  return result > 0 ? fails_with(result) : __real_fcntl(number, what, argument);
}
int __wrap_rename(const char* from, const char* to) {
  const int came = does(file_call::rename, [&] { return __real_rename(from, to); });
  struct stat of{};
  if (came == 0 && test::are_noted && ::stat(to, &of) == 0) test::note(file_call::rename, of);
  return came;
}

#ifdef WEFT_WITH_URING

int __real_io_uring_submit(io_uring* ring);
int __real_io_uring_submit_and_get_events(io_uring* ring);
int __real_io_uring_submit_and_wait(io_uring* ring, unsigned least);
int __real_io_uring_submit_and_wait_timeout(io_uring* ring, io_uring_cqe** first, unsigned least,
                                            __kernel_timespec* most, sigset_t* signals);

}  // extern "C"

namespace test {
namespace {

constexpr std::uint64_t of_call = 2;  // as uring_worker marks a call's address

std::mutex lock;                                    // of what follows
std::unordered_map<std::uint64_t, int> nothing_of;  // calls that became nothing, and what they are to come to
std::unordered_map<const io_uring*, unsigned> handed_up_to;

unsigned first_new(const io_uring* ring) {
  const std::lock_guard guard{lock};
  const auto [at, is_new] = handed_up_to.try_emplace(ring, ring->sq.sqe_head);
  const unsigned i = at->second;
  const bool is_of_another = static_cast<int>(i - ring->sq.sqe_head) < 0 || static_cast<int>(ring->sq.sqe_tail - i) < 0;
  return is_of_another ? ring->sq.sqe_head : i;
}

void note_submission(const io_uring_sqe& one) noexcept {
  const bool only_data = (one.fsync_flags & IORING_FSYNC_DATASYNC) != 0;
  switch (one.opcode) {
    case IORING_OP_WRITE:
    case IORING_OP_WRITEV: static_cast<void>(noted(file_call::write, one.fd, 0)); break;
    case IORING_OP_FSYNC:
      static_cast<void>(noted(only_data ? file_call::fdatasync : file_call::fsync, one.fd, 0));
      break;
    default: break;
  }
}

// Those that the kernel has not got yet, each once. What an injection does may add to them.
void change_submissions(io_uring* ring) {
  unsigned i = first_new(ring);
  for (; i != ring->sq.sqe_tail; ++i) {
    io_uring_sqe& one = ring->sq.sqes[i & ring->sq.ring_mask];
    if ((one.user_data & of_call) == 0) continue;
    ++handed;
    note_submission(one);
    const int result =
        one.opcode == IORING_OP_CLOSE && !test::file_injection::begins_meanwhile() ? 0 : outcome_of(file_call::ring);
    if (result == 0) continue;
    const std::uint64_t whose = one.user_data;
    const std::lock_guard guard{lock};
    if (result > 0) {
      std::memset(&one, 0, sizeof one);
      one.opcode = IORING_OP_NOP;
      one.user_data = whose;
      nothing_of[whose] = -result;
    } else if (one.opcode == IORING_OP_READ || one.opcode == IORING_OP_WRITE) {
      one.len = 1;
    }
  }
  const std::lock_guard guard{lock};
  handed_up_to[ring] = i;
}

void change_completions(io_uring* ring) {
  const std::lock_guard guard{lock};
  if (nothing_of.empty()) return;
  unsigned head = 0;
  io_uring_cqe* one;
  io_uring_for_each_cqe(ring, head, one) {
    const auto at = nothing_of.find(one->user_data);
    if (at == nothing_of.end()) continue;
    if (one->res == 0) one->res = at->second;  // else it was cancelled before
    nothing_of.erase(at);
  }
}

template <class Go>
int enter(io_uring* ring, Go go) {
  change_submissions(ring);
  const int came = go();
  change_completions(ring);
  return came;
}

}  // namespace
}  // namespace test

extern "C" {

int __wrap_io_uring_submit(io_uring* ring) {
  if (const int result = outcome_of(file_call::submit); result > 0) return -result;
  return test::enter(ring, [&] { return __real_io_uring_submit(ring); });
}
int __wrap_io_uring_submit_and_get_events(io_uring* ring) {
  return test::enter(ring, [&] { return __real_io_uring_submit_and_get_events(ring); });
}
int __wrap_io_uring_submit_and_wait(io_uring* ring, unsigned least) {
  return test::enter(ring, [&] { return __real_io_uring_submit_and_wait(ring, least); });
}
int __wrap_io_uring_submit_and_wait_timeout(io_uring* ring, io_uring_cqe** first, unsigned least,
                                            __kernel_timespec* most, sigset_t* signals) {
  return test::enter(ring, [&] { return __real_io_uring_submit_and_wait_timeout(ring, first, least, most, signals); });
}

#endif

}  // extern "C"
// NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming)
