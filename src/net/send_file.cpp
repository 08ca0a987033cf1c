// Sends files: by sendfile() if the system can, else by reads and writes.
#include <poll.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <system_error>
#include <weft/net.hpp>
#include <weft/runtime.hpp>

#include "net/failed_try.hpp"

namespace weft::detail {
namespace {

// The result of one piece. sendfile() does not tell whether an error is the file's or the socket's.
enum class error_side : std::uint8_t { unknown, of_file, of_socket };
struct piece {
  ssize_t size;
  int error = 0;  // if `size` is below 0
  error_side side = error_side::unknown;

  bool waits() const noexcept { return size < 0 && error == EAGAIN && side != error_side::of_file; }
};

// Used after sendfile() has failed with EINVAL. The buffer is small, to fit on a fiber's stack.
piece send_copied(int to, const file_part& part, std::size_t size) noexcept {
  std::byte buffer[4096];
  ssize_t got;
  do got = ::pread(part.number, buffer, std::min(size, sizeof buffer), static_cast<off_t>(part.offset));
  while (got < 0 && errno == EINTR);
  if (got <= 0) return {.size = got, .error = errno, .side = error_side::of_file};
  ssize_t sent;
  do sent = ::send(to, buffer, static_cast<std::size_t>(got), send_flags);
  while (sent < 0 && errno == EINTR);
  return {.size = sent, .error = errno, .side = error_side::of_socket};
}

piece send_by_system(int to, const file_part& part, std::size_t size) noexcept {
  const as_worker guarded;  // sendfile() has no flag against SIGPIPE
  ssize_t sent;
  do {
    auto at = static_cast<off_t>(part.offset);
    sent = ::sendfile(to, part.number, &at, size);
  } while (sent < 0 && errno == EINTR);
  return {.size = sent, .error = errno};
}

piece send_piece(int to, file_part& part) noexcept {
  constexpr std::uint64_t most = std::uint64_t{128} * 1024;
  const auto size = static_cast<std::size_t>(std::min(part.size, most));
  if (!part.by_copies) {
    const piece sent = send_by_system(to, part, size);
    part.by_copies =
        sent.size < 0 && sent.error == EINVAL;  // the file system does not support sendfile(), as in parts of /proc
    if (!part.by_copies) return sent;
  }
  return send_copied(to, part, size);
}

bool has_room(int to) noexcept {
  pollfd now{.fd = to, .events = POLLOUT, .revents = 0};
  return ::poll(&now, 1, 0) == 1 && (now.revents & POLLOUT) != 0;
}

// Its destructor shuts down the write side if a part was sent and the rest was not.
class unfinished_send {
 public:
  explicit unfinished_send(descriptor& to) noexcept : to_{&to} {}
  unfinished_send(const unfinished_send&) = delete;
  ~unfinished_send() {
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
  piece sent = send_piece(to.number(), part);
  if (sent.waits()) {
    to.expect_change(direction::out);
    sent = send_piece(to.number(), part);
    if (sent.waits() && sent.side == error_side::unknown && has_room(to.number())) {
      // The socket may have got room since the second try. If this try fails, too, EAGAIN is about the file, which has no data
      // yet; no change is reported when it has. So the operation fails.
      sent = send_piece(to.number(), part);
      if (sent.waits() && sent.side == error_side::unknown) sent.side = error_side::of_file;
    }
    if (!sent.waits()) to.has_more(direction::out);
  }
  if (sent.size >= 0) {
    const auto size = static_cast<std::size_t>(sent.size);
    to.has_moved(size);
    count_io(size);
    part.offset += size;
    part.size -= size;
    return {.size = size};
  }
  if (sent.side == error_side::of_file) return {.refused = {sent.error, std::generic_category()}};
  return failed_write(to, sent.error);
}

task<std::uint64_t> send_file(descriptor* at, file_part left) {
  static constexpr const char* name = "send a file";
  const descriptor_use use{at, direction::out, two_writers};
  if (!use) co_await fail_with(failure_of(closed_here(), name));
  unfinished_send unfinished{*at};
  std::uint64_t so_far = 0;
  co_await check_stop();
  while (left.size != 0) {
    if (has_had_its_turn()) co_await yield();
    if (at->may_try(direction::out))
      if (const tried sent = try_send_file(*at, left); !sent.must_wait) {
        if (sent.refused) co_await fail_with(failure_of(sent.refused, name));
        if (sent.size == 0) break;  // the file ends
        so_far += sent.size;
        unfinished.begins();
        if (left.size != 0) co_await check_stop();  // each piece may wait for a disk
        continue;
      }
    co_await at->until_ready(direction::out);
    if (at->is_closed()) co_await fail_with(failure_of(closed_here(), name));
  }
  unfinished.is_done();
  co_return so_far;
}

}  // namespace weft::detail
