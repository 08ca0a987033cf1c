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
//   Threads   at a time one task reads from an object, and one writes to it. Most objects notice a second one, and end the
//             program with a sentence.
//   Cancel    an operation that is stopped, or fails, has consumed nothing and written nothing, unless its text says otherwise.
//   Lifetime  the memory that is read into, or written from, outlives the operation.
//   Units     sizes are in bytes.
//
// A buffer is a template over what it wraps: any class with the operations of a reader will do, and a call through the buffer
// has no cost of its own. An lvalue is referred to, an rvalue is moved in: `buffered_reader in{stream}` is a
// buffered_reader<net::stream&>.
//
// Rejected: (a) buffers with type erasure: each read would need a coroutine frame, also where the source does not. (b) A read
// that returns a part when it is stopped: each caller would have to handle that. Instead, bytes that were received stay in the
// buffer for the next read.
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

/// Copies bytes from a reader to a writer, until `from` ends or `limit` bytes are copied. Gives how many it has copied. Closes
/// and flushes neither.
///
/// Suspends  where a read or a write does.
/// Cancel    loses nothing where `from` is a buffered_reader, which keeps what was not written. Of any other reader one piece
///           may be lost that was read and not, or only partly, written; the writer is closed in the latter case, as its
///           write() says.
/// Fails     as the reader or the writer, with the same effect as a stop.
/// Lifetime  both outlive the task.
/// Cost      a buffer of 16 KiB, unless `from` is a buffered_reader.
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
