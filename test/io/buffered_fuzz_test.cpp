// Random operations on a buffered_reader whose source gives random pieces, fails, and stops who reads, beside a string: what was
// consumed, and what each operation gives, must be what they are of the string.
#include <weft/io.hpp>

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <weft/stop.hpp>
#include <weft/with.hpp>

#include "support/fuzz.hpp"

namespace {

using test::must;
using weft::result;
using weft::task;

std::string_view text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

class source {
 public:
  source(std::string content, test::choices& chosen) : left_{std::move(content)}, chosen_{&chosen} {}

  task<std::size_t> read(std::span<std::byte> into) {
    must(!into.empty(), "it was asked for nothing");
    switch (chosen_->up_to(11)) {
      case 0: throw weft::error{std::make_error_code(std::errc::io_error), "read"};
      case 1:
        stop_->request_stop();
        co_await weft::check_stop();
        break;
      case 2: co_await weft::check_stop(); break;
      default: break;
    }
    const std::size_t size = std::min({left_.size(), into.size(), 1 + chosen_->up_to(6)});
    std::memcpy(into.data(), left_.data(), size);
    left_.erase(0, size);
    co_return size;
  }

  const std::string& left() const noexcept { return left_; }
  /// Of the operation that is under way.
  weft::stop_source& begin() { return stop_.emplace(); }

 private:
  std::string left_;
  test::choices* chosen_;
  std::optional<weft::stop_source> stop_;
};

using reader = weft::io::buffered_reader<source&>;

// Takes a part of what it is given, or fails.
class sink {
 public:
  explicit sink(test::choices& chosen) : chosen_{&chosen} {}
  task<std::size_t> write_some(std::span<const std::byte> data) {
    if (chosen_->one_in(9)) throw weft::error{std::make_error_code(std::errc::io_error), "write"};
    const std::size_t size = std::min(data.size(), 1 + chosen_->up_to(4));
    got += text(data.first(size));
    co_return size;
  }
  task<> write(std::span<const std::byte> data) {
    while (!data.empty()) {
      const std::size_t size = co_await write_some(data);
      data = data.subspan(size);
    }
  }
  std::string got;

 private:
  test::choices* chosen_;
};

class play {
 public:
  explicit play(test::choices& chosen) : chosen_{chosen}, left_{content(chosen)}, from_{left_, chosen} {
    in_.emplace(from_, 1 + chosen.up_to(9));
  }

  task<> run() {
    while (chosen_.are_left()) {
      co_await step();
      must(std::string{text(in_->buffered())} + from_.left() == left_, "a byte was lost, or came twice");
    }
  }

 private:
  static std::string content(test::choices& chosen) {
    std::string all;
    for (std::size_t i = 0, count = chosen.up_to(80); i != count; ++i) all += chosen.of("ab\r\n;;");
    return all;
  }

  task<> step() {
    switch (chosen_.up_to(9)) {
      case 0: return read();
      case 1: return read_exactly();
      case 2: return read_until();
      case 3: return read_line();
      case 4: return lines();
      case 5: return skip_until();
      case 6: return peek();
      case 7: return copy();
      case 8: return consume();
      default: return move();
    }
  }

  // An operation, whose stop is the source's. False: it was stopped, or failed as the source or the sink does, so has consumed
  // nothing; then run() sees that.
  template <class Make>
  task<bool> ended(auto& how, Make&& make) {
    how = co_await weft::as_result(weft::with_stop(from_.begin().token(), make));
    co_return how.error() != std::errc::io_error && !how.is_stopped();
  }
  template <class T>
  static void must_be(const result<T>& how, std::error_code error) {
    must(how.error() == error, "it was to fail with " + error.message() + ", not " + how.error().message());
  }
  void took(std::size_t size) { left_.erase(0, size); }

  task<> read() {
    std::array<std::byte, 16> into;
    const std::span<std::byte> room = std::span{into}.first(chosen_.up_to(into.size()));
    result<std::size_t> got;
    const auto make = [&] { return in_->read(room); };
    const bool is_over = co_await ended(got, make);
    if (!is_over) co_return;
    must((*got == 0) == (room.empty() || left_.empty()), "it ends too early, or not at all");
    must(left_.starts_with(text(room.first(*got))), "it reads something else");
    took(*got);
  }

  task<> read_exactly() {
    std::array<std::byte, 24> into;
    const std::span<std::byte> room = std::span{into}.first(chosen_.up_to(into.size()));
    result<void> how;
    const auto make = [&] { return in_->read_exactly(room); };
    const bool is_over = co_await ended(how, make);
    if (!is_over) co_return;
    if (room.size() > left_.size()) {
      must_be(how, weft::errc::closed);
      try {
        how.value();
      } catch (const weft::io::ended_early& end) {
        must(end.missing() == room.size() - left_.size(), "another number is missing");
      }
      co_return;
    }
    how.value();
    must(left_.starts_with(text(room)), "it reads something else");
    took(room.size());
  }

