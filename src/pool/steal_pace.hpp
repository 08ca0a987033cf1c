// How soon a worker takes something from another again. To take it interrupts all processors (fence.hpp): some 400 ns for
// the thief, where the system is virtual 10 us and more, and half of that for each who works meanwhile. Jobs that take less
// than it took to get them are a loss: their owner would have run them sooner. So a thief to whom that happens pauses before
// the next ones, each time twice as long, until it gets what was worth it, or there are none left.
#pragma once

#include <algorithm>
#include <cstdint>

namespace weft::detail {

class steal_pace {
 public:
  /// Whether it may not yet, at this time, though there is something. Times are nanoseconds of any clock that goes on.
  bool pauses(std::uint64_t now) noexcept {
    pauses_ = now < next_;
    return pauses_;
  }
  /// What that said last; false after another call here.
  bool pauses() const noexcept { return pauses_; }
  /// Whether the time must be known.
  bool may_pause() const noexcept { return pause_ != 0; }

  /// It tried from `before` to `now`, and has some.
  void took(std::uint64_t before, std::uint64_t now) noexcept {
    price_ = std::min(now - before, dearest);
    taken_ = now;
    pauses_ = false;
  }
  /// Whether took() was called since the last has_done().
  bool has_one() const noexcept { return taken_ != 0; }
  /// It is through with those, and all that came of them.
  void has_done(std::uint64_t now) noexcept {
    pause_ = now - taken_ < price_ ? std::clamp(pause_ * 2, price_, price_ * longest) : 0;
    next_ = now + pause_;
    taken_ = 0;
  }
  /// The others have none.
  void found_none() noexcept { pause_ = 0, next_ = 0, pauses_ = false; }

 private:
  static constexpr std::uint64_t longest = 8;       // prices: who works loses a twentieth then
  static constexpr std::uint64_t dearest = 12'000;  // ns; a thief that lost its processor meanwhile took longer

  std::uint64_t price_ = 0;
  std::uint64_t taken_ = 0;  // when
  std::uint64_t pause_ = 0;
  std::uint64_t next_ = 0;  // not before that
  bool pauses_ = false;
};

}  // namespace weft::detail
