// A plugin with weft inside of it, for grows.cpp: each function uses another part, and returns 0.
#include <chrono>
#include <cstdlib>
#include <memory_resource>
#include <weft/weft.hpp>

namespace {

namespace w = weft;
using namespace std::chrono_literals;

w::task<int> one() { co_return 1; }
w::task<int> sum(int n) {
  if (n == 0) co_return 0;
  auto [a, b] = co_await w::when_all(one(), sum(n - 1));
  co_return a + b;
}
w::task<int> fibers() {
  auto many = [](w::scope& s) -> w::task<int> {
    int all = 0;
    for (int i = 0; i != 20; ++i) s.go([] { return w::await(one()); });
    auto last = s.go([] { return w::await(sum(10)); });
    all += co_await std::move(last);
    co_return all;
  };
  co_return co_await w::with_scope(many);
}
w::task<int> timers() {
  co_await w::sleep_for(1us);
  co_return co_await w::timeout(1h, one());
}

// Stays to the end, as statics do: it is destroyed, and its threads end, when the library is unloaded.
w::pool& pool_of_plugin() {
  static w::pool workers{{.threads = 2}};
  return workers;
}

// Uses both when it is destroyed: that is after their threads have ended, if they were first used after it was made.
int use_timers_and_calls() {
  return w::sync_wait(timers()) - 1 + w::sync_wait(w::blocking([] { return 0; }));
}
struct late_user {
  ~late_user() {
    if (use_timers_and_calls() != 0) std::abort();
  }
};

// Its worker arms a timer when the clock's thread has ended, and before that an earlier one, which does not fire.
struct late_user_of_a_worker {
  w::pool workers{{.threads = 1}};
  int use() { return w::sync_wait(w::start_on(workers.executor(), limited())) - 1; }
  ~late_user_of_a_worker() { w::sync_wait(w::start_on(workers.executor(), sleeps(20ms))); }

  static w::task<int> limited() {
    for (;;) {
      const auto how = co_await w::as_result(w::timeout(10ms, one_later()));
      if (how) co_return how.value();  // else it had no time to run: once more
    }
  }
  static w::task<> sleeps(w::clock::duration d) { co_await w::sleep_for(d); }
  static w::task<int> one_later() {
    co_await sleeps(1us);
    co_return 1;
  }
};

}  // namespace

// Frames of a scope from memory of the plugin's own, which is gone when a thread that used them goes on.
w::task<int> in_memory() {
  static std::pmr::unsynchronized_pool_resource memory;
  const auto many = [](w::scope& s) -> w::task<int> {
    int all = 0;
    for (int i = 0; i != 20; ++i) all += co_await s.fork(one());
    co_return all;
  };
  co_return co_await w::with_scope({.memory = &memory}, many);
}

extern "C" {
int use_memory() { return w::sync_wait(in_memory()) - 20; }
int use_tasks() { return w::sync_wait(one()) - 1; }
int use_fibers() {
  const w::pool workers{{.threads = 2}};
  return w::sync_wait(w::start_on(workers.executor(), fibers())) - 10;
}
int use_static_pool() { return w::sync_wait(w::start_on(pool_of_plugin().executor(), fibers())) - 10; }
int use_timers() { return w::sync_wait(timers()) - 1; }
int use_calls() {
  return w::sync_wait(w::blocking([] { return 0; }));
}
int use_late() {
  static const late_user one;
  return use_timers_and_calls();
}
int use_late_worker() {
  static late_user_of_a_worker one;
  return one.use();
}
int use_signals() {  // of crashes, and of a watchdog, once: the other thread finds one
  w::save_recording_on_crash("/nowhere/at/all");
  static w::watchdog dog;
  return 0;
}
int use_coroutines() {
  w::coroutine<int(int)> twice{[](auto& yield, int n) -> int {
    for (;;) n = yield(2 * n);
  }};
  return twice.resume(21) - 42;  // destroyed half-way
}
}
