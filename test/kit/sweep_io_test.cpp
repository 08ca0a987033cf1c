// Pipes, buffers and copies, with a stop at each place of each await, and without memory: no byte is lost or comes twice.
//
// Long because each operation is a scenario.
#include <weft/io.hpp>
#include <weft/io_limits.hpp>
#include <weft/io_numbers.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "support/sweep.hpp"

namespace {

using namespace test::in_sweeps;
using weft::io::buffered_reader;
using weft::io::buffered_writer;
using weft::io::pipe_ends;
using weft::io::pipe_reader;
using weft::io::pipe_writer;

std::string_view text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}
std::span<const std::byte> bytes(std::string_view text) { return std::as_bytes(std::span{text}); }

constexpr std::string_view alphabet = "abcdefghijklmnopqrstuvwxyz";

// What went through a pipe, from one part of a scenario to another.
struct passes_bytes {
  pipe_ends ends;
  std::string sent, received;
  explicit passes_bytes(std::size_t capacity) : ends{weft::io::pipe(capacity)} {
    sent.reserve(64);  // what was passed is noted, also without memory
    received.reserve(64);
  }

  // What is left in the pipe after all, without waiting.
  void drain() {
    ends.to.close();
    std::array<std::byte, 64> buffer;
    for (;;) {
      const std::size_t got = weft::sync_wait(ends.from.read(buffer));
      if (got == 0) return;
      received += text(std::span{buffer}.first(got));
    }
  }
};

// One that is stopped has had no effect, one that has ended has: so what was received is what was sent, to the byte.
template <class By>
struct passes_some : passes_bytes {
  passes_some() : passes_bytes{3} {}
  part<By> sends() {
    std::string_view left = alphabet.substr(0, 8);
    while (!left.empty()) {
      const std::size_t written = co_await ends.to.write_some(bytes(left));
      sent += left.substr(0, written);
      left.remove_prefix(written);
    }
    ends.to.close();
  }
  part<By> receives() {
    std::array<std::byte, 2> buffer;
    for (;;) {
      const std::size_t got = co_await ends.from.read(buffer);
      if (got == 0) break;
      received += text(std::span{buffer}.first(got));
      if (received.size() == 4) co_await rest(1);
    }
  }
  part<By> run() { co_await together(receives(), sends()); }
  void check() {
    drain();
    require(received == sent, "a byte was lost, or came twice");
  }
};
TEST(sweep, pipe) { sweep_both<passes_some>("pipe_reader::read, pipe_writer::write_some", waits_for_the_other); }

// The same through limits, which wait for time as well.
template <class By>
struct passes_limited : passes_bytes {
  passes_limited() : passes_bytes{3} {}
  weft::io::rate_limited_writer<pipe_writer&> out{ends.to, 1000, 2};
  weft::io::rate_limited_reader<pipe_reader&> slow{ends.from, 1000, 3};
  weft::io::limited_reader<weft::io::rate_limited_reader<pipe_reader&>&> in{slow, 6};
  part<By> sends() {
    std::string_view left = alphabet.substr(0, 8);
    while (!left.empty()) {
      const std::size_t written = co_await out.write_some(bytes(left));
      sent += left.substr(0, written);
      left.remove_prefix(written);
    }
    ends.to.close();
  }
  part<By> receives() {
    std::array<std::byte, 4> buffer;
    for (;;) {
      const std::size_t got = co_await in.read(buffer);
      if (got == 0) break;
      received += text(std::span{buffer}.first(got));
    }
    require(in.left() == 0 && received == alphabet.substr(0, 6), "it has ended elsewhere than at its limit");
  }
  part<By> run() { co_await together(receives(), sends()); }
  void check() {
    require(in.left() == 6 - received.size(), "it has counted what it has not given");
    drain();
    require(received == sent, "a byte was lost, or came twice");
  }
};
TEST(sweep, limits) {
  sweep_both<passes_limited>("limited_reader::read, rate_limited_reader::read, rate_limited_writer::write_some",
                             waits_for_the_other);
}

// A write that is ended half-way closes the pipe.
template <class By>
struct writes_limited : passes_bytes {
  writes_limited() : passes_bytes{64} {}
  weft::io::rate_limited_writer<pipe_writer&> out{ends.to, 1000, 3};
  bool was_written = false;
  part<By> run() {
    co_await out.write(alphabet.substr(0, 8));
    was_written = true;
  }
  void check() {
    const bool is_open = ends.to.is_open();
    drain();
    require(was_written ? received.size() == 8 : received.size() < 8, "a byte was lost, or came twice");
    require(is_open == (was_written || received.empty()), "half of it was written, and it goes on");
  }
};
TEST(sweep, rate_limited_write) { sweep_both<writes_limited>("rate_limited_writer::write", waits_for_the_other); }

