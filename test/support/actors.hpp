// Those that act on one object at a time, for recorded histories: tasks and fibers on a pool, and plain threads. What they
// do is written once, as a coroutine that is a task, or is played by a fiber or a thread (support/sweep.hpp); and each wait
// may be stopped, by another of them or by a deadline.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>
#include <weft/combine.hpp>
#include <weft/error.hpp>
#include <weft/fiber.hpp>
#include <weft/pool.hpp>
#include <weft/scope.hpp>
#include <weft/stop.hpp>
#include <weft/sync.hpp>
#include <weft/task.hpp>
#include <weft/with.hpp>

#include "support/sweep.hpp"

namespace test {

/// A part that a plain thread plays.
struct by_thread : by_fiber {};

/// What ends a wait before it has what it wants.
struct limit {
  enum class by { nothing, deadline, stop } what = by::nothing;
  std::chrono::microseconds soon{};
  weft::stop_token told{};
};

enum class outcome { done, closed, gave_up };

/// Awaits `make()`, within its limit; what that gives, if anything, goes to `then`. A deadline may not strike once there is
/// a result, so what timeout() says is taken for true; what is stopped may have done its part before, so that is noted at
/// once.
template <class By, class Make, class Then>
part<By, outcome> attempt(limit within, Make make, Then then) {
  using gives = weft::await_result<std::invoke_result_t<Make>>;
  using stopped_by = std::conditional_t<std::is_same_v<By, by_thread>, by_task, By>;  // a thread waits for a task
  bool done = false;
  const auto note = [&]<class... Value>(Value&&... value) {
    then(std::forward<Value>(value)...);
    done = true;
  };
  auto once = [&]<class How>(How) -> part<How> {
    if constexpr (std::is_void_v<gives>) {
      co_await make();
      note();
    } else {
      note(co_await make());
    }
  };
  auto stoppable = [&] { return as_played(once(stopped_by{})); };
  try {
    if (within.what == limit::by::nothing) {
      co_await once(By{});
    } else if (within.what == limit::by::stop) {
      const auto how = co_await weft::as_result(weft::with_stop(within.told, stoppable));
      if (how.exception()) std::rethrow_exception(how.exception());
    } else if constexpr (std::is_void_v<gives>) {
      const auto how = co_await weft::as_result(weft::timeout(within.soon, make()));
      if (how.exception()) std::rethrow_exception(how.exception());
      if (how) note();
    } else {
      auto how = co_await weft::as_result(weft::timeout(within.soon, make()));
      if (how.exception()) std::rethrow_exception(how.exception());
      if (how) note(*std::move(how));
    }
  } catch (const weft::error& e) {
    if (e.code() == weft::errc::closed) co_return outcome::closed;
    if (e.code() != weft::errc::timed_out) throw;
  }
  co_return done ? outcome::done : outcome::gave_up;
}

/// For each step of each actor, what may stop it. The one before it in the circle does, when it comes to the same step.
class stops {
 public:
  stops(std::size_t actors, std::size_t steps) : actors_{actors}, all_(actors * steps) {}

  weft::stop_token of(std::size_t who, std::size_t step) { return all_[step * actors_ + who].token(); }
  void comes_to(std::size_t who, std::size_t step) { all_[step * actors_ + (who + 1) % actors_].request_stop(); }

  /// A limit by chance: as often none, a deadline, or a stop.
  limit some(std::size_t who, std::size_t step, std::uint32_t chance) {
    return {static_cast<limit::by>(chance % 3), std::chrono::microseconds{chance / 3 % 30}, of(who, step)};
  }

 private:
  std::size_t actors_;
  std::vector<weft::stop_source> all_;
};

/// Runs `script(By{}, who)`, a part, by so many actors at a time: a task, a fiber, a thread, and again. `first` is of which
/// kind the first one is. All have begun before one goes on.
template <class Script>
void all_act(const weft::pool& on, std::size_t actors, std::size_t first, Script script) {
  weft::latch start{actors};
  std::vector<std::jthread> threads;
  auto as_a_task = [&](std::size_t who) -> weft::task<> {
    co_await start.arrive_and_wait();
    co_await script(by_task{}, who);
  };
  auto body = [&](weft::scope& s) -> weft::task<> {
    for (std::size_t who = 0; who != actors; ++who) switch ((first + who) % 3) {
        case 0: s.fork(as_a_task, who); break;
        case 1:
          s.go([&, who] {
            weft::await(start.arrive_and_wait());
            script(by_fiber{}, who).play();
          });
          break;
        default:
          threads.emplace_back([&, who] {
            weft::sync_wait(start.arrive_and_wait());
            script(by_thread{}, who).play();
          });
      }
    co_return;
  };
  weft::sync_wait(weft::with_scope({.executor = &on.executor()}, body));
  threads.clear();
}

}  // namespace test
