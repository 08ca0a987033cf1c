// What a timeout is made of: a group of one child, which a timer may decide. The timer is armed only where the child waits, so
// an operation that is ready at once pays for one look at the clock. Part of timed.hpp.
#pragma once

#include <cstddef>
#include <source_location>
#include <tuple>
#include <type_traits>
#include <utility>
#include <weft/clock.hpp>
#include <weft/detail/core/root.hpp>
#include <weft/detail/join/group.hpp>
#include <weft/task.hpp>

namespace weft::detail {

[[noreturn]] void throw_timed_out(clock::duration limit);

/// How much time there is, and which line has said so.
struct time_limit {
  clock::duration limit;
  std::source_location where;
};

template <class T>
class timed_awaiter : public tuple_group<T>, timer {
 public:
  timed_awaiter(const time_limit& most, std::tuple<task<T>>&& work) noexcept
      : tuple_group<T>{std::move(work), kind, most.where}, timer{over}, limit_{most.limit} {}
  ~timed_awaiter() { disarm(); }

  template <class Promise>
  void await_suspend(std::coroutine_handle<Promise> caller) noexcept {
    root& self = suspending(caller);
    clock_ = &clock_of(self);
    if (limit_ > clock::duration::zero()) end_ = later(clock_->now(), limit_);
    this->start(self);
  }
  T await_resume() {
    disarm();
    outcome<T>& slot = std::get<0>(this->slots_);
    if (slot.is_empty()) throw_timed_out(limit_);
    return slot.take();
  }

 private:
  static void about_to_wait(group& self) noexcept {
    auto& mine = static_cast<timed_awaiter&>(self);
    if (mine.limit_ <= clock::duration::zero()) {
      mine.decide();
      return;
    }
    mine.armed_ = true;
    mine.list();
    mine.clock_->arm(mine, mine.end_);
  }
  static void over(timer& self) noexcept { static_cast<timed_awaiter&>(self).decide(); }
  static constexpr group::deciding kind{timed_awaiter::prepare, nullptr, about_to_wait,
                                        "the time of the timeout() is over"};

  // From here on `over` does not run, unless it is what calls this, and touches nothing more.
  void disarm() noexcept {
    if (std::exchange(armed_, false)) clock_->cancel(*this);
  }

  clock::duration limit_;
  clock::time_point end_{};
  clock* clock_ = nullptr;
  bool armed_ = false;  // was
};

/// For a select, which refuses one that limits what would be a case by itself.
template <bool>
struct limits {};
template <>
struct limits<true> {
  using limits_a_case = void;
};
template <class Awaitable>
inline constexpr bool may_be_a_case = requires { typename std::remove_cvref_t<Awaitable>::may_be_a_case; };

template <class T, bool of_a_case = false>
class WEFT_TO_BE_AWAITED("timeout does nothing until it is awaited") WEFT_ELIDABLE timed : public knows_roots,
                                                                                           public limits<of_a_case> {
 public:
  timed(const time_limit& most, task<T>&& work) noexcept : most_{most}, work_{std::move(work)} {}
  timed_awaiter<T> operator co_await() && noexcept { return {most_, std::move(work_)}; }

 private:
  time_limit most_;
  std::tuple<task<T>> work_;
};

struct timeout_kind {
  template <class Awaitable, class>
  static auto around(Awaitable&& work, const time_limit& most) {
    return timed<await_result<Awaitable>, may_be_a_case<Awaitable>>{most, as_task(std::forward<Awaitable>(work))};
  }
};

/// What retry calls.
template <class F>
concept attempt = !weft::awaitable<F> && std::is_invocable_v<std::decay_t<F>&>;

}  // namespace weft::detail
