// Pipes in memory: what is written at one end comes out at the other one. Part of io.hpp.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <weft/detail/base/config.hpp>
#include <weft/task.hpp>

namespace weft::detail {
class pipe_core;
struct pipe_access;
}  // namespace weft::detail

namespace weft::io {

/// The end of a pipe that bytes come out of. A reader.
///
/// Threads   any, one task at a time; close() may come while a read waits, which ends with the error `closed`. Moves and
///           destruction are for when nobody calls it; a read that is under way keeps what it needs.
class pipe_reader {
 public:
  pipe_reader() noexcept = default;  ///< of no pipe: reads fail with `closed`
  pipe_reader(pipe_reader&& other) noexcept = default;
  pipe_reader& operator=(pipe_reader&& other) noexcept {
    pipe_reader old{std::move(*this)};
    core_ = std::move(other.core_);
    return *this;
  }
  ~pipe_reader() { close(); }

  /// Reads what is in it, as much as `into` holds. 0: the other end is closed and all was read, or `into` is empty.
  ///
  /// Suspends  only where it is empty.
  /// Cancel    has had no effect.
  /// Fails     with `closed`, if this end is.
  WEFT_COROUTINE_WRAPPER task<std::size_t> read(std::span<std::byte> into) const { return read_from(core_, into); }

  /// Writes fail with `closed` from now on, and what is in it is dropped. Does not wait, and may be called again.
  void close() noexcept;
  bool is_open() const noexcept;

 private:
  friend detail::pipe_access;
  static task<std::size_t> read_from(std::shared_ptr<detail::pipe_core> core, std::span<std::byte> into);
  std::shared_ptr<detail::pipe_core> core_;
};

/// The end of a pipe that bytes are put into. A writer. Otherwise as pipe_reader.
class pipe_writer {
 public:
  pipe_writer() noexcept = default;  ///< of no pipe: writes fail with `closed`
  pipe_writer(pipe_writer&& other) noexcept = default;
  pipe_writer& operator=(pipe_writer&& other) noexcept {
    pipe_writer old{std::move(*this)};
    core_ = std::move(other.core_);
    return *this;
  }
  ~pipe_writer() { close(); }

  /// Writes as much as there is room for: at least a byte, unless `data` is empty.
  ///
  /// Suspends  only where it is full.
  /// Cancel    has had no effect.
  /// Fails     with `closed`, if either end is.
  WEFT_COROUTINE_WRAPPER task<std::size_t> write_some(std::span<const std::byte> data) const {
    return write_some_to(core_, data);
  }
  /// Writes all of it.
  ///
  /// Cancel  one that is stopped before its first byte has had no effect; later, it closes this end, as that of a stream.
  WEFT_COROUTINE_WRAPPER task<> write(std::span<const std::byte> data) const { return write_all_to(core_, data); }
  WEFT_COROUTINE_WRAPPER task<> write(std::string_view text) const { return write(std::as_bytes(std::span{text})); }

  /// The other end reads what is in it, then 0. Does not wait, and may be called again.
  void close() noexcept;
  bool is_open() const noexcept;

 private:
  friend detail::pipe_access;
  static task<std::size_t> write_some_to(std::shared_ptr<detail::pipe_core> core, std::span<const std::byte> data);
  static task<> write_all_to(std::shared_ptr<detail::pipe_core> core, std::span<const std::byte> data);
  std::shared_ptr<detail::pipe_core> core_;
};

/// Both ends of a pipe: what is written to the one is read from the other.
struct pipe_ends {
  pipe_reader from;
  pipe_writer to;
};

/// A pipe in memory that holds up to `capacity` bytes, which is not 0.
///
///     auto [from, to] = io::pipe(4096);
///
/// Cost  two allocations; an operation takes a lock of one byte twice, and copies.
pipe_ends pipe(std::size_t capacity = std::size_t{64} * 1024);

}  // namespace weft::io
