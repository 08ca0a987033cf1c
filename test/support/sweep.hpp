// Both sweeps of the test kit at once, and what the scenarios have in common.
//
//     TEST(sweep, timeout) { test::sweep<timed>("timeout"); }  // the names are read by tools/check_swept
//
// A scenario whose coroutines are `part<By>` is swept as tasks and as fibers: test::sweep_both<scenario>(names).
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <coroutine>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <weft/blocking.hpp>
#include <weft/clock.hpp>
#include <weft/combine.hpp>
#include <weft/fiber.hpp>
#include <weft/scope.hpp>
#include <weft/task.hpp>
#include <weft/test.hpp>

#include "support/weft_test.hpp"

namespace test {

/// Where WEFT_IO has sweeps run on io_uring, and the system refuses it, no test runs.
class asks_for_rings : public testing::Environment {
  void SetUp() override {
    try {
      weft::test::run([]() -> weft::task<> { co_return; });
    } catch (const weft::error& refused) {
      GTEST_SKIP() << refused.what();
    }
  }
};
[[maybe_unused]] inline testing::Environment* const has_asked_for_rings =
    testing::AddGlobalTestEnvironment(new asks_for_rings);

/// A thread that a scenario waits for may be held up for long on a busy machine.
constexpr weft::test::sweep_options patient(weft::test::sweep_options options) {
  options.patience = std::max(options.patience, weft::detail::time_span{std::chrono::minutes{2}});
  return options;
}

/// With a stop at each place of each await, then with each allocation failing.
template <class Scenario>
void sweep(std::string_view names, const weft::test::sweep_options& options = {}) {
  weft::test::cancellation_sweep<Scenario>(patient(options), names);
  weft::test::allocation_sweep<Scenario>(patient(options), names);
}
template <class F>
void sweep(std::string_view names, const F& make, const weft::test::sweep_options& options = {}) {
  weft::test::cancellation_sweep(patient(options), names, make);
  weft::test::allocation_sweep(patient(options), names, make);
}

// ---- by tasks and by fibers ---------------------------------------------------------------------------------------------

struct in_fiber {};
struct on_thread {};
template <class T, class Where = in_fiber>
class part_of_fiber;

/// What a part of a scenario is: a task, or what a fiber runs, which then waits by weft::await at each `co_await` of it; or what
/// a plain thread runs, which waits by sync_wait.
struct by_task {
  template <class T>
  using part = weft::task<T>;
};
struct by_fiber {
  template <class T>
  using part = part_of_fiber<T>;
};
struct by_plain_thread {
  template <class T>
  using part = part_of_fiber<T, on_thread>;
};
template <class By, class T = void>
using part = typename By::template part<T>;

namespace detail {

/// A `co_await` in a fiber: the coroutine goes on at once, and the fiber waits in the middle of that. Or a plain thread does.
template <class Awaitable>
struct waits_in_fiber {
  Awaitable&& what;
  bool await_ready() const noexcept { return true; }
  void await_suspend(std::coroutine_handle<>) const noexcept {}
  decltype(auto) await_resume() const {
    return weft::this_fiber::is_running() ? weft::await(std::forward<Awaitable>(what))
                                          : weft::sync_wait(std::forward<Awaitable>(what));
  }
};
template <class T, class Where>
struct plays_in_fiber {
  part_of_fiber<T, Where> what;
  bool await_ready() const noexcept { return true; }
  void await_suspend(std::coroutine_handle<>) const noexcept {}
  T await_resume() const { return what.play(); }
};

template <class T>
struct kept_by_part {
  std::optional<T> kept;
  template <class U = T>
  void return_value(U&& value) {
    kept.emplace(std::forward<U>(value));
  }
  T take() { return std::move(*kept); }
};
template <>
struct kept_by_part<void> {
  void return_void() const noexcept {}
  void take() const noexcept {}
};

}  // namespace detail

/// A coroutine that never suspends: what it awaits, the fiber that plays it waits for.
template <class T, class Where>
class [[nodiscard]] part_of_fiber {
 public:
  struct promise_type : detail::kept_by_part<T> {
    part_of_fiber get_return_object() noexcept {
      return part_of_fiber{std::coroutine_handle<promise_type>::from_promise(*this)};
    }
    std::suspend_always initial_suspend() const noexcept { return {}; }
    std::suspend_always final_suspend() const noexcept { return {}; }
    [[noreturn]] void unhandled_exception() const { throw; }  // `stopped`, too
    template <class Awaitable>
    detail::waits_in_fiber<Awaitable> await_transform(Awaitable&& what) noexcept {
      return {std::forward<Awaitable>(what)};
    }
    template <class U>
    detail::plays_in_fiber<U, Where> await_transform(part_of_fiber<U, Where>&& what) noexcept {
      return {std::move(what)};
    }
  };

