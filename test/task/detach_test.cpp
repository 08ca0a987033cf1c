#include <weft/combine.hpp>
#include <weft/fiber.hpp>
#include <weft/pool.hpp>
#include <weft/scope.hpp>

#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "support/timed_root.hpp"
#include "support/weft_test.hpp"

namespace {

using namespace std::chrono_literals;
using weft::detach_on_stop;
using weft::result;
using weft::task;

struct shared_gate {  // owned by the operation, as all it uses must be
  std::shared_ptr<test::gate> door = std::make_shared<test::gate>();
};
task<int> pass(shared_gate at, std::shared_ptr<test::counted> held, int value) {
  co_await *at.door;
  held.reset();
  co_return value;
}
task<int> break_at(shared_gate at) {
  co_await *at.door;
  throw std::runtime_error{"unheard"};
}

WEFT_TEST("detach_on_stop: gives what the operation gives") {
  auto give = []() -> task<int> { co_return 3; };
  EXPECT_EQ(co_await detach_on_stop(give()), 3);
  auto add = [](int a, std::unique_ptr<int> b) { return a + *b; };
  EXPECT_EQ(co_await detach_on_stop(add, 1, std::make_unique<int>(2)), 3);
  auto wait = [](shared_gate at) -> task<> { co_await *at.door; };
  shared_gate open;
  open.door->open();
  co_await detach_on_stop(wait, open);
  auto fail = []() -> task<> {
    throw std::runtime_error{"broken"};
    co_return;
  };
  EXPECT_THROW(co_await detach_on_stop(fail()), std::runtime_error);
  static int object = 0;
  auto refer = []() -> task<int&> { co_return object; };
  EXPECT_EQ(&co_await detach_on_stop(refer()), &object);
}

TEST(detach_on_stop, waits_as_long_as_it_takes) {
  test::virtual_clock time;
  auto operation = []() -> task<int> {
    co_await weft::sleep_for(5ms);
    co_return 4;
  };
  auto outer = [&]() -> task<int> { co_return co_await detach_on_stop(operation()); };
  EXPECT_EQ(test::run_timed(time, outer()).value(), 4);
  EXPECT_EQ(time.elapsed(), 5ms) << "it sleeps by the clock of who awaits it";
}

TEST(detach_on_stop, a_stop_ends_the_await_and_not_the_operation) {
  shared_gate at;
  std::atomic<int> alive{0};
  weft::stop_source source;
  bool stopped = false;
  auto outer = [&]() -> task<> {
    co_await detach_on_stop(pass(at, std::make_shared<test::counted>(alive), 1));
    ADD_FAILURE();
  };
  weft::start(outer(), [&](result<void> how) { stopped = how.is_stopped(); }, source.token());
  EXPECT_EQ(at.door->waiting(), 1);
  source.request_stop();
  EXPECT_TRUE(stopped);
  EXPECT_EQ(alive, 1);
  EXPECT_EQ(at.door->waiting(), 1);
  at.door->open();
  EXPECT_EQ(alive, 0);
}

// It has returned by then, and with it what was the executor of the task that awaited the operation.
TEST(detach_on_stop, an_operation_outlives_the_sync_wait_that_it_began_in) {
  weft::promise<int> answer;
  std::atomic<bool> begun = false, ended = false;
  auto operation = [&](weft::future<int> from) -> task<int> {
    begun = true;
    const int value = co_await std::move(from);
    co_await weft::yield();
    ended = true;
    co_return value;
  };
  const auto call = [&]() -> task<int> { co_return co_await detach_on_stop(operation(answer.get_future())); };
  const auto call_in_fiber = [&] { return weft::await(detach_on_stop(operation(answer.get_future()))); };
  const auto in_scope = [&](weft::scope& s) -> task<int> { co_return co_await s.fork(call); };
  const auto in_fiber = [&](weft::scope& s) -> task<int> { co_return co_await s.go(call_in_fiber); };

  for (const int how : {0, 1, 2, 3}) {
    answer = {};
    begun = ended = false;
    weft::stop_source impatient;
    std::jthread user{[&] {
      test::until([&] { return begun.load(); });
      impatient.request_stop();
    }};
    EXPECT_THROW(
        static_cast<void>(how == 0   ? weft::sync_wait(call(), impatient.token())
                          : how == 1 ? weft::sync_wait(weft::with_scope(in_scope), impatient.token())
                          : how == 2 ? weft::sync_wait(weft::with_scope(in_fiber), impatient.token())
                                     : std::get<0>(weft::sync_wait(weft::when_all(call()), impatient.token()))),
        weft::stopped)
        << how;
    EXPECT_FALSE(ended);
    answer.set_value(1);
    test::until([&] { return ended.load(); });
  }
}

// It has no executor, so it goes on, and ends, on whatever thread wakes it: no pool's.
TEST(detach_on_stop, an_operation_that_was_on_a_pool_is_none_of_its_tasks_afterwards) {
  weft::pool p{{.threads = 2}};
  auto step = []() -> task<> { co_return; };
  auto operation = [&]() -> task<> {
    co_await weft::start_on(p.executor(), step());
    co_await weft::sleep_for(5ms);
  };
  auto outer = [&]() -> task<> { co_await detach_on_stop(operation); };
  weft::sync_wait(outer());
  const weft::pool_stats stats = p.stats();
  EXPECT_EQ(stats.begun, stats.ended);
}

TEST(detach_on_stop, stopped_before_does_not_begin) {
  weft::stop_source source;
  source.request_stop();
  auto never = []() -> task<> {
    ADD_FAILURE();
    co_return;
  };
  bool stopped = false;
  auto outer = [&]() -> task<> { co_await detach_on_stop(never()); };
  weft::start(outer(), [&](result<void> how) { stopped = how.is_stopped(); }, source.token());
  EXPECT_TRUE(stopped);
}

TEST(detach_on_stop, an_operation_that_stops_itself_ends_the_await_stopped) {
  auto stops = []() -> task<> {
    weft::promise<> promise;
    auto outcome = promise.get_future();
    promise.set_stopped();
    co_await std::move(outcome);
  };
  auto outer = [&]() -> task<> {
    const auto how = co_await weft::as_result(detach_on_stop(stops()));
    EXPECT_TRUE(how.is_stopped());
  };
  weft::sync_wait(outer());
}

std::atomic<int> heard{0};

TEST(detach_on_stop, a_failure_after_the_stop_is_a_lost_error_and_one_before_is_not) {
  heard = 0;
  const auto before = weft::set_lost_error_handler([](const char* operation, const std::exception_ptr&) noexcept {
    EXPECT_STREQ(operation, "detach_on_stop");
    ++heard;
  });
  for (const bool stop : {false, true}) {
    shared_gate at;
    weft::stop_source source;
    int ended = 0;
    auto outer = [&]() -> task<> { co_await detach_on_stop(break_at(at)); };
    weft::start(outer(), [&](result<void> how) { ended += how.is_stopped() ? 1 : 10; }, source.token());
    if (stop) source.request_stop();
    at.door->open();
    EXPECT_EQ(ended, stop ? 1 : 10);
    EXPECT_EQ(heard, stop ? 1 : 0);
  }
  weft::set_lost_error_handler(before);
}

TEST(detach_on_stop, without_memory_nothing_begins) {
  test::counting_resource small;
  small.fail_after = 0;
  auto operation = [](std::allocator_arg_t, std::pmr::memory_resource*) -> task<> { co_return; };
  auto outer = [&]() -> task<> { co_await detach_on_stop(operation(std::allocator_arg, &small)); };
  EXPECT_THROW(weft::sync_wait(outer()), std::bad_alloc);
}

TEST(detach_on_stop, the_end_and_a_stop_race) {
  for (int round = 0; round != test::rounds(2'000); ++round) {
    shared_gate at;
    std::atomic<int> alive{0}, ended{0};
    weft::stop_source source;
    auto outer = [&]() -> task<int> {
      co_return co_await detach_on_stop(pass(at, std::make_shared<test::counted>(alive), 1));
    };
    std::thread opener{[&] { at.door->open(); }};
    std::thread stopper{[&] { source.request_stop(); }};
    weft::start(
        outer(),
        [&](result<int> how) {
          EXPECT_TRUE(how.is_stopped() || how.value() == 1);
          ++ended;
        },
        source.token());
    opener.join();
    stopper.join();
    EXPECT_EQ(ended, 1);
    EXPECT_EQ(alive, 0);
  }
}

}  // namespace
