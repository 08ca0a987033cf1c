#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>
#include <weft/combine.hpp>
#include <weft/executor.hpp>
#include <weft/from_callback.hpp>
#include <weft/future.hpp>

#include "support/weft_test.hpp"

namespace {

using weft::as_result;
using weft::callback;
using weft::from_callback;
using weft::stop_source;
using weft::stopped;
using weft::sync_wait;
using weft::task;

// A C library, which reports through a function and a context.
using c_function = void (*)(void* context, int value);
void c_increment(int value, c_function done, void* context) { done(context, value + 1); }

// A library with one operation at a time: it reports when it is told to, perhaps on another thread.
template <class T>
struct operation {
  std::atomic<bool> started = false;
  std::optional<callback<T>> done;
  auto start() {
    return [this](callback<T> to_call) {
      done = to_call;
      started = true;
    };
  }
  void wait() const {
    test::until([this] { return started.load(); });
  }
};

static_assert(std::is_trivially_copyable_v<callback<int>> && sizeof(callback<int>) == sizeof(void*));

// ---- what comes back ------------------------------------------------------------------------------------------------

WEFT_TEST("callback: one that comes at once is a value") {
  EXPECT_EQ(co_await from_callback<int>([](callback<int> done) { done(7); }), 7);
  EXPECT_EQ(co_await from_callback<std::string>([](callback<std::string> done) { done("text"); }), "text");
  co_await from_callback([](callback<> done) { done(); });
  int n = 0;
  int& same = co_await from_callback<int&>([&](callback<int&> done) { done(n); });
  EXPECT_EQ(&same, &n);
  auto moves = co_await from_callback<std::unique_ptr<int>>(
      [](callback<std::unique_ptr<int>> done) { done.set_value(std::make_unique<int>(3)); });
  EXPECT_EQ(*moves, 3);
}

WEFT_TEST("callback: goes through a C function as a void*") {
  int n = co_await from_callback<int>([](callback<int> done) {
    c_increment(1, [](void* context, int value) { callback<int>::from_address(context)(value); }, done.address());
  });
  EXPECT_EQ(n, 2);
}

WEFT_TEST("callback: goes through a std::function, copied") {
  std::vector<std::function<void(int)>> kept;
  auto start = [&](callback<int> done) {
    kept.emplace_back(done);
    kept.push_back(kept.front());
    kept.back()(5);
  };
  EXPECT_EQ(co_await from_callback<int>(start), 5);
}

WEFT_TEST("callback: comes later, from another thread") {
  for (int i = 0; i < 10; ++i) {
    std::jthread thread;
    auto start = [&](callback<int> done) {
      thread = std::jthread{[done, i] {
        if (i % 2 != 0) std::this_thread::sleep_for(std::chrono::milliseconds{1});
        done(i);
      }};
    };
    EXPECT_EQ(co_await from_callback<int>(start), i);
  }
}

WEFT_TEST("callback: reports a failure") {
  auto at_once = [](callback<int> done) { done.set_exception(std::make_exception_ptr(std::runtime_error{"no"})); };
  EXPECT_THROW((co_await as_result(from_callback<int>(at_once))).value(), std::runtime_error);

  std::jthread thread;
  auto later = [&](callback<int> done) {
    thread = std::jthread{[done] { done.set_exception(std::make_exception_ptr(std::runtime_error{"no"})); }};
  };
  EXPECT_THROW((co_await as_result(from_callback<int>(later))).value(), std::runtime_error);
}

WEFT_TEST("callback: what start throws comes out of the await") {
  auto start = [](callback<int>) { throw std::runtime_error{"not started"}; };
  EXPECT_THROW((co_await as_result(from_callback<int>(start))).value(), std::runtime_error);
}

WEFT_TEST("callback: reports a stop") {
  EXPECT_TRUE((co_await as_result(from_callback<int>([](callback<int> done) { done.set_stopped(); }))).is_stopped());

  std::jthread thread;
  auto later = [&](callback<int> done) { thread = std::jthread{[done] { done.set_stopped(); }}; };
  EXPECT_TRUE((co_await as_result(from_callback<int>(later))).is_stopped());
}

WEFT_TEST("callback: one object is awaited again") {
  int calls = 0;
  auto source = from_callback<int>([&](callback<int> done) { done(++calls); });
  EXPECT_EQ(co_await source, 1);
  EXPECT_EQ(co_await source, 2);
}

WEFT_TEST("callback: when_all takes them") {
  auto both = co_await weft::when_all(from_callback<int>([](callback<int> done) { done(1); }),
                                      from_callback([](callback<> done) { done(); }));
  EXPECT_EQ(std::get<0>(both), 1);
}

TEST(callback, brings_the_task_home_to_its_executor) {
  weft::manual_executor home;
  operation<int> io;
  auto body = [](operation<int>& io) -> task<std::thread::id> {
    auto start = io.start();
    co_await from_callback<int>(start);
    co_return std::this_thread::get_id();
  };
  bool ended = false;
  weft::start(home, body(io), [&](weft::result<std::thread::id> where) {
    EXPECT_EQ(where.value(), std::this_thread::get_id());
    ended = true;
  });
  home.run_all();
  std::thread{[&] { (*io.done)(1); }}.join();
  EXPECT_FALSE(ended);
  home.run_all();
  EXPECT_TRUE(ended);
}

TEST(callback, a_million_that_come_at_once_do_not_grow_the_stack) {
  test::on_small_stack([] {
    auto body = []() -> task<long> {
      long sum = 0;
      for (int i = 0; i < test::rounds(1'000'000); ++i)
        sum += co_await from_callback<int>([](callback<int> done) { done(1); });
      co_return sum;
    };
    EXPECT_EQ(sync_wait(body()), test::rounds(1'000'000));
  });
}

// ---- stops ----------------------------------------------------------------------------------------------------------

TEST(callback, a_stop_cancels_and_waits_for_the_callback) {
  operation<int> io;
  stop_source stop;
  std::atomic<int> cancels = 0;
  std::atomic<bool> ended = false;
  std::jthread other{[&] {
    io.wait();
    stop.request_stop();
    test::until([&] { return cancels == 1; });  // by whoever is later: the stop, or the task that parks
    std::this_thread::sleep_for(std::chrono::milliseconds{2});
    EXPECT_FALSE(ended);
    io.done->set_stopped();
  }};
  auto start = io.start();
  auto cancel = [&] { ++cancels; };
  EXPECT_THROW(sync_wait(from_callback<int>(start, cancel), stop.token()), stopped);
  ended = true;
}

TEST(callback, a_value_that_comes_in_spite_of_a_cancel_is_not_lost) {
  operation<int> io;
  stop_source stop;
  std::jthread other{[&] {
    io.wait();
    stop.request_stop();
    (*io.done)(7);
  }};
  auto start = io.start();
  EXPECT_EQ(sync_wait(from_callback<int>(start, [] {}), stop.token()), 7);
}

TEST(callback, cancel_may_call_back_itself) {
  operation<int> io;
  stop_source stop;
  std::jthread other{[&] {
    io.wait();
    stop.request_stop();
  }};
  auto start = io.start();
  auto cancel = [&] { io.done->set_stopped(); };
  EXPECT_THROW(sync_wait(from_callback<int>(start, cancel), stop.token()), stopped);
}

TEST(callback, without_a_cancel_a_stop_waits) {
  operation<int> io;
  stop_source stop;
  std::jthread other{[&] {
    io.wait();
    stop.request_stop();
    (*io.done)(7);
  }};
  auto start = io.start();
  EXPECT_EQ(sync_wait(from_callback<int>(start), stop.token()), 7);
}

TEST(callback, a_task_that_was_stopped_before_does_not_start) {
  stop_source stop;
  stop.request_stop();
  bool started = false;
  auto start = [&](callback<int> done) {
    started = true;
    done(1);
  };
  EXPECT_THROW(sync_wait(from_callback<int>(start), stop.token()), stopped);
  EXPECT_FALSE(started);
}

TEST(callback, a_stop_from_inside_start_cancels) {
  stop_source stop;
  std::optional<callback<int>> kept;
  int cancels = 0;
  auto start = [&](callback<int> done) {
    kept = done;
    stop.request_stop();
  };
  auto cancel = [&] {
    ++cancels;
    kept->set_stopped();
  };
  EXPECT_THROW(sync_wait(from_callback<int>(start, cancel), stop.token()), stopped);
  EXPECT_EQ(cancels, 1);
}

// ---- threads --------------------------------------------------------------------------------------------------------

// The callback races with the return of start, and a stop with both. Each round ends once, with the value or stopped.
TEST(callback, races_with_the_end_of_start_and_with_a_stop) {
  const int rounds = test::rounds(5'000);
  std::atomic<callback<int>*> posted = nullptr;
  std::atomic<int> turn = 0, stopped_rounds = 0;
  std::unique_ptr<stop_source> stop;
  std::atomic<bool> cancelled = false;
  std::jthread library{[&] {
    for (int i = 1; i <= rounds; ++i) {
      callback<int>* one = nullptr;
      test::until([&] { return (one = posted.exchange(nullptr)) != nullptr; });
      const callback<int> done = *one;
      delete one;
      for (int spin = i % 32; spin > 0; --spin) std::atomic_signal_fence(std::memory_order_seq_cst);
      cancelled ? done.set_stopped() : done(i);
    }
  }};
  std::jthread stopper{[&] {
    for (int i = 1; i <= rounds; ++i) {
      test::until([&] { return turn.load() == i; });
      for (int spin = i % 48; spin > 0; --spin) std::atomic_signal_fence(std::memory_order_seq_cst);
      stop->request_stop();
      stopped_rounds = i;
    }
  }};
  int values = 0, stops = 0;
  for (int i = 1; i <= rounds; ++i) {
    stop = std::make_unique<stop_source>();
    cancelled = false;
    auto start = [&](callback<int> done) {
      turn = i;
      posted = new callback<int>{done};
    };
    auto cancel = [&] { cancelled = true; };
    try {
      EXPECT_EQ(sync_wait(from_callback<int>(start, cancel), stop->token()), i);
      ++values;
    } catch (const stopped&) {
      ++stops;
    }
    test::until([&] { return stopped_rounds.load() == i; });
  }
  EXPECT_EQ(values + stops, rounds);
}

}  // namespace
