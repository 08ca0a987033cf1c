// Files that are sent: by the system where it can (sendfile), else by reads and writes.
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <weft/net.hpp>
#include <weft/runtime.hpp>

#include "net/failed_try.hpp"

namespace weft::detail {
namespace {

// Behind EINVAL, through a buffer that fits on a fiber's stack.
ssize_t send_copied(int to, const file_part& part, std::size_t size) noexcept {
  std::byte buffer[4096];
  ssize_t got;
  do got = ::pread(part.number, buffer, std::min(size, sizeof buffer), static_cast<off_t>(part.offset));
  while (got < 0 && errno == EINTR);
  if (got <= 0) return got;
  ssize_t sent;
  do sent = ::send(to, buffer, static_cast<std::size_t>(got), MSG_NOSIGNAL);
  while (sent < 0 && errno == EINTR);
  return sent;
}

ssize_t send_by_system(int to, const file_part& part, std::size_t size) noexcept {
  int error = 0;
  ssize_t sent;
  {
    const as_worker guarded;  // sendfile() has no flag against SIGPIPE
    do {
      auto at = static_cast<off_t>(part.offset);
      sent = ::sendfile(to, part.number, &at, size);
    } while (sent < 0 && errno == EINTR);
    error = errno;
  }
  errno = error;
  return sent;
}

ssize_t send_piece(int to, file_part& part) noexcept {
  constexpr std::uint64_t most = std::uint64_t{128} * 1024;
  const auto size = static_cast<std::size_t>(std::min(part.size, most));
  if (!part.by_copies) {
    const ssize_t sent = send_by_system(to, part, size);
    part.by_copies = sent < 0 && errno == EINVAL;  // of a file system that has no such way, as of parts of /proc
    if (!part.by_copies) return sent;
  }
  return send_copied(to, part, size);
}

// Closes the write side where it goes between the first byte and the end.
class half_sent {
 public:
  explicit half_sent(descriptor& to) noexcept : to_{&to} {}
  half_sent(const half_sent&) = delete;
  ~half_sent() {
    if (has_begun_) to_->shut_down_writes();
  }
  void begins() noexcept { has_begun_ = true; }
  void is_done() noexcept { has_begun_ = false; }

 private:
  descriptor* to_;
  bool has_begun_ = false;
};

}  // namespace

tried try_send_file(descriptor& to, file_part& part) noexcept {
  ssize_t size = send_piece(to.number(), part);
  if (size < 0 && errno == EAGAIN) {
    to.expect_change(direction::out);
    size = send_piece(to.number(), part);
    if (size >= 0) to.has_more(direction::out);
  }
  if (size >= 0) {
    const auto sent = static_cast<std::size_t>(size);
    to.has_moved(sent);
    part.offset += sent;
    part.size -= sent;
    return {.size = sent};
  }
  return failed_write(to, errno);
}

task<std::uint64_t> send_file(descriptor* at, file_part left) {
  static constexpr const char* name = "send a file";
  const descriptor_use use{at, direction::out, two_writers};
  if (!use) co_await fail_with(failure_of(closed_here(), name));
  half_sent unfinished{*at};
  std::uint64_t so_far = 0;
  for (;;) {
    co_await check_stop();  // also between two pieces: each may wait for a disk
    if (left.size == 0) break;
    if (has_had_its_turn()) co_await yield();
    if (at->may_try(direction::out))
      if (const tried sent = try_send_file(*at, left); !sent.must_wait) {
        if (sent.refused) co_await fail_with(failure_of(sent.refused, name));
        if (sent.size == 0) break;  // the file ends
        so_far += sent.size;
        unfinished.begins();
        continue;
      }
    co_await at->until_ready(direction::out);
    if (at->is_closed()) co_await fail_with(failure_of(closed_here(), name));
  }
  unfinished.is_done();
  co_return so_far;
}

}  // namespace weft::detail
