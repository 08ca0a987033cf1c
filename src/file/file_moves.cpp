// Reads and writes of files.
//
// A read or a write (a move) goes piece by piece. Each piece is first tried on the worker, as far as that need not wait; else a
// ring or a thread makes the call. A piece tried on the worker is bounded, since copying it takes the worker's time; one that
// goes to a ring or a thread is bounded, so that a stop is noticed soon.
#include <fcntl.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <limits>
#include <string>
#include <weft/detail/net/operation.hpp>
#include <weft/file.hpp>
#include <weft/hop.hpp>
#include <weft/nothrow.hpp>
#include <weft/with.hpp>

#include "core/turns.hpp"
#include "file/file_access.hpp"
#include "file/file_calls.hpp"
#include "file/open_file.hpp"

namespace weft {
namespace {

using detail::file_error;
using detail::file_request;
using detail::file_use;
using detail::open_file;
using kind = file_request::kind;

constexpr std::size_t most_at_once = std::size_t{1} << 20;
constexpr std::size_t most_elsewhere = std::size_t{4} << 20;
constexpr std::uint64_t last_offset = std::numeric_limits<off_t>::max();

constexpr const char* name_of(kind what) noexcept { return what == kind::read ? "read a file" : "write a file"; }

// The rest of one buffer, and of several ones. give() writes up to `most` bytes of it as iovec, and returns their number.
class one_part {
 public:
  explicit one_part(std::span<const std::byte> all) noexcept
      : rest_{.iov_base = const_cast<std::byte*>(all.data()), .iov_len = all.size()} {
  }  // NOLINT: a write only reads it
  bool is_empty() const noexcept { return rest_.iov_len == 0; }
  unsigned give(iovec* into, std::size_t most) const noexcept {
    *into = {.iov_base = rest_.iov_base, .iov_len = std::min(rest_.iov_len, most)};
    return 1;
  }
  void skip(std::size_t size) noexcept {
    rest_.iov_base = static_cast<std::byte*>(rest_.iov_base) + size;
    rest_.iov_len -= size;
  }
  static constexpr std::size_t parts_at_once = 1;

 private:
  iovec rest_;
};

template <class Byte>
class many_parts {
 public:
  explicit many_parts(std::span<const std::span<Byte>> all) noexcept : left_{all} { skip(0); }
  bool is_empty() const noexcept { return left_.empty(); }
  unsigned give(iovec* into, std::size_t most) const noexcept {
    unsigned count = 0;
    std::size_t begin = begun_;
    for (const std::span<Byte>& each : left_) {
      if (count == parts_at_once || most == 0) break;
      const std::size_t size = std::min(each.size() - begin, most);
      into[count++] = {.iov_base = const_cast<std::byte*>(each.data() + begin), .iov_len = size};  // NOLINT: only read
      most -= size;
      begin = 0;
    }
    return count;
  }
  void skip(std::size_t size) noexcept {
    begun_ += size;
    while (!left_.empty() && begun_ >= left_.front().size()) {
      begun_ -= left_.front().size();
      left_ = left_.subspan(1);
    }
  }
  static constexpr std::size_t parts_at_once = 32;