// A write that ends half-way closes its end, so the reader comes to an end, with what was written before.
template <class By>
struct passes_all : passes_bytes {
  bool was_written = false;
  passes_all() : passes_bytes{4} {}
  part<By> sends() {
    co_await ends.to.write(alphabet.substr(0, 11));
    was_written = true;
    ends.to.close();
  }
  part<By> receives() {
    std::array<std::byte, 3> buffer;
    co_await rest(1);
    for (;;) {
      const std::size_t got = co_await ends.from.read(buffer);
      if (got == 0) break;
      received += text(std::span{buffer}.first(got));
    }
  }
  part<By> run() { co_await together(sends(), receives()); }
  void check() {
    require(was_written || received.empty() || !ends.to.is_open(), "half of it was written, and nobody knows");
    drain();
    require(alphabet.starts_with(received), "a byte was lost, or came twice");
    if (was_written) require(received.size() == 11, "a byte was lost");
  }
};
TEST(sweep, pipe_write) { sweep_both<passes_all>("pipe_writer::write, pipe_reader::read", waits_for_the_other); }

// Who waits in an end that is closed ends with an error.
template <class By>
struct closes_ends : passes_bytes {
  closes_ends() : passes_bytes{1} {}
  part<By> sends() {
    const auto how = co_await as_result(ends.to.write("abc"));
    if (how.exception()) require(how.error() == weft::errc::closed || test::lacked_memory(how), "a wrong error");
    if (how.has_value()) require(false, "there was no room for it");
  }
  part<By> closes() {
    co_await rest(1);
    ends.from.close();
  }
  part<By> run() { co_await together(sends(), closes()); }
};
TEST(sweep, pipe_closed) { sweep_both<closes_ends>("pipe_writer::write", waits_for_the_other); }

constexpr std::string_view dialogue = "one\r\ntwo\n;three;\nfour\nfive\nsix";

// A reader that is stopped, or lacks memory, wherever it is, has consumed whole pieces: what it has not taken is in its buffer,
// or in the pipe. The reader is the scenario's that derives from this.
template <class By>
struct reads_pieces : passes_bytes {
  buffered_reader<pipe_reader&> in{ends.from, 2};
  std::size_t taken = 0;

  reads_pieces() : passes_bytes{5} {}

  void took(std::string_view piece, std::size_t with_end) {
    require(dialogue.substr(taken, with_end).starts_with(piece), "a byte was lost, or came twice");
    taken += with_end;
  }
  part<By> sends() {
    std::string_view left = dialogue;
    while (!left.empty()) {
      const std::size_t size = std::min<std::size_t>(left.size(), 4);
      const std::size_t written = co_await ends.to.write_some(bytes(left.substr(0, size)));
      sent += left.substr(0, written);
      left.remove_prefix(written);
      if (left.size() == dialogue.size() - 4) co_await rest(1);
    }
    ends.to.close();
  }
  void check() {
    received = text(in.buffered());
    drain();
    require(received == std::string_view{sent}.substr(taken), "a byte was lost, or came twice");
  }
};

template <class By>
struct reads_lines : reads_pieces<By> {
  part<By> reads() {
    const auto first = co_await this->in.read_line();
    if (first) this->took(*first, 5);
    for (;;) {
      const auto piece = co_await this->in.read_until(";");
      if (piece) this->took(*piece, piece->size() + 1);
      if (this->taken == 16) break;
    }
    for (;;) {
      const auto line = co_await this->in.read_line();
      if (!line) break;
      this->took(*line, line->size() + (*line == "six" ? 0 : 1));
    }
    require(this->taken == dialogue.size(), "a byte was lost");
  }
  part<By> run() { co_await together(reads(), this->sends()); }
};
TEST(sweep, buffered_lines) {
  sweep_both<reads_lines>("buffered_reader::read_line, buffered_reader::read_until", waits_for_the_other);
}

template <class By>
struct looks_before : reads_pieces<By> {
  part<By> reads() {
    const auto seen = co_await this->in.peek(13);
    require(seen.size() >= 13, "a byte was lost");
    this->took(text(seen.first(13)), 13);
    this->in.consume(13);
    std::array<std::byte, 3> buffer;
    for (;;) {
      const std::size_t got = co_await this->in.read(buffer);
      if (got == 0) break;
      this->took(text(std::span{buffer}.first(got)), got);
    }
    require(this->taken == dialogue.size(), "a byte was lost");
  }
  part<By> run() { co_await together(reads(), this->sends()); }
};
TEST(sweep, buffered_peek) {
  sweep_both<looks_before>("buffered_reader::peek, buffered_reader::read", waits_for_the_other);
}

