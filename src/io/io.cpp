// Pipes in memory.
//
// A circular buffer, with the numbers of bytes written and read so far, guarded by a lock. There is one reader and one writer at
// a time, so the reader owns the bytes in the buffer and the writer owns the free space: each copies without the lock, and
// updates its number under it. An end that finds no bytes, or no room, notes that it waits; the other end then sets its event.
#include <weft/io.hpp>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <weft/detail/base/lock.hpp>
#include <weft/event.hpp>

namespace weft {
namespace detail {

/// What the ends of a pipe share, by shared_ptr. An operation under way has a shared_ptr of its own.
class pipe_core {
 public:
  explicit pipe_core(std::size_t capacity)
      : ring_{std::make_unique_for_overwrite<std::byte[]>(capacity)}, capacity_{capacity} {}

  enum class end : bool { reader, writer };

  /// A read or a write under way (RAII). Asserts that each end has one at a time.
  class use {
   public:
    use(pipe_core& of, end which) : of_{of}, which_{which} {
      const std::lock_guard guard{of.lock_};
      WEFT_EXPECTS(!of.side_of(which).is_used,
                   which == end::reader
                       ? "two tasks read from one pipe at once: which of them gets what would be chance"
                       : "two tasks write to one pipe at once: what each writes could come apart in the middle");
      of.side_of(which).is_used = true;
    }
    use(const use&) = delete;
    ~use() {
      const std::lock_guard guard{of_.lock_};
      of_.side_of(which_).is_used = false;
    }

   private:
    pipe_core& of_;
    end which_;
  };

  /// Copies out what is there, and returns how much; 0 at the end. Returns nothing if it must wait. Throws `closed`.
  std::optional<std::size_t> try_read(std::span<std::byte> into);
  /// Copies in what there is room for, and returns how much. Returns nothing if it must wait. Throws `closed`.
  std::optional<std::size_t> try_write(std::span<const std::byte> data);
  /// To be awaited after a try that must wait. There are spurious wake-ups.
  auto until_changed(end which) noexcept { return side_of(which).changed.wait(); }

  void close(end which) noexcept {
    {
      const std::lock_guard guard{lock_};
      side_of(which).is_closed = true;
    }
    reader_.changed.set();
    writer_.changed.set();
  }
  bool is_closed(end which) noexcept {
    const std::lock_guard guard{lock_};
    return side_of(which).is_closed;
  }

 private:
  struct side {
    auto_event changed;
    // Guarded by the lock.
    std::uint64_t moved = 0;  // bytes, in all
    bool is_used = false, is_closed = false, waits = false;
  };
  side& side_of(end which) noexcept { return which == end::reader ? reader_ : writer_; }
  void moved(side& mine, side& other, std::size_t size) noexcept;

  tiny_lock lock_;
  side reader_, writer_;
  const std::unique_ptr<std::byte[]> ring_;
  const std::size_t capacity_;
};

/// Says that bytes were copied, and wakes the other end if that waits for it.
void pipe_core::moved(side& mine, side& other, std::size_t size) noexcept {
  bool waits = false;
  {
    const std::lock_guard guard{lock_};
    mine.moved += size;
    waits = std::exchange(other.waits, false);
  }
  if (waits) other.changed.set();
}

std::optional<std::size_t> pipe_core::try_read(std::span<std::byte> into) {
  std::size_t there = 0;
  {
    const std::lock_guard guard{lock_};
    if (reader_.is_closed) throw error{errc::closed, "read from a pipe"};
    there = static_cast<std::size_t>(writer_.moved - reader_.moved);
    if (there == 0 && writer_.is_closed) return 0;
    if (there == 0) {
      reader_.waits = true;
      return std::nullopt;
    }
  }
  const std::size_t size = std::min(there, into.size());
  const std::size_t at = static_cast<std::size_t>(reader_.moved % capacity_), first = std::min(size, capacity_ - at);
  std::memcpy(into.data(), ring_.get() + at, first);
  std::memcpy(into.data() + first, ring_.get(), size - first);
  moved(reader_, writer_, size);
  return size;
}

std::optional<std::size_t> pipe_core::try_write(std::span<const std::byte> data) {
  std::size_t room = 0;
  {
    const std::lock_guard guard{lock_};
    if (reader_.is_closed || writer_.is_closed) throw error{errc::closed, "write to a pipe"};
    room = capacity_ - static_cast<std::size_t>(writer_.moved - reader_.moved);
    if (room == 0) {
      writer_.waits = true;
      return std::nullopt;
    }
  }
  const std::size_t size = std::min(room, data.size());
  const std::size_t at = static_cast<std::size_t>(writer_.moved % capacity_), first = std::min(size, capacity_ - at);
  std::memcpy(ring_.get() + at, data.data(), first);
  std::memcpy(ring_.get(), data.data() + first, size - first);
  moved(writer_, reader_, size);
  return size;
}

struct pipe_access {
  static io::pipe_ends make(std::size_t capacity) {
    io::pipe_ends ends;
    ends.from.core_ = ends.to.core_ = std::make_shared<pipe_core>(capacity);
    return ends;
  }
};

namespace {

/// The unwritten part of a write. Its destructor closes the writer's end if some of the data was written and some was not.
class unfinished_pipe_write {
 public:
  unfinished_pipe_write(pipe_core& to, std::span<const std::byte> data) noexcept : to_{to}, left_{data} {}
  unfinished_pipe_write(const unfinished_pipe_write&) = delete;
  ~unfinished_pipe_write() {
    if (has_begun_ && !left_.empty()) to_.close(pipe_core::end::writer);
  }
  std::span<const std::byte> left() const noexcept { return left_; }
  void written(std::size_t size) noexcept {
    has_begun_ = true;
    left_ = left_.subspan(size);
  }