  std::size_t limit() { return chosen_.one_in(4) ? std::numeric_limits<std::size_t>::max() : chosen_.up_to(20); }
  std::string_view delimiter() {
    static constexpr std::string_view those[] = {";", "\r\n", ";;", "aba", "\n"};
    return those[chosen_.up_to(std::size(those) - 1)];
  }

  task<> read_until() {
    const std::string_view until = delimiter();
    const std::size_t most = limit();
    result<std::optional<std::string>> piece;
    const auto make = [&] { return in_->read_until(until, most); };
    const bool is_over = co_await ended(piece, make);
    if (!is_over) co_return;
    const std::size_t at = left_.find(until);
    if (at != left_.npos && at <= most) {
      must(*piece == left_.substr(0, at), "it is another piece");
      took(at + until.size());
    } else if (left_.size() >= until.size() && left_.size() - until.size() >= most) {
      must_be(piece, std::make_error_code(std::errc::message_size));
    } else if (left_.empty()) {
      must(*piece == std::nullopt, "there is something behind the end");
    } else {
      must_be(piece, weft::errc::closed);
    }
  }

  // What a line is of what is left: its size, and that with its end. `most` is exceeded: nothing.
  std::optional<std::pair<std::size_t, std::size_t>> line(std::size_t most) const {
    const std::size_t end = left_.find('\n');
    std::pair<std::size_t, std::size_t> sizes{left_.size(), left_.size()};
    if (end != left_.npos) sizes = {end != 0 && left_[end - 1] == '\r' ? end - 1 : end, end + 1};
    if (sizes.first > most) return std::nullopt;
    return sizes;
  }

  void must_be_line(const std::optional<std::string>& got, std::size_t most) {
    const auto sizes = line(most);
    must(sizes.has_value(), "it exceeds its limit");
    must(got.has_value() != left_.empty(), "it ends too early, or not at all");
    if (!got) return;
    must(*got == left_.substr(0, sizes->first), "it is another line");
    took(sizes->second);
  }

  task<> read_line() {
    const std::size_t most = limit();
    result<std::optional<std::string>> got;
    const auto make = [&] { return in_->read_line(most); };
    const bool is_over = co_await ended(got, make);
    if (!is_over) co_return;
    if (!line(most)) co_return must_be(got, std::make_error_code(std::errc::message_size));
    must_be_line(*got, most);
  }

  task<> lines() {
    const std::size_t most = limit();
    auto all = in_->lines(most);
    for (std::size_t i = 0, count = chosen_.up_to(3); i != count; ++i) {
      result<std::string*> got;
      const auto make = [&]() -> task<std::string*> { co_return co_await all.next(); };
      const bool is_over = co_await ended(got, make);
      if (!is_over) break;
      if (!line(most)) co_return must_be(got, std::make_error_code(std::errc::message_size));
      std::optional<std::string> one;
      if (*got != nullptr) one = std::move(**got);
      must_be_line(one, most);
      if (!one) break;
    }
  }

  task<> skip_until() {
    const std::string_view until = delimiter();
    const std::size_t at = left_.find(until);
    result<bool> how;
    const auto make = [&] { return in_->skip_until(until); };
    const bool is_over = co_await ended(how, make);
    if (is_over) {
      must(*how == (at != left_.npos), "it skips to somewhere else");
      co_return took(at != left_.npos ? at + until.size() : left_.size());
    }
    std::string now = std::string{text(in_->buffered())} + from_.left();  // it may have dropped what comes before
    must(left_.ends_with(now), "it drops something else");
    if (at != left_.npos) must(now.find(until) == at - (left_.size() - now.size()), "it drops the delimiter");
    left_ = std::move(now);
  }

  task<> peek() {
    const std::size_t size = chosen_.up_to(20);
    result<std::span<const std::byte>> seen;
    const auto make = [&] { return in_->peek(size); };
    const bool is_over = co_await ended(seen, make);
    if (!is_over) co_return;
    must(seen->size() >= std::min(size, left_.size()), "it sees too little");
    must(left_.starts_with(text(*seen)), "it sees something else");
  }

  task<> copy() {
    sink to{chosen_};
    const std::uint64_t most = chosen_.up_to(40);
    result<std::uint64_t> copied;
    const auto make = [&] { return weft::io::copy(*in_, to, most); };
    const bool is_over = co_await ended(copied, make);
    must(left_.starts_with(to.got), "it copies something else");
    if (is_over)
      must(*copied == std::min<std::uint64_t>(most, left_.size()) && *copied == to.got.size(), "it copies less");
    took(to.got.size());
  }

  task<> consume() {
    const std::size_t size = chosen_.up_to(std::min<std::size_t>(in_->buffered().size(), 255));
    in_->consume(size);
    took(size);
    co_return;
  }

  task<> move() {
    reader other{std::move(*in_)};
    in_.emplace(std::move(other));
    co_return;
  }

  test::choices& chosen_;
  std::string left_;
  source from_;
  std::optional<reader> in_;
};

WEFT_FUZZ(buffered_reader, 4000, 400) {
  play one{chosen};
  weft::sync_wait(one.run());
}

}  // namespace