template <class By>
struct reads_all_of_it : reads_pieces<By> {
  part<By> reads() {
    std::array<std::byte, 10> ten;
    co_await this->in.read_exactly(ten);
    this->took(text(ten), 10);
    auto lines = this->in.lines();
    for (;;) {
      std::string* const line = co_await lines.next();
      if (line == nullptr) break;
      this->took(*line, line->size() + (*line == "six" ? 0 : 1));
    }
    require(this->taken == dialogue.size(), "a byte was lost");
  }
  part<By> run() { co_await together(reads(), this->sends()); }
};
TEST(sweep, buffered_reader) {
  sweep_both<reads_all_of_it>("buffered_reader::read_exactly, buffered_reader::lines", waits_for_the_other);
}

// A number that is not there yet stays where it is, whatever ends the wait for it.
template <class By>
struct passes_numbers : passes_bytes {
  static constexpr std::int64_t varints[] = {0, -300, 1'000'000'000'000};
  buffered_reader<pipe_reader&> in{ends.from, 2};
  buffered_writer<pipe_writer&> out{ends.to,
                                    7};  // more than the longest of them, so that each is written whole or not at all
  std::size_t written = 0, read = 0;

  passes_numbers() : passes_bytes{3} {}
  part<By> sends() {
    for (const std::int64_t one : varints) {
      co_await weft::io::write_varint(out, one);
      ++written;
    }
    co_await weft::io::write_number(out, std::uint32_t{0x0102'0304}, std::endian::big);
    ++written;
    co_await out.flush();
    ends.to.close();
  }
  part<By> receives() {
    for (const std::int64_t one : varints) {
      const std::int64_t got = co_await weft::io::read_varint<std::int64_t>(in);
      require(got == one, "a part of a number was lost, or came twice");
      ++read;
    }
    const std::uint32_t last = co_await weft::io::read_number<std::uint32_t>(in, std::endian::big);
    require(last == 0x0102'0304, "a part of a number was lost, or came twice");
    ++read;
  }
  part<By> run() { co_await together(receives(), sends()); }
  void check() {
    constexpr std::string_view all{"\0\xd7\x04\x80\xc0\xa8\xca\x9a\x3a\x01\x02\x03\x04", 13};
    static constexpr std::size_t ends_at[] = {0, 1, 3, 9, 13};
    received = text(in.buffered());
    drain();
    require(all.substr(ends_at[read]).starts_with(received), "a part of a number was lost, or came twice");
    require(ends_at[written] == ends_at[read] + received.size() + out.buffered(), "a part of a number was lost");
  }
};
TEST(sweep, numbers) {
  sweep_both<passes_numbers>("io::read_number, io::write_number, io::read_varint, io::write_varint",
                             waits_for_the_other);
}

// What is skipped goes as it comes, but the delimiter is not missed for that.
template <class By>
struct skips : reads_pieces<By> {
  part<By> skip() {
    for (const std::size_t behind : {10U, 17U}) {
      const bool found = co_await this->in.skip_until(behind == 10 ? "\n;" : ";\n");
      require(found, "the delimiter was missed");
      this->taken = behind;
    }
  }
  part<By> run() { co_await together(skip(), this->sends()); }
  void check() {
    this->received = text(this->in.buffered());
    this->drain();
    require(std::string_view{this->sent}.substr(this->taken).ends_with(this->received), "what follows was skipped");
    if (this->taken == 17) require(this->received.size() == this->sent.size() - 17, "what follows was skipped");
  }
};
TEST(sweep, buffered_skip) { sweep_both<skips>("buffered_reader::skip_until", waits_for_the_other); }

// What was taken by a writer is in its buffer or was written, once, in order.
template <class By>
struct writes_pieces : passes_bytes {
  buffered_writer<pipe_writer&> out{ends.to, 6};
  std::string taken;

  writes_pieces() : passes_bytes{4} { taken.reserve(64); }

  part<By> receives() {
    std::array<std::byte, 3> buffer;
    co_await rest(1);
    for (;;) {
      const std::size_t got = co_await ends.from.read(buffer);
      if (got == 0) break;
      received += text(std::span{buffer}.first(got));
    }
  }
  void check() {
    require(out.buffered() <= 6, "a buffer grew");
    drain();
    require(taken.starts_with(received), "a byte was lost, or came twice");
    require(taken.size() == received.size() + out.buffered(), "a byte was lost, or came twice");
  }
};

template <class By>
struct writes_all_and_some : writes_pieces<By> {
  part<By> writes() {
    co_await this->out.write("abcd");
    this->taken += "abcd";
    co_await this->out.write("efg");
    this->taken += "efg";
    for (std::string_view left = "hijklmnop"; !left.empty();) {
      const std::size_t some = co_await this->out.write_some(bytes(left));
      this->taken += left.substr(0, some);
      left.remove_prefix(some);
    }
    co_await this->out.flush();
    this->ends.to.close();
  }
  part<By> run() { co_await together(writes(), this->receives()); }
};
TEST(sweep, buffered_writer) {
  sweep_both<writes_all_and_some>("buffered_writer::write, buffered_writer::write_some", waits_for_the_other);
}

template <class By>
struct prints : writes_pieces<By> {
  part<By> writes() {
    for (int i = 0; i != 3; ++i) {
      co_await this->out.print(12, ',', "x");
      this->taken += "12,x";
    }
    co_await this->out.flush();
    require(this->out.buffered() == 0, "it was not flushed");
    this->ends.to.close();
  }
  part<By> run() { co_await together(writes(), this->receives()); }
};
TEST(sweep, buffered_print) {
  sweep_both<prints>("buffered_writer::print, buffered_writer::flush", waits_for_the_other);
}

// A writer whose buffer is smaller than what it is given writes that at once.
template <class By>
struct writes_large : passes_bytes {
  bool was_written = false;
  writes_large() : passes_bytes{4} {}
  part<By> writes() {
    buffered_writer out{ends.to, 3};
    co_await out.write("ab");
    co_await out.write("cdefghi");
    was_written = true;
    ends.to.close();
  }
  part<By> receives() {
    std::array<std::byte, 3> buffer;
    for (;;) {
      const std::size_t got = co_await ends.from.read(buffer);
      if (got == 0) break;
      received += text(std::span{buffer}.first(got));
    }
  }
  part<By> run() { co_await together(writes(), receives()); }
  void check() {
    drain();
    require(alphabet.starts_with(received), "a byte was lost, or came twice");
    if (was_written) require(received.size() == 9, "a byte was lost");
  }
};
TEST(sweep, buffered_writer_of_much) { sweep_both<writes_large>("buffered_writer::write", waits_for_the_other); }

// From one pipe to another one: by a buffer nothing is lost, whoever is stopped.
template <class By>
struct copies : passes_bytes {
  pipe_ends next = weft::io::pipe(3);
  buffered_reader<pipe_reader&> in{ends.from, 4};
  std::string copied;

  copies() : passes_bytes{2} {}

  part<By> sends() {
    std::string_view left = alphabet.substr(0, 9);
    while (!left.empty()) {
      const std::size_t written = co_await ends.to.write_some(bytes(left));
      sent += left.substr(0, written);
      left.remove_prefix(written);
    }
    ends.to.close();
  }
  part<By> copies_all() {
    const std::uint64_t first = co_await weft::io::copy(in, next.to, 3);
    require(first == 3, "it was not the limit");
    static_cast<void>(co_await weft::io::copy(in, next.to));
    next.to.close();
  }
  part<By> receives() {
    std::array<std::byte, 2> buffer;
    for (;;) {
      const std::size_t got = co_await next.from.read(buffer);
      if (got == 0) break;
      copied += text(std::span{buffer}.first(got));
    }
  }
  part<By> run() { co_await together(sends(), copies_all(), receives()); }
  void check() {
    next.to.close();
    std::array<std::byte, 64> buffer;
    const std::size_t got = weft::sync_wait(next.from.read(buffer));
    copied += text(std::span{buffer}.first(got));
    copied += text(in.buffered());
    drain();
    require(copied + received == sent, "a byte was lost, or came twice");
  }
};
TEST(sweep, copy_by_a_buffer) { sweep_both<copies>("io::copy", waits_for_the_other); }

template <class By>
struct copies_plainly : passes_bytes {
  pipe_ends next = weft::io::pipe(3);
  std::string copied;
  bool was_copied = false;

  copies_plainly() : passes_bytes{2} {}

  part<By> sends() {
    co_await ends.to.write(alphabet.substr(0, 9));
    ends.to.close();
  }
  part<By> copies_all() {
    const std::uint64_t size = co_await weft::io::copy(ends.from, next.to);
    was_copied = size == 9;
    next.to.close();
  }
  part<By> receives() {
    std::array<std::byte, 2> buffer;
    for (;;) {
      const std::size_t got = co_await next.from.read(buffer);
      if (got == 0) break;
      copied += text(std::span{buffer}.first(got));
    }
    if (was_copied) require(copied.size() == 9, "a byte was lost");
  }
  part<By> run() { co_await together(sends(), copies_all(), receives()); }
  void check() const { require(alphabet.starts_with(copied), "a byte was lost, or came twice"); }
};
TEST(sweep, copy) { sweep_both<copies_plainly>("io::copy", waits_for_the_other); }

}  // namespace
