// Readers and writers of bytes: buffers around them, copies between them, pipes in memory.
//
//     w::task<> talk(const w::net::stream& peer) {
//       w::io::buffered_reader in{peer};
//       w::io::buffered_writer out{peer};
//       auto lines = in.lines(1024);
//       while (const std::string* line = co_await lines.next()) {
//         co_await out.print("you said: ", *line, "\n");
//         co_await out.flush();
//       }
//     }
//
// This header has the copies, and includes the rest: what a reader and a writer are (io_concepts.hpp), buffers around them
// (buffered_reader.hpp, buffered_writer.hpp), pipes (io_pipe.hpp), and limits of size and rate (io_limits.hpp).
//
// What holds for all of it:
//
//   Threads   one task at a time reads from something, and one writes to it. A second one ends the program with a sentence, where
//             it is noticed.
//   Cancel    an operation that is stopped has consumed nothing and written nothing, or says what it has. So has one that fails.
//   Lifetime  what is read into, and what is written, stays until the operation has ended.
//
// A buffer knows the type of what it is around: a call costs no more than what it does, and any class with the operations of a
// reader will do. An lvalue is borrowed, an rvalue moves in: `buffered_reader in{stream}` is a buffered_reader<net::stream&>.
//
// Rejected: (a) buffers that do not know what they are around: each of their reads would need a frame of its own, which many
// sources don't. (b) A read that returns what it has when it is stopped: each caller would have to handle that. Bytes that have
// come stay in the buffer instead, so that whoever reads next finds all of them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <weft/buffered_reader.hpp>
#include <weft/buffered_writer.hpp>
#include <weft/detail/io/byte_buffer.hpp>
#include <weft/io_concepts.hpp>
#include <weft/io_limits.hpp>
#include <weft/io_pipe.hpp>
#include <weft/task.hpp>

namespace weft::io {

/// Writes what it reads, up to the end of `from`, or `limit` bytes. Gives how many those were. Neither end is closed, nor flushed.
///
/// Cancel    a buffered_reader holds what was not written yet, so nothing is lost. From any other reader, one piece may have
///           been read and not written, or written in part; then the writer is closed, as its write() says.
/// Fails     as either does, likewise.
/// Lifetime  both outlive it.
/// Cost      16 KiB, unless `from` is a buffered_reader, whose buffer is used.
template <reader From, writer To>
task<std::uint64_t> copy(From& from, To& to, std::uint64_t limit = std::numeric_limits<std::uint64_t>::max());

// ---- implementation -------------------------------------------------------------------------------------------------------

}  // namespace weft::io

namespace weft::detail {

template <class T>
inline constexpr bool is_buffered_reader = false;
template <class Source>
inline constexpr bool is_buffered_reader<io::buffered_reader<Source>> = true;

}  // namespace weft::detail

namespace weft::io {

template <reader From, writer To>
task<std::uint64_t> copy(From& from, To& to, std::uint64_t limit) {
  std::uint64_t copied = 0;
  const auto at_most = [&](std::size_t size) {
    return static_cast<std::size_t>(std::min<std::uint64_t>(size, limit - copied));
  };
  if constexpr (detail::is_buffered_reader<From>) {
    while (copied != limit) {
      std::span<const std::byte> there = co_await from.peek();
      if (there.empty()) break;
      there = there.first(at_most(there.size()));
      const std::size_t written = co_await to.write_some(there);
      detail::expect_some(written, there.size());
      from.consume(written);
      copied += written;
    }
  } else {
    constexpr std::size_t capacity = std::size_t{16} * 1024;
    const auto buffer = std::make_unique_for_overwrite<std::byte[]>(capacity);
    while (copied != limit) {
      const std::span<std::byte> room{buffer.get(), at_most(capacity)};
      const std::size_t got = co_await from.read(room);
      if (got == 0) break;
      co_await to.write(room.first(got));
      copied += got;
    }
  }
  co_return copied;
}

}  // namespace weft::io
