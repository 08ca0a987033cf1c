// A token bucket. Of those that want tokens which are not there, the first sleeps until they are; the others are in line
// behind it. When the first has its tokens, or is stopped, it gives those behind it what is there, in order, and has the
// next one that must wait be the first.
//
// Rejected: (a) a time for each on arrival (virtual scheduling): one that is stopped would leave a hole, which those behind
// it sleep through. (b) A timer of the bucket: whoever arms it may have another clock, and to cancel it waits for its
// function, which takes the bucket's lock. (c) A turn that goes from one to the next: a burst would be let through one
// wake-up after the other.
#include <weft/token_bucket.hpp>

#include <algorithm>
#include <mutex>
#include <string>
#include <system_error>
#include <weft/clock.hpp>
#include <weft/error.hpp>

namespace weft {

using detail::end_stopped;
using detail::root;

token_bucket::token_bucket(const token_bucket_options& options) noexcept
    : rate_{options.rate},
      burst_{options.burst},
      per_{static_cast<parts>(options.per.count())},
      level_{per_ * options.burst} {
  WEFT_EXPECTS(options.rate != 0, "a token_bucket with a rate of 0 was asked for: no token would ever come");
  WEFT_EXPECTS(options.per > clock::duration::zero(), "a token_bucket was given a period that is no time");
  WEFT_EXPECTS(options.burst != 0, "a token_bucket with a burst of 0 was asked for: it would hold no token");
}

token_bucket::~token_bucket() {
  const std::lock_guard guard{lock_};
  WEFT_EXPECTS(!has_first_, "a token_bucket was destroyed while somebody waits for its tokens");
}

void token_bucket::expect_room_for(std::size_t count) const {
  if (count <= burst_) return;
  throw error{std::make_error_code(std::errc::invalid_argument), "token_bucket: take",
              std::to_string(count) + " tokens of a bucket that holds " + std::to_string(burst_)};
}

// How full it is now. On top of its burst it holds what comes in less than a tick, and is less than a token, so that who sleeps,
// up to the next whole tick, loses no fraction. A time before the last one is that of a thread that has read the clock earlier.
token_bucket::parts token_bucket::filled(clock::time_point now) const noexcept {
  const parts most = per_ * burst_ + std::min<parts>(rate_, per_) - 1;
  if (now <= level_at_ || level_ == most) return level_;
  const parts missing = most - level_, come = static_cast<parts>((now - level_at_).count()) * rate_;
  return come < missing ? level_ + come : most;
}

bool token_bucket::has_taken(std::size_t count, clock::time_point now) noexcept {
  level_ = filled(now);
  if (now > level_at_) level_at_ = now;
  if (level_ < per_ * count) return false;
  level_ -= per_ * count;
  return true;
}

// When there will be so many, as there are not yet.
clock::time_point token_bucket::due(std::size_t count) const noexcept {
  const parts ticks = (per_ * count - level_ + rate_ - 1) / rate_;
  const parts most = static_cast<parts>(clock::duration::max().count());
  return detail::later(level_at_, clock::duration{static_cast<clock::duration::rep>(ticks < most ? ticks : most)});
}

// One that wants tokens: has them when it goes on, or is the first of those that wait.
class token_bucket::awaiter : public detail::gate_waiter, public detail::gate_awaiter<awaiter> {
 public:
  using has_arrived = void;
  awaiter(token_bucket& of, std::size_t count) noexcept : gate_waiter{of, type}, count_{count} {}

  bool suspend(root& self) noexcept {
    if (self.sleeper::stop_requested()) return (end_stopped(self), true);
    token_bucket& b = of();
    const clock::time_point now = detail::clock_of(self).now();
    b.lock_.lock();
    if (b.has_first_) {
      b.wait(self, *this);
      return true;
    }
    b.has_first_ = is_first_ = !b.has_taken(count_, now);
    b.lock_.unlock();
    return false;
  }
  place await_resume() noexcept;

 private:
  friend class token_bucket;
  token_bucket& of() const noexcept { return static_cast<token_bucket&>(*gate_); }
  static constexpr detail::wait_type type = type_called("token_bucket");
  const std::size_t count_;
  bool is_first_ = false;  // under the lock until it is woken
};

// That of the first one, which is given up where this ends; or none.
class token_bucket::place {
 public:
  place(token_bucket& of, bool is_first) noexcept : of_{of}, clock_{current_clock()}, is_first_{is_first} {}
  place(const place&) = delete;
  ~place() {
    if (is_first_) of_.pass_on(clock_.now());
  }

  bool is_first() const noexcept { return is_first_; }
  bool has_taken(std::size_t count) noexcept {
    const clock::time_point now = clock_.now();
    const std::lock_guard guard{of_.lock_};
    return of_.has_taken(count, now);
  }
  clock::time_point due(std::size_t count) const noexcept {
    const std::lock_guard guard{of_.lock_};
    return of_.due(count);
  }

 private:
  token_bucket& of_;
  clock& clock_;
  const bool is_first_;
};

token_bucket::place token_bucket::awaiter::await_resume() noexcept { return {of(), is_first_}; }

// By the first one. Who is let through may destroy the bucket, which is not touched behind the lock.
void token_bucket::pass_on(clock::time_point now) noexcept {
  let_through through;
  const std::lock_guard guard{lock_};
  while (detail::waiter* const one = line_.first()) {
    auto& next = static_cast<awaiter&>(*one);
    line_.remove(next);
    if (!through.add(next)) continue;  // a stop came first
    if (has_taken(next.count_, now)) continue;
    next.is_first_ = true;
    return;
  }
  has_first_ = false;
}

task<> token_bucket::take(std::size_t count) {
  expect_room_for(count);
  place mine = co_await detail::at_gate<awaiter, token_bucket>{*this, count};
  while (mine.is_first() && !mine.has_taken(count)) co_await sleep_until(mine.due(count));
}

bool token_bucket::try_take(std::size_t count) {
  expect_room_for(count);
  const clock::time_point now = current_clock().now();
  const std::lock_guard guard{lock_};
  return !has_first_ && has_taken(count, now);
}

std::size_t token_bucket::available() const noexcept {
  const clock::time_point now = current_clock().now();
  const std::lock_guard guard{lock_};
  return static_cast<std::size_t>(filled(now) / per_);
}

}  // namespace weft