  part_of_fiber(part_of_fiber&& other) noexcept : frame_{std::exchange(other.frame_, nullptr)} {}
  ~part_of_fiber() {
    if (frame_) frame_.destroy();
  }

  /// In a fiber, or on a plain thread: runs it to its end.
  T play() const {
    frame_.resume();
    return frame_.promise().take();
  }

 private:
  explicit part_of_fiber(std::coroutine_handle<promise_type> frame) noexcept : frame_{frame} {}
  std::coroutine_handle<promise_type> frame_;
};

/// A part as a task: as it is, with a fiber of its own, or with a thread of those for calls that block.
template <class T>
weft::task<T> as_played(weft::task<T> one) {
  return one;
}
template <class T>
weft::task<T> as_played(part_of_fiber<T> one) {
  auto body = [&one](weft::scope& s) -> weft::task<T> {
    auto fiber = s.go([&one] { return one.play(); });
    co_return co_await std::move(fiber);
  };
  co_return co_await weft::with_scope(body);
}
template <class T>
weft::task<T> as_played(part_of_fiber<T, on_thread> one) {
  co_return co_await weft::blocking([&one] { return one.play(); });
}

/// All at a time: parts, and whatever else is awaited.
template <class... All>
auto together(All&&... all) {
  auto as_awaited = []<class One>(One&& one) {
    if constexpr (requires { as_played(std::forward<One>(one)); })
      return as_played(std::forward<One>(one));
    else
      return std::forward<One>(one);
  };
  return weft::when_all(as_awaited(std::forward<All>(all))...);
}

namespace detail {
template <class Scenario>
struct played : Scenario {
  auto run() { return as_played(Scenario::run()); }
};
}  // namespace detail

/// A scenario whose parts are tasks, then the same with a fiber for each.
template <template <class> class Scenario>
void sweep_both(std::string_view names, const weft::test::sweep_options& options = {}) {
  sweep<Scenario<by_task>>(names, options);
  sweep<detail::played<Scenario<by_fiber>>>(std::string{names} + " in fibers", options);
}

template <template <class> class Scenario>
void allocation_sweep_both(std::string_view names, const weft::test::sweep_options& options = {}) {
  weft::test::allocation_sweep<Scenario<by_task>>(patient(options), names);
  weft::test::allocation_sweep<detail::played<Scenario<by_fiber>>>(patient(options), std::string{names} + " in fibers");
}

// ---- what they are made of ----------------------------------------------------------------------------------------------

/// Whether it ended for want of memory, as an allocation sweep has it end.
template <class T>
bool lacked_memory(const weft::result<T>& how) {
  if (!how.exception()) return false;
  try {
    std::rethrow_exception(how.exception());
  } catch (const std::bad_alloc&) {
    return true;
  } catch (...) {
    return false;
  }
}

/// Values that are counted: a scenario that has this for a base fails if one is left, or was destroyed twice.
struct counts_values {
  std::atomic<int> alive{0};

  void check() const {
    weft::test::require(alive >= 0, "a value was destroyed twice");
    weft::test::require(alive == 0, "a value was not destroyed");
  }
  counted value() { return counted{alive}; }
};

/// Takes a while, and gives something.
inline weft::task<int> nap(int milliseconds, int value = 1) {
  co_await weft::sleep_for(std::chrono::milliseconds{milliseconds});
  co_return value;
}
inline weft::task<> rest(int milliseconds) { co_await weft::sleep_for(std::chrono::milliseconds{milliseconds}); }

/// Takes a while, with a value in its frame.
inline weft::task<int> hold(counts_values& of, int milliseconds, int value = 1) {
  const counted held = of.value();
  co_return co_await nap(milliseconds, value);
}

/// Takes a while, and gives a value.
inline weft::task<counted> make(counts_values& of, int milliseconds) {
  counted made = of.value();
  co_await rest(milliseconds);
  co_return made;
}

/// Takes a while, and fails.
inline weft::task<int> fail(int milliseconds, const char* what = "as planned") {
  co_await rest(milliseconds);
  throw std::runtime_error{what};
}

/// What sweeps say all the time.
namespace in_sweeps {
using namespace std::chrono_literals;
using test::allocation_sweep_both;
using test::counted;
using test::counts_values;
using test::fail;
using test::hold;
using test::make;
using test::nap;
using test::part;
using test::rest;
using test::sweep;
using test::sweep_both;
using test::together;
using weft::as_result;
using weft::task;
using weft::test::require;

/// Where one is stopped, the other may wait for ever, as it should: then it is stopped, too.
inline constexpr weft::test::sweep_options waits_for_the_other{.stop_when_idle = true};
}  // namespace in_sweeps

}  // namespace test
