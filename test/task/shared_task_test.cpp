#include <weft/channel.hpp>
#include <weft/combine.hpp>
#include <weft/fiber.hpp>
#include <weft/future.hpp>
#include <weft/on_scope_exit.hpp>
#include <weft/pool.hpp>
#include <weft/scope.hpp>
#include <weft/select.hpp>
#include <weft/shared_task.hpp>
#include <weft/task.hpp>
#include <weft/with.hpp>

#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "support/tasks.hpp"
#include "support/weft_test.hpp"

namespace {

using test::after;
using weft::result;
using weft::shared_task;
using weft::sync_wait;
using weft::task;
using weft::when_all;

shared_task<int> shared_after(test::gate& door, int value) { co_return co_await after(door, value); }
task<int> use(shared_task<int> shared) { co_return co_await shared; }
task<> open(test::gate& door) {
  door.open();
  co_return;
}

WEFT_TEST("shared_task: runs once, and all get the same object") {
  int runs = 0;
  auto load = [&]() -> shared_task<std::string> {
    ++runs;
    co_return "settings";
  };
  const shared_task<std::string> one = load(), other = one;
  EXPECT_EQ(runs, 0);
  EXPECT_FALSE(one.is_ready());
  const std::string& first = co_await one;
  const std::string& second = co_await other;
  EXPECT_EQ(first, "settings");
  EXPECT_EQ(&first, &second);
  EXPECT_EQ(runs, 1);
  EXPECT_TRUE(other.is_ready());
}

WEFT_TEST("shared_task: is made from a task, of void, of a reference, of what moves only") {
  int object = 1;
  const shared_task number{[]() -> task<int> { co_return 7; }()};
  const shared_task none{[]() -> task<> { co_return; }()};
  auto refer = [&]() -> shared_task<int&> { co_return object; };
  auto own = []() -> shared_task<std::unique_ptr<int>> { co_return std::make_unique<int>(5); };
  const auto reference = refer();
  const auto owner = own();
  EXPECT_EQ(co_await number, 7);
  co_await none;
  EXPECT_EQ(&co_await reference, &object);
  EXPECT_EQ(*co_await owner, 5);
}

WEFT_TEST("shared_task: those that wait go on when it ends") {
  test::gate door;
  const auto shared = shared_after(door, 9);
  auto [a, b, c, opened] = co_await when_all(use(shared), use(shared), shared, open(door));
  EXPECT_EQ(a + b + c.get(), 27);
}

WEFT_TEST("shared_task: each gets the same exception") {
  auto fail = []() -> shared_task<int> {
    throw std::runtime_error{"broken"};
    co_return 0;
  };
  const auto shared = fail();
  const result<int> first = co_await weft::as_result(use(shared));
  const result<int> second = co_await weft::as_result(use(shared));
  EXPECT_TRUE(first.exception());
  EXPECT_EQ(first.exception(), second.exception());
}

TEST(shared_task, one_that_nobody_awaited_is_freed) {
  std::atomic<int> alive{0};
  {
    auto keep = [](test::counted) -> shared_task<int> { co_return 1; };
    [[maybe_unused]] const auto shared = keep(test::counted{alive});
    EXPECT_EQ(alive, 1);
  }
  EXPECT_EQ(alive, 0);
}

TEST(shared_task, a_waiter_that_is_stopped_leaves_the_others) {
  test::gate door;
  weft::stop_source source;
  const auto shared = shared_after(door, 4);
  bool stopped = false;
  int value = 0;
  weft::start(use(shared), [&](result<int> how) { stopped = how.is_stopped(); }, source.token());
  weft::start(use(shared), [&](result<int> how) { value = how.value(); });
  source.request_stop();
  EXPECT_TRUE(stopped);
  EXPECT_EQ(door.waiting(), 1);
  door.open();
  EXPECT_EQ(value, 4);
}

TEST(shared_task, the_last_waiter_to_leave_stops_it_and_waits_for_its_end) {
  test::gate never, cleaned;
  std::atomic<int> alive{0};
  weft::stop_source source;
  auto body = [&]() -> shared_task<int> {
    const test::counted guard{alive};
    co_await weft::on_scope_exit([](test::gate& until) -> task<> { co_await until; }(cleaned));
    co_return co_await after(never, 1);
  };
  const auto shared = body();
  bool first = false, second = false;
  weft::start(use(shared), [&](result<int> how) { first = how.is_stopped(); }, source.token());
  weft::start(use(shared), [&](result<int> how) { second = how.is_stopped(); }, source.token());
  source.request_stop();
  EXPECT_NE(first, second);  // one left at once, the other one waits for the cleanup
  EXPECT_EQ(alive, 0);
  cleaned.open();
  EXPECT_TRUE(first && second);
  EXPECT_THROW(sync_wait(shared), weft::stopped);
}

TEST(shared_task, is_awaited_stopped_and_ended_from_several_threads) {
  for (int round = 0; round != test::rounds(1'000); ++round) {
    test::gate door;
    weft::stop_source source;
    const auto shared = shared_after(door, 1);
    std::atomic<int> ended{0};
    const auto wait = [&] {
      weft::start(
          use(shared),
          [&](result<int> how) {
            EXPECT_TRUE(how.is_stopped() || how.value() == 1);
            ++ended;
          },
          source.token());
    };
    std::vector<std::thread> threads;
    threads.emplace_back(wait);
    threads.emplace_back(wait);
    threads.emplace_back([&] { door.open(); });
    threads.emplace_back([&] { source.request_stop(); });
    for (std::thread& one : threads) one.join();
    EXPECT_EQ(ended, 2);
  }
}

TEST(shared_task_death, an_empty_one_cannot_be_awaited) { EXPECT_DEATH(sync_wait(shared_task<int>{}), "empty task"); }

// It was started by a sync_wait that is gone when it goes on: whose thread it can't go on on.
TEST(shared_task, outlives_the_sync_wait_that_started_it) {
  weft::promise<int> source;
  std::atomic<bool> started = false;
  auto pass = [](weft::future<int> from, std::atomic<bool>& started) -> task<int> {
    started = true;
    co_return co_await std::move(from);
  };
  auto look = [](shared_task<int> at) -> task<int> { co_return co_await at; };
  const shared_task<int> one{pass(source.get_future(), started)};
  weft::stop_source stop;
  std::jthread first{[&] { EXPECT_THROW(sync_wait(look(one), stop.token()), weft::stopped); }};
  test::until([&] { return started.load(); });
  int got = 0;
  weft::start(look(one), [&](result<int> how) { got = how.value(); });  // waits, too, so the first may leave
  stop.request_stop();
  first.join();
  EXPECT_EQ(got, 0);
  source.set_value(7);
  EXPECT_EQ(got, 7);
}

// ---- a temporary ------------------------------------------------------------------------------------------------------
// Who is given one keeps it no longer than its own call, so it gives a copy of the value.

/// Seven, while it is alive. Too large for the frame cache, so that a sanitizer sees a frame that has gone.
struct seven {
  int id = 7;
  std::array<char, 3000> more{};
  seven() = default;
  seven(const seven&) = default;
  ~seven() { *const_cast<volatile int*>(&id) = -1; }
};
shared_task<seven> make() { co_return seven{}; }
std::vector<shared_task<seven>> make_some() {
  std::vector<shared_task<seven>> some;
  for (int i = 0; i != 3; ++i) some.push_back(make());
  return some;
}

template <class Awaitable>
constexpr bool gives_a_copy = std::is_same_v<weft::await_result<Awaitable>, seven>;
static_assert(gives_a_copy<shared_task<seven>> && gives_a_copy<weft::fork_view<seven>>);
static_assert(std::is_same_v<weft::await_result<shared_task<seven>&>, const seven&>);
static_assert(std::is_same_v<weft::await_result<const shared_task<seven>&>, const seven&>);
static_assert(std::is_same_v<weft::await_result<weft::fork_view<seven>&>, const seven&>);
static_assert(std::is_same_v<weft::await_result<shared_task<int&>>, int&>);
static_assert(std::is_void_v<weft::await_result<shared_task<>>>);

TEST(shared_task_temporary, gives_a_copy_to_what_blocks_a_thread) {
  EXPECT_EQ(sync_wait(make()).id, 7);
  const seven& kept = sync_wait(make());  // as long as the reference
  EXPECT_EQ(kept.id, 7);
  weft::inline_executor here;
  EXPECT_EQ(sync_wait(weft::start_on(here, make())).id, 7);
  EXPECT_EQ(weft::as_future(make()).get().id, 7);
  EXPECT_EQ(weft::as_future(here, make()).get().id, 7);
  EXPECT_EQ(sync_wait(make() | weft::continue_on(here)).id, 7);
  for (const bool use_caller : {false, true}) {
    const weft::pool pool{{.threads = 2, .use_caller = use_caller}};
    EXPECT_EQ(pool.run(make()).id, 7);
  }
}

WEFT_TEST("shared_task_temporary: gives a copy to what a task awaits") {
  using namespace std::chrono_literals;
  EXPECT_EQ((co_await make()).id, 7);  // the one that is awaited in place: it lives as long as the expression
  const result<seven> how = co_await weft::as_result(make());
  EXPECT_EQ(how->id, 7);
  EXPECT_EQ((co_await weft::timeout(1s, make())).id, 7);
  EXPECT_EQ((co_await weft::shielded(make())).id, 7);
  EXPECT_EQ((co_await weft::detach_on_stop(make())).id, 7);
  EXPECT_EQ((co_await weft::retry({}, make)).id, 7);
  const auto called = [] { return make(); };
  EXPECT_EQ((co_await weft::with_stop({}, called)).id, 7);
  EXPECT_EQ((co_await weft::with_memory(std::pmr::new_delete_resource(), called)).id, 7);

  const auto [first, second] = co_await when_all(make(), make());
  EXPECT_EQ(first.id + second.id, 14);
  for (const seven& one : co_await when_all(make_some())) EXPECT_EQ(one.id, 7);
  const auto index = [](std::size_t) { return make(); };
  for (const seven& one : co_await when_all(3, index)) EXPECT_EQ(one.id, 7);
  for (const seven& one : co_await weft::windowed(2, make_some())) EXPECT_EQ(one.id, 7);
  const auto any = co_await weft::when_any(make(), make());
  EXPECT_EQ(std::visit([](const seven& one) { return one.id; }, any.value), 7);
  EXPECT_EQ((co_await weft::when_any(make_some())).value.id, 7);
  for (const auto& one : co_await weft::when_some(2, make_some())) EXPECT_EQ(one.second.id, 7);
  for (const auto& one : co_await (make_some() | weft::when(2))) EXPECT_EQ(one.second.id, 7);
  const auto chosen = co_await weft::select(weft::on(make()));
  EXPECT_EQ(std::get<0>(chosen.value).id, 7);
}

WEFT_TEST("shared_task_temporary: gives a copy to what stands behind it in a pipe") {
  const auto none = [](const std::exception_ptr&) { return seven{}; };
  EXPECT_EQ(co_await (make() | weft::then([](const seven& s) { return s.id; })), 7);
  EXPECT_EQ((co_await (make() | weft::on_value([](seven s) { return s; }))).id, 7);
  EXPECT_EQ((co_await (make() | weft::on_error(none))).id, 7);
  EXPECT_EQ((co_await (make() | weft::on_stop([] { return seven{}; }))).id, 7);
}

// What takes the place of a value that stays is none that stays.
WEFT_TEST("shared_task: what is given in the place of its value is given by value") {
  const auto fail = []() -> shared_task<seven> {
    throw std::runtime_error{"broken"};
    co_return seven{};
  };
  const shared_task<seven> broken = fail();
  const auto instead = [](const std::exception_ptr&) { return seven{}; };
  EXPECT_EQ((co_await (broken | weft::on_error(instead))).id, 7);
  const auto one_instead = [](const std::runtime_error&) { return seven{}; };
  EXPECT_EQ((co_await (broken | weft::on_error(one_instead))).id, 7);
  const auto stopped = []() -> shared_task<seven> {
    weft::promise<> promise;
    auto outcome = promise.get_future();
    promise.set_stopped();
    co_await std::move(outcome);
    co_return seven{};
  };
  const shared_task<seven> gone = stopped();
  EXPECT_EQ((co_await (gone | weft::on_stop([] { return seven{}; }))).id, 7);
}

WEFT_TEST("shared_task_temporary: gives a copy to a scope, a select and a fiber") {
  const auto body = [](weft::scope& s) -> task<> {
    auto from_shared = s.fork(make());
    EXPECT_EQ((co_await std::move(from_shared)).id, 7);
    auto from_call = s.fork([] { return make(); });
    EXPECT_EQ((co_await std::move(from_call)).id, 7);

    const auto work = []() -> task<seven> { co_return seven{}; };
    const auto [viewed] = co_await when_all(s.fork(work()).view());
    EXPECT_EQ(viewed.id, 7);
    const auto chosen = co_await weft::select(weft::on(s.fork(work()).view()));
    EXPECT_EQ(std::get<0>(chosen.value).id, 7);
    auto in_fiber = s.go([] {
      EXPECT_EQ(weft::await(make()).id, 7);
      EXPECT_EQ(weft::await(weft::as_result(make()))->id, 7);
    });
    co_await std::move(in_fiber);
  };
  co_await weft::with_scope(body);
}

}  // namespace