 private:
  std::span<const std::span<Byte>> left_;
  std::size_t begun_ = 0;  // bytes of left_.front() that were moved
};

// A sentence that says what direct I/O does not allow, or null: the system only says EINVAL.
const char* what_is_misaligned(const open_file& at, const file_request& what) noexcept {
  const auto [memory, offset] = at.aligned();
  if (!at.is_direct() || memory == 0 || offset == 0) return nullptr;
  if (what.what != kind::append && what.offset % offset != 0) return "the offset is not aligned for direct I/O";
  const auto* const parts = static_cast<const iovec*>(what.memory);
  for (unsigned i = 0; i != what.count; ++i) {
    if (reinterpret_cast<std::uintptr_t>(parts[i].iov_base) % memory != 0)
      return "the memory is not aligned for direct I/O";
    if (parts[i].iov_len % offset != 0) return "the size is not aligned for direct I/O";
  }
  return nullptr;
}

// Tries a read or a write without waiting. -EAGAIN: it would have to wait, or the file system can't tell.
int try_at_once(open_file& at, const file_request& what) noexcept {
  const bool writes = what.what != kind::read;
  if (!at.may_try(writes)) return -EAGAIN;
  const int got = perform_at_once(what);
  if (got != -EOPNOTSUPP) return got;
  at.cannot_try(writes);
  return -EAGAIN;
}

// Moves `parts`: all of them, or only what one call moves. Returns the number of bytes, which is less if a read meets the end of
// the file.
template <class Parts>
task<std::size_t> move(open_file* at, kind what, std::uint64_t offset, Parts parts, bool all) {
  const file_use use{at};
  if (!use) co_await fail_with(error{make_error_code(errc::closed), name_of(what)});
  WEFT_EXPECTS(what != kind::write || !at->appends(),
               "a file that was opened to append was written at an offset: the system would put it at the end");
  co_await check_stop();
  iovec pieces[Parts::parts_at_once];
  file_request next{.what = what, .number = at->number(), .offset = offset, .memory = pieces};
  std::size_t so_far = 0;
  while (!parts.is_empty()) {
    if (detail::has_had_its_turn() || so_far >= most_at_once) co_await yield();
    if (next.offset > last_offset) co_await fail_with(file_error(EFBIG, name_of(what)));
    int got = -EAGAIN;
    // An append stays one piece. A try could write a part of it, and appends of others could come before the rest.
    if (what != kind::append && at->may_try(what != kind::read)) {
      next.count = parts.give(pieces, most_at_once);
      got = try_at_once(*at, next);
    }
    if (got == -EAGAIN) {
      next.count = parts.give(pieces, most_elsewhere);
      if (const char* const wrong = what_is_misaligned(*at, next); wrong != nullptr)
        co_await fail_with(file_error(EINVAL, name_of(what), wrong));
      got = co_await detail::perform_elsewhere(next);
    }
    if (got == 0 && what != kind::read) got = -ENOSPC;  // a write of 0 bytes: the next one would fail with this
    if (got < 0) co_await fail_with(file_error(-got, name_of(what), {}, next.number));
    detail::count_io(static_cast<std::size_t>(got));
    if (got == 0) break;
    const auto size = static_cast<std::size_t>(got);
    so_far += size;
    next.offset += size;
    parts.skip(size);
    if (!all) break;
    // A direct read gives a size that is not aligned only at the end of the file.
    if (what == kind::read && at->is_direct() && at->aligned().offset != 0 && size % at->aligned().offset != 0) break;
  }
  co_return so_far;
}

template <class Parts>
task<> move_all(open_file* at, kind what, std::uint64_t offset, Parts parts) {
  co_await nothrow(move(at, what, offset, parts, true));
}

}  // namespace

task<std::size_t> file::read_one(open_file* at, std::uint64_t offset, std::span<std::byte> into) {
  return move(at, kind::read, offset, one_part{into}, true);
}
task<std::size_t> file::read_many(open_file* at, std::uint64_t offset, std::span<const std::span<std::byte>> parts) {
  return move(at, kind::read, offset, many_parts<std::byte>{parts}, true);
}
task<> file::write_one(open_file* at, std::uint64_t offset, std::span<const std::byte> data) {
  return move_all(at, kind::write, offset, one_part{data});
}
task<> file::write_many(open_file* at, std::uint64_t offset, std::span<const std::span<const std::byte>> parts) {
  return move_all(at, kind::write, offset, many_parts<const std::byte>{parts});
}
task<std::size_t> file::write_some(open_file* at, std::uint64_t offset, std::span<const std::byte> data) {
  return move(at, kind::write, offset, one_part{data}, false);
}
task<> file::append_one(open_file* at, std::span<const std::byte> data) {
  return move_all(at, kind::append, 0, one_part{data});
}

// ---- sequential reads and writes ------------------------------------------------------------------------------------------

task<std::size_t> file_reader::read(std::span<std::byte> into) {
  const std::size_t size = co_await nothrow(from_->read_at(position_, into));
  position_ += size;
  co_return size;
}

task<std::size_t> file_writer::write_some(std::span<const std::byte> data) {
  const std::size_t size = co_await nothrow(to_->write_some_at(position_, data));
  position_ += size;
  co_return size;
}

task<> file_writer::write(std::span<const std::byte> data) {
  while (!data.empty()) data = data.subspan(co_await nothrow(write_some(data)));
}

}  // namespace weft
