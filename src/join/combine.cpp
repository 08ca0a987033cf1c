#include <cmath>
#include <cstdio>
#include <mutex>
#include <utility>
#include <weft/combine.hpp>

#include "core/turns.hpp"

namespace weft::detail {

void throw_too_few(const char* operation) {
  throw error{std::make_error_code(std::errc::invalid_argument), operation, "of a range with too few elements"};
}

void throw_timed_out(clock::duration limit) {
  record(event_kind::deadline, 0, 0, as_number("timeout()"));
  char subject[48];
  std::snprintf(subject, sizeof subject, "of %g ms", std::chrono::duration<double, std::milli>{limit}.count());
  throw error{errc::timed_out, "timeout", subject};
}

// ---- retry ------------------------------------------------------------------------------------------------------------

namespace {

// Source: Steele, Lea, Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014 (SplitMix64).
double next_random(std::uint64_t& state) noexcept {
  std::uint64_t z = (state += 0x9e3779b97f4a7c15);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return static_cast<double>((z ^ (z >> 31)) >> 11) * 0x1p-53;
}

}  // namespace

void expect_sense(const retry_policy& policy) noexcept {
  WEFT_EXPECTS(policy.delay >= clock::duration::zero() && policy.max_delay >= clock::duration::zero(),
               "retry was given a policy whose delay or max_delay is below zero");
  WEFT_EXPECTS(policy.factor >= 0 && std::isfinite(policy.factor),
               "retry was given a policy whose factor is below zero, or no number");
  WEFT_EXPECTS(policy.jitter >= 0 && policy.jitter <= 1, "retry was given a policy whose jitter is not from 0 to 1");
}

back_off::back_off(const retry_policy& policy) noexcept
    : policy_{policy},
      random_{policy.seed != 0 ? policy.seed
                               : static_cast<std::uint64_t>(real_clock().now().time_since_epoch().count()) ^
                                     reinterpret_cast<std::uintptr_t>(this)},
      delay_{static_cast<double>(policy.delay.count())} {}

bool back_off::again(const std::exception_ptr& failure) {
  ++made_;
  return made_ < policy_.attempts && (policy_.worth_it == nullptr || policy_.worth_it(failure));
}

clock::duration back_off::next() noexcept {
  const double most = static_cast<double>(policy_.max_delay.count());
  const double whole = std::fmin(delay_, most);
  delay_ = whole * policy_.factor;
  return saturated(
      std::chrono::duration<double, clock::duration::period>{whole * (1 - policy_.jitter * next_random(random_))});
}

// ---- merge ------------------------------------------------------------------------------------------------------------

bool turns::wait(waiter& one, root& self) noexcept {
  {
    const std::lock_guard guard{lock_};
    if (!std::exchange(taken_, true)) return false;
    if (self.park(one)) {
      line_.push(one);
      return true;
    }
  }
  end_stopped(self);
  return true;
}

on_stop turns::awaiter::leave(waiter& self) noexcept {
  turns& of = static_cast<awaiter&>(self).of_;
  const std::lock_guard guard{of.lock_};
  of.line_.remove(self);
  return on_stop::left;
}

void turns::pass_on() noexcept {
  waiter* following = nullptr;
  {
    const std::lock_guard guard{lock_};
    while ((following = line_.pop()) != nullptr && !following->try_claim()) {  // a stop came first: the next
    }
    if (following == nullptr) taken_ = false;
  }
  if (following != nullptr) following->wake();
}

// ---- detach_on_stop -----------------------------------------------------------------------------------------------------

// Not the rest: a stop that is not its own, what lies in frames that it may outlive, and a sync_wait as executor.
detached_env::detached_env(const root& from) noexcept {
  if (from.env != nullptr) own_env = {.executor = blocking_root::lasting_executor(from), .clock = from.env->clock};
}

}  // namespace weft::detail
