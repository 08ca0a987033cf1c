// Pipes in memory: what is written to one end is read from the other. Part of io.hpp.
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

/// The end of a pipe that is read from: an io::reader.
///
/// Threads   any thread, one task at a time. close() may be called while a read waits, which then fails with errc::closed. Move
///           or destroy it only while nobody calls it; a read that waits does not touch it.
class pipe_reader {
 public:
  pipe_reader() noexcept = default;  ///< of no pipe: reads fail with errc::closed
  pipe_reader(pipe_reader&& other) noexcept = default;
  pipe_reader& operator=(pipe_reader&& other) noexcept {
    pipe_reader old{std::move(*this)};
    core_ = std::move(other.core_);
    return *this;
  }
  ~pipe_reader() { close(); }

  /// Reads the bytes in the pipe, at most as many as `into` holds, and gives how many. 0: the other end is closed and all was
  /// read, or `into` is empty.
  ///
  /// Suspends  where the pipe is empty.
  /// Cancel    a stopped read has taken nothing.
  /// Fails     with errc::closed where this end is closed.
  WEFT_COROUTINE_WRAPPER task<std::size_t> read(std::span<std::byte> into) const { return read_from(core_, into); }

  /// Closes the pipe: writes fail with errc::closed from now on, and what is in it is lost. Does not suspend; may be called
  /// again.
  void close() noexcept;
  bool is_open() const noexcept;

 private:
  friend detail::pipe_access;
  static task<std::size_t> read_from(std::shared_ptr<detail::pipe_core> core, std::span<std::byte> into);
  std::shared_ptr<detail::pipe_core> core_;
};

/// The end of a pipe that is written to: an io::writer. Otherwise as pipe_reader.
class pipe_writer {
 public:
  pipe_writer() noexcept = default;  ///< of no pipe: writes fail with errc::closed
  pipe_writer(pipe_writer&& other) noexcept = default;
  pipe_writer& operator=(pipe_writer&& other) noexcept {
    pipe_writer old{std::move(*this)};
    core_ = std::move(other.core_);
    return *this;
  }
  ~pipe_writer() { close(); }

  /// Writes a first part of `data`, as much as there is room for and at least one byte unless it is empty, and gives its size.
  ///
  /// Suspends  where the pipe is full.
  /// Cancel    a stopped call has written nothing.
  /// Fails     with errc::closed where either end is closed.
  WEFT_COROUTINE_WRAPPER task<std::size_t> write_some(std::span<const std::byte> data) const {
    return write_some_to(core_, data);
  }
  /// Writes all of `data`. Otherwise as write_some().
  ///
  /// Cancel  a write that is stopped before its first byte has no effect; later, it closes this end.
  WEFT_COROUTINE_WRAPPER task<> write(std::span<const std::byte> data) const { return write_all_to(core_, data); }
  WEFT_COROUTINE_WRAPPER task<> write(std::string_view text) const { return write(std::as_bytes(std::span{text})); }

  /// Ends the data: the other end reads what is in the pipe, then 0. Does not suspend; may be called again.
  void close() noexcept;
  bool is_open() const noexcept;

 private:
  friend detail::pipe_access;
  static task<std::size_t> write_some_to(std::shared_ptr<detail::pipe_core> core, std::span<const std::byte> data);
  static task<> write_all_to(std::shared_ptr<detail::pipe_core> core, std::span<const std::byte> data);
  std::shared_ptr<detail::pipe_core> core_;
};

/// Both ends of a pipe.
struct pipe_ends {
  pipe_reader from;
  pipe_writer to;
};

/// Makes a pipe in memory that holds up to `capacity` bytes, which is not 0. Throws std::bad_alloc.
///
///     auto [from, to] = io::pipe(4096);
///
/// Cost  two allocations. An operation copies the bytes, and takes a spin lock twice.
pipe_ends pipe(std::size_t capacity = std::size_t{64} * 1024);

}  // namespace weft::io