 private:
  pipe_core& to_;
  std::span<const std::byte> left_;
  bool has_begun_ = false;
};

}  // namespace

void throw_too_long(const char* what, std::size_t limit) {
  throw error{std::make_error_code(std::errc::message_size), what, "of at most " + std::to_string(limit) + " bytes"};
}

}  // namespace detail

namespace io {

using detail::pipe_core;

ended_early::ended_early(std::string_view what, std::size_t missing)
    : error{errc::closed, what, "(at least " + std::to_string(missing) + " missing)"}, missing_{missing} {}

pipe_ends pipe(std::size_t capacity) {
  WEFT_EXPECTS(capacity != 0, "a pipe has room for a byte at least");
  return detail::pipe_access::make(capacity);
}

void pipe_reader::close() noexcept {
  if (core_ != nullptr) core_->close(pipe_core::end::reader);
}
bool pipe_reader::is_open() const noexcept { return core_ != nullptr && !core_->is_closed(pipe_core::end::reader); }

void pipe_writer::close() noexcept {
  if (core_ != nullptr) core_->close(pipe_core::end::writer);
}
bool pipe_writer::is_open() const noexcept { return core_ != nullptr && !core_->is_closed(pipe_core::end::writer); }

task<std::size_t> pipe_reader::read_from(std::shared_ptr<pipe_core> core, std::span<std::byte> into) {
  if (core == nullptr) throw error{errc::closed, "read from a pipe"};
  const pipe_core::use reads{*core, pipe_core::end::reader};
  co_await check_stop();
  if (into.empty()) co_return std::size_t{0};
  for (;;) {
    const std::optional<std::size_t> got = core->try_read(into);
    if (got) co_return *got;
    co_await core->until_changed(pipe_core::end::reader);
  }
}

task<std::size_t> pipe_writer::write_some_to(std::shared_ptr<pipe_core> core, std::span<const std::byte> data) {
  if (core == nullptr) throw error{errc::closed, "write to a pipe"};
  const pipe_core::use writes{*core, pipe_core::end::writer};
  co_await check_stop();
  if (data.empty()) co_return std::size_t{0};
  for (;;) {
    const std::optional<std::size_t> written = core->try_write(data);
    if (written) co_return *written;
    co_await core->until_changed(pipe_core::end::writer);
  }
}

task<> pipe_writer::write_all_to(std::shared_ptr<pipe_core> core, std::span<const std::byte> data) {
  if (core == nullptr) throw error{errc::closed, "write to a pipe"};
  const pipe_core::use writes{*core, pipe_core::end::writer};
  co_await check_stop();
  detail::unfinished_pipe_write unfinished{*core, data};
  while (!unfinished.left().empty()) {
    const std::optional<std::size_t> written = core->try_write(unfinished.left());
    if (written)
      unfinished.written(*written);
    else
      co_await core->until_changed(pipe_core::end::writer);
  }
}

}  // namespace io
}  // namespace weft
