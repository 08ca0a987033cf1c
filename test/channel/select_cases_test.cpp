// What is no channel as a case of a select: a case that is not chosen has no effect, whatever it waits for. select_test has
// select itself; sweep_channel_test stops these everywhere.
#include <weft/channel.hpp>

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>
#include <weft/broadcast.hpp>
#include <weft/combine.hpp>
#include <weft/fiber.hpp>
#include <weft/pool.hpp>
#include <weft/scope.hpp>
#include <weft/select.hpp>
#include <weft/test.hpp>

#include "support/weft_test.hpp"

namespace {

using namespace std::chrono_literals;
using weft::after;
using weft::as_result;
using weft::await;
using weft::channel;
using weft::on;
using weft::on_receive;
using weft::otherwise;
using weft::scope;
using weft::select;
using weft::sleep_for;
using weft::sync_wait;
using weft::task;
using weft::when_all;
using weft::with_scope;

// ---- ready beside another one that is ready -----------------------------------------------------------------------------
//
// What is given is there as often as it was not chosen. Each as likely.

constexpr int rounds = 100;

struct draw {
  int first = 0, second = 0;
  ~draw() {
    EXPECT_GT(first, rounds / 5);
    EXPECT_GT(second, rounds / 5);
  }
};

WEFT_TEST("select_no_effect: auto_event::wait leaves the signal where another case is chosen") {
  weft::auto_event signal;
  channel<int> c{1};
  draw drawn;
  for (int i = 0; i != rounds; ++i) {
    signal.set();
    static_cast<void>(c.try_send(1));
    const auto got = co_await select(on(signal.wait()), on_receive(c));
    if (got.index == 0) {
      ++drawn.first;
      continue;
    }
    ++drawn.second;
    const auto left = co_await as_result(weft::timeout(0s, signal.wait()));
    EXPECT_TRUE(left.has_value()) << "the signal is gone";
  }
}

WEFT_TEST("select_no_effect: a future given by its name keeps its outcome where another case is chosen") {
  channel<int> c{1};
  draw drawn;
  for (int i = 0; i != rounds; ++i) {
    weft::future<int> answer = weft::make_ready_future(i);
    static_cast<void>(c.try_send(1));
    const auto got = co_await select(on(answer), on_receive(c));
    EXPECT_EQ(static_cast<bool>(answer), got.index == 1) << "empty where it was chosen, and only there";
    if (got.index == 0) {
      EXPECT_EQ(std::get<0>(got.value), i);
      ++drawn.first;
      continue;
    }
    ++drawn.second;
    EXPECT_EQ(co_await std::move(answer), i);
  }
}

WEFT_TEST("select_no_effect: broadcast::send sends to nobody where another case is chosen") {
  weft::broadcast<int> all{{.capacity = 1}};
  auto mine = all.subscribe();
  channel<int> c{1};
  draw drawn;
  for (int i = 0; i != rounds; ++i) {
    static_cast<void>(c.try_send(1));
    const auto got = co_await select(on(all.send(i)), on_receive(c));
    const auto received = mine.try_receive();
    ++(got.index == 0 ? drawn.first : drawn.second);
    EXPECT_EQ(received, got.index == 0 ? std::optional{i} : std::nullopt);
  }
}

WEFT_TEST("select_no_effect: semaphore::acquire takes no permit, not for a moment") {
  weft::semaphore s{2};
  channel<int> c{1};
  draw drawn;
  for (int i = 0; i != rounds; ++i) {
    static_cast<void>(c.try_send(1));
    const auto got = co_await select(on(s.acquire(2)), on_receive(c));
    ++(got.index == 0 ? drawn.first : drawn.second);
    EXPECT_EQ(s.available(), got.index == 0 ? 0u : 2u);
  }
}

WEFT_TEST("select_no_effect: mutex::lock and guarded::lock hold nothing where another case is chosen") {
  weft::mutex m;
  weft::guarded<int> value{7};
  draw drawn;
  for (int i = 0; i != rounds; ++i) {
    const auto got = co_await select(on(m.lock()), on(value.lock()));
    ++(got.index == 0 ? drawn.first : drawn.second);
    EXPECT_EQ(m.is_locked(), got.index == 0);
    EXPECT_EQ(static_cast<bool>(value.try_lock()), got.index == 0);
    if (got.index == 1) {
      EXPECT_EQ(*std::get<1>(got.value), 7);
    }
  }
  EXPECT_FALSE(m.is_locked());
}

WEFT_TEST("select_no_effect: shared_mutex, in each way") {
  weft::shared_mutex m;
  channel<int> c{1};
  const auto is_free = [&] { return static_cast<bool>(m.try_lock()); };
  for (int i = 0; i != rounds; ++i) {
    static_cast<void>(c.try_send(1));
    {
      const auto got = co_await select(on(m.lock()), on_receive(c));
      EXPECT_EQ(is_free(), got.index == 1);
    }
    static_cast<void>(c.try_send(1));
    {
      const auto got = co_await select(on(m.lock_shared()), on_receive(c));
      EXPECT_EQ(is_free(), got.index == 1);
      EXPECT_TRUE(m.try_lock_shared());
    }
    static_cast<void>(c.try_send(1));
    {
      auto got = co_await select(on_receive(c), on(m.lock_upgradable()));
      EXPECT_EQ(is_free(), got.index == 0);
    }
    auto held = co_await m.lock_upgradable();
    static_cast<void>(c.try_send(1));
    {
      const auto got = co_await select(on_receive(c), on(std::move(held).upgrade()));
      EXPECT_EQ(static_cast<bool>(held), got.index == 0) << "not chosen, it is held as before";
      EXPECT_EQ(static_cast<bool>(m.try_lock_shared()), got.index == 0);
    }
    EXPECT_EQ(static_cast<bool>(m.try_lock()), !held);
  }
}

// ---- in line, where another one is chosen --------------------------------------------------------------------------------

// What each of these gives while `c` has the select wait goes to the one that waits behind it, at once.
WEFT_TEST("select_no_effect: who waits behind a case that was not chosen is not held up") {
  weft::semaphore s{1};
  channel<int> c{0};
  auto held = co_await s.acquire();
  int passed = 0;
  auto chooses = [&]() -> task<> {
    const auto got = co_await select(on(s.acquire(5)), on_receive(c));
    EXPECT_EQ(got.index, 1u);
  };
  auto waits = [&]() -> task<> {
    const auto permit = co_await s.acquire();
    ++passed;
  };
  auto tells = [&]() -> task<> {
    held.release();
    EXPECT_EQ(passed, 0) << "it wants fewer, and is behind one that wants many";
    co_await c.send(1);
  };
  co_await when_all(chooses(), waits(), tells());
  EXPECT_EQ(passed, 1);
  EXPECT_EQ(s.available(), 1u);
}

// ---- in line, and chosen --------------------------------------------------------------------------------------------------
//
// Each is waited for by a select, in a task, in a fiber and on a thread, and then given.

template <class Make, class Give>
void is_chosen_wherever_it_waits(Make make, Give give) {
  channel<int> never{0};
  const auto chooses = [&](auto wait) {
    const auto got = wait(select(on_receive(never), make(), after(1h)));
    EXPECT_EQ(got.index, 1u);
  };
  auto in_task = [&]() -> task<> {
    auto choice = select(on_receive(never), make(), after(1h));
    const auto got = co_await std::move(choice);
    EXPECT_EQ(got.index, 1u);
  };
  auto gives = [&](weft::fork<>& waits) -> task<> {
    while (never.stats().waiting == 0) co_await weft::yield();
    EXPECT_FALSE(waits.done());
    give();
    co_await std::move(waits);
    EXPECT_EQ(never.stats().waiting, 0u);
  };
  auto body = [&](scope& s) -> task<> {
    weft::fork<> first = s.fork(in_task);
    co_await gives(first);
    weft::fork<> second = s.go([&] { chooses([](auto&& choice) { return await(std::move(choice)); }); });
    co_await gives(second);
  };
  sync_wait(with_scope(body));
  std::jthread thread{[&] { chooses([](auto&& choice) { return sync_wait(std::move(choice)); }); }};
  while (never.stats().waiting == 0) std::this_thread::yield();
  give();
  thread.join();
  EXPECT_EQ(never.stats().waiting, 0u);
}

TEST(select_of, a_semaphore_that_was_empty) {
  weft::semaphore s{0};
  is_chosen_wherever_it_waits(
      [&] {
        s.try_acquire(2).keep();  // what the last one gave back
        return on(s.acquire(2));
      },
      [&] { s.release(2); });
  EXPECT_EQ(s.stats().waiting, 0u);
}

TEST(select_of, an_auto_event) {
  weft::auto_event e;
  is_chosen_wherever_it_waits([&] { return on(e.wait()); }, [&] { e.set(); });
  EXPECT_FALSE(sync_wait(as_result(weft::timeout(0s, e.wait()))).has_value()) << "each signal let one pass";
}

TEST(select_of, an_event) {
  weft::event e;
  is_chosen_wherever_it_waits([&] { return on(e.wait()); }, [&] { e.set(), e.reset(); });
  EXPECT_EQ(e.stats().waits, 3u);
}

TEST(select_of, a_latch) {
  std::unique_ptr<weft::latch> l;
  is_chosen_wherever_it_waits(
      [&] {
        l = std::make_unique<weft::latch>(1);
        return on(l->wait());
      },
      [&] { l->count_down(); });
  weft::latch open{0};
  EXPECT_EQ(sync_wait(select(on(open.wait()), otherwise)).index, 0u);
}

TEST(select_of, a_mutex_which_is_given_to_it) {
  weft::mutex m;
  weft::mutex::guard held;
  is_chosen_wherever_it_waits([&] { return held = m.try_lock(), on(m.lock()); }, [&] { held.unlock(); });
}

TEST(select_of, a_guarded_value) {
  weft::guarded<int> g{3};
  std::unique_ptr<weft::guarded<int>::access> held;
  is_chosen_wherever_it_waits(
      [&] {
        held = std::make_unique<weft::guarded<int>::access>(g.try_lock());
        return on(g.lock());
      },
      [&] { held->unlock(); });
}

TEST(select_of, a_shared_mutex_in_each_way) {
  for (const bool prefer_writers : {false, true}) {
    weft::shared_mutex m{{.prefer_writers = prefer_writers}};
    weft::shared_mutex::guard held;
    const auto gives = [&] { held.unlock(); };
    is_chosen_wherever_it_waits([&] { return held = m.try_lock(), on(m.lock()); }, gives);
    is_chosen_wherever_it_waits([&] { return held = m.try_lock(), on(m.lock_shared()); }, gives);
    is_chosen_wherever_it_waits([&] { return held = m.try_lock(), on(m.lock_upgradable()); }, gives);
    weft::shared_mutex::shared_guard shared;
    weft::shared_mutex::upgradable_guard mine;
    is_chosen_wherever_it_waits(
        [&] {
          mine = m.try_lock_upgradable();
          shared = m.try_lock_shared();
          return on(std::move(mine).upgrade());
        },
        [&] { shared.unlock(); });
  }
}

TEST(select_of, a_send_to_all_that_waits_for_room) {
  weft::broadcast<int> all{{.capacity = 1}};
  auto mine = all.subscribe();
  EXPECT_TRUE(all.try_send(0));
  int sent = 0;
  is_chosen_wherever_it_waits([&] { return on(all.send(++sent)); }, [&] { EXPECT_EQ(mine.try_receive(), sent - 1); });
  EXPECT_EQ(mine.try_receive(), sent);
  EXPECT_TRUE(all.try_send(0));
  weft::broadcast<int> over{{.capacity = 1}};
  over.close();
  EXPECT_EQ(sync_wait(as_result(select(on(over.send(1)), on(all.send(1))))).error(), weft::errc::closed);
  std::jthread closes{[&] {
    while (all.stats().waiting == 0) std::this_thread::yield();
    all.close();
  }};
  channel<int> never{0};
  EXPECT_EQ(sync_wait(as_result(select(on(all.send(1)), on_receive(never)))).error(), weft::errc::closed);
}

// A mutex that is held by a select and wanted by one, and by tasks: each has it alone.
TEST(select_of, a_mutex_on_several_threads) {
  weft::pool p{{.threads = 3}};
  weft::mutex m, other;
  const int each = test::rounds(2000);
  int counted = 0, counted_other = 0;  // under the one and the other
  auto counts = [&](int which) -> task<> {
    for (int i = 0; i != each; ++i) {
      if (which == 0) {
        const auto held = co_await m.lock();
        ++counted;
      } else {
        const auto got = co_await select(on(m.lock()), on(other.lock()));
        ++(got.index == 0 ? counted : counted_other);
        if (i % 16 == 0) co_await weft::yield();
      }
    }
  };
  auto body = [&](scope& s) -> task<> {
    for (int i = 0; i != 4; ++i) s.fork_on(p.executor(), counts, i % 2);
    co_return;
  };
  sync_wait(with_scope(body));
  EXPECT_EQ(counted + counted_other, 4 * each);
  EXPECT_FALSE(m.is_locked() || other.is_locked());
}

// Permits, signals and values, of which each is taken once, by selects and by others, some of which are stopped.
TEST(select_of, what_is_given_on_several_threads) {
  weft::pool p{{.threads = 3}};
  weft::semaphore permits{0};
  channel<int> values{0};
  const int each = test::rounds(2000);
  std::atomic<int> taken{0}, received{0};
  auto gives = [&]() -> task<> {
    for (int i = 0; i != each; ++i) {
      permits.release();
      co_await values.send(1);
    }
    values.close();
  };
  auto takes = [&]() -> task<> {
    for (;;) {
      auto got = co_await select(on(permits.acquire()), on_receive(values), after(50us));
      if (got.index == 0) ++taken, std::get<0>(got.value).keep();
      if (got.index == 1) {
        if (!std::get<1>(got.value)) break;
        ++received;
      }
    }
  };
  auto body = [&](scope& s) -> task<> {
    s.fork_on(p.executor(), gives);
    for (int i = 0; i != 3; ++i) s.fork_on(p.executor(), takes);
    co_return;
  };
  sync_wait(with_scope(body));
  EXPECT_EQ(received, each);
  EXPECT_EQ(taken + static_cast<int>(permits.available()), each);
}

// ---- a stop of others -------------------------------------------------------------------------------------------------------

using weft::on_stop;

TEST(on_stop, is_chosen_when_the_source_is_told_to_stop_once_and_for_all) {
  weft::test::run([]() -> task<> {
    weft::stop_source closing;
    channel<int> c{0};
    EXPECT_EQ((co_await select(on_receive(c), on_stop(closing.token()), otherwise)).index, 2u);
    auto stops = [&]() -> task<> {
      co_await sleep_for(2ms);
      closing.request_stop({.reason = "closing"});
    };
    auto chooses = [&]() -> task<> {
      EXPECT_EQ((co_await select(on_receive(c), on_stop(closing.token()), after(1h))).index, 1u);
      EXPECT_EQ(weft::test::elapsed(), 2ms);
    };
    co_await when_all(chooses(), stops());
    EXPECT_EQ((co_await select(on_receive(c), on_stop(closing.token()), after(1h))).index, 1u);
    EXPECT_EQ((co_await select(on_receive(c), on_stop(closing.token()), otherwise)).index, 1u);
    EXPECT_EQ(c.stats().waiting, 0u);
  });
}

TEST(on_stop, takes_its_callback_back_where_another_case_is_chosen) {
  weft::test::run([]() -> task<> {
    channel<int> c{0};
    auto chooses = [&]() -> task<> {
      weft::stop_source short_lived;  // ends the program if a callback is left
      EXPECT_EQ((co_await select(on_stop(short_lived.token()), on_stop(weft::stop_token{}), on_receive(c))).index, 2u);
    };
    co_await when_all(chooses(), c.send(1));
    auto is_stopped = [&]() -> task<> {
      weft::stop_source short_lived;
      co_await weft::timeout(
          1ms, [](weft::stop_token token) -> task<> { co_await select(on_stop(token)); }(short_lived.token()));
    };
    EXPECT_EQ((co_await as_result(is_stopped())).error(), weft::errc::timed_out);
  });
}

// Where who stops runs who waits, within the callback.
TEST(on_stop, goes_on_inside_the_callback) {
  weft::stop_source closing;
  bool went_on = false;
  auto chooses = [&]() -> task<> {
    co_await select(on_stop(closing.token()), after(1h));
    went_on = true;
  };
  weft::start(chooses(), [](weft::result<void>) {});
  closing.request_stop();
  EXPECT_TRUE(went_on);
}

TEST(on_stop, in_a_fiber_and_on_a_thread) {
  weft::stop_source closing;
  channel<int> c{0};
  std::jthread thread{[&] { EXPECT_EQ(sync_wait(select(on_receive(c), on_stop(closing.token()))).index, 1u); }};
  auto body = [&](scope& s) -> task<> {
    s.go([&] { EXPECT_EQ(await(select(on_stop(closing.token()), on_receive(c))).index, 0u); });
    while (c.stats().waiting != 2) co_await weft::yield();
    closing.request_stop();
  };
  sync_wait(with_scope(body));
}

// A stop and a value at once, on two threads: the value is received, or is there.
TEST(on_stop, loses_no_value) {
  for (int i = 0; i != test::rounds(200); ++i) {
    weft::stop_source closing;
    channel<int> c{1};
    std::atomic<bool> begins{false};
    std::jthread stops{[&] {
      while (!begins) std::this_thread::yield();
      closing.request_stop();
    }};
    std::jthread sends{[&] {
      while (!begins) std::this_thread::yield();
      EXPECT_TRUE(c.try_send(1));
    }};
    begins = true;
    const auto got = sync_wait(select(on_stop(closing.token()), on_receive(c)));
    sends.join();
    EXPECT_EQ(c.size(), got.index == 0 ? 1u : 0u);
  }
}

// ---- a fork -------------------------------------------------------------------------------------------------------------------

task<int> naps(std::chrono::milliseconds how_long, int value) {
  co_await sleep_for(how_long);
  co_return value;
}

TEST(select_of_fork, beside_otherwise_it_says_whether_the_fork_has_ended) {
  weft::test::run([]() -> task<> {
    auto body = [](scope& s) -> task<> {
      weft::fork<int> work = s.fork(naps(2ms, 7));
      const weft::fork_view<int> view = work.view();
      EXPECT_EQ((co_await select(on(work), otherwise)).index, 1u);
      EXPECT_EQ((co_await select(on(view), otherwise)).index, 1u);
      co_await sleep_for(3ms);
      const auto got = co_await select(on(work), otherwise);
      EXPECT_EQ(got.index, 0u);
      EXPECT_EQ(std::get<0>(got.value).get(), 7);
      const auto seen = co_await select(otherwise, on(view));
      EXPECT_EQ(std::get<1>(seen.value).get(), 7);
      static_assert(std::is_same_v<decltype(std::get<1>(seen.value).get()), const int&>);
      weft::fork<int> at_once = s.fork([] { return 8; });  // which has no record
      EXPECT_EQ(std::get<0>((co_await select(on(at_once), otherwise)).value).get(), 8);
      EXPECT_EQ(co_await std::move(at_once), 8);
      EXPECT_EQ(co_await work, 7);
    };
    co_await with_scope(body);
  });
}

TEST(select_of_fork, costs_no_frame_where_nothing_runs_beside_it) {
  weft::test::run([]() -> task<> {
    test::counting_resource frames;
    auto body = [&](scope& s) -> task<> {
      weft::fork<> first = s.fork(sleep_for(1ms)), second = s.fork(sleep_for(2ms));
      const std::size_t before = frames.allocations;
      EXPECT_EQ((co_await select(on(first), on(second))).index, 0u);
      EXPECT_EQ((co_await select(on(second), otherwise)).index, 1u);
      EXPECT_EQ((co_await select(on(second), after(1h))).index, 0u);
      EXPECT_EQ(frames.allocations, before);
    };
    co_await with_scope({.memory = &frames}, body);
  });
}

TEST(select_of_fork, throws_what_it_threw_and_ends_stopped_as_it_did) {
  weft::test::run([]() -> task<> {
    channel<int> c{0};
    auto fails = [](std::chrono::milliseconds when) -> task<int> {
      co_await sleep_for(when);
      throw std::runtime_error{"as planned"};
    };
    auto body = [&](scope& s) -> task<> {
      weft::fork<int> failing = s.fork(fails(1ms));
      EXPECT_TRUE((co_await as_result(select(on_receive(c), on(failing)))).exception() != nullptr);
      EXPECT_TRUE((co_await as_result(select(on(failing), otherwise))).exception() != nullptr);
      weft::fork<int> told = s.fork(naps(1h, 1));
      auto stops = [&]() -> task<> {
        co_await sleep_for(1ms);
        told.request_stop();
      };
      auto waits = [&]() -> task<> {  // until it has ended stopped
        EXPECT_TRUE((co_await as_result(select(on_receive(c), on(told), after(1h)))).is_stopped());
        EXPECT_EQ(c.stats().waiting, 0u) << "the other cases have left";
      };
      co_await when_all(waits(), stops());
      EXPECT_TRUE((co_await as_result(select(on_receive(c), on(told)))).is_stopped()) << "at once";
      EXPECT_TRUE((co_await as_result(select(on(told), otherwise))).is_stopped());
      std::vector<weft::any_case> cases;
      cases.emplace_back(on(told));
      EXPECT_TRUE((co_await as_result(select(std::move(cases)))).is_stopped());
      // In a fiber, which looks before it waits.
      weft::fork<> fiber = s.go([&] {
        await(select(on(told), on_receive(c)));
        ADD_FAILURE() << "it went on";
      });
      EXPECT_TRUE((co_await as_result(std::move(fiber))).is_stopped());
      // Beside one that runs, which is told to stop.
      EXPECT_TRUE((co_await as_result(select(on(told), on(sleep_for(1h))))).is_stopped());
      EXPECT_LT(weft::test::elapsed(), 1h);
    };
    EXPECT_FALSE((co_await as_result(with_scope({.on_error = weft::collect_all_errors}, body))).has_value());
  });
}

// Forks that end on other threads while selects wait for them, and are stopped.
TEST(select_of_fork, on_several_threads) {
  weft::pool p{{.threads = 3}};
  const int count = test::rounds(1000);
  int ended = 0, stopped = 0;
  auto hops = [](int times) -> task<int> {
    for (int i = 0; i != times; ++i) co_await weft::yield();
    co_return 1;
  };
  auto body = [&](scope& s) -> task<> {
    for (int i = 0; i != count; ++i) {
      weft::fork<int> first = s.fork_on(p.executor(), hops, i % 5);
      weft::fork<int> second = s.fork_on(p.executor(), hops, 3);
      auto choice = as_result(select(on(first), on(second)));
      if (i % 4 == 0) second.request_stop();
      const auto got = co_await std::move(choice);
      if (got.is_stopped())
        ++stopped;
      else
        ++ended;
    }
  };
  sync_wait(weft::start_on(p.executor(), with_scope(body)));
  EXPECT_EQ(ended + stopped, count);
  EXPECT_GT(ended, 0);
}

// ---- cases that only the run knows ------------------------------------------------------------------------------------------

using weft::any_case;

TEST(any_case, channels_of_several_types_times_and_stops_in_one_vector) {
  weft::test::run([]() -> task<> {
    channel<int> numbers{1};
    channel<std::string> words{1};
    channel<std::unique_ptr<int>> parcels{0};
    weft::stop_source closing;
    std::string seen;
    const auto all = [&](auto... more) {
      std::vector<any_case> cases;
      cases.emplace_back(on_receive(numbers), [&](std::optional<int> n) { seen = std::to_string(*n); });
      cases.emplace_back(on_receive(words), [&](std::optional<std::string> word) { seen = word ? *word : "over"; });
      cases.emplace_back(weft::on_send(parcels, std::make_unique<int>(3)), [&] { seen = "sent"; });
      cases.emplace_back(on_stop(closing.token()), [&] { seen = "closing"; });
      (cases.emplace_back(std::move(more)), ...);
      return cases;
    };
    EXPECT_EQ(co_await select(all(any_case{otherwise, [&] { seen = "none"; }})), 4u);
    EXPECT_EQ(seen, "none");
    EXPECT_EQ(co_await select(all(any_case{after(2ms)})), 4u);
    EXPECT_EQ(weft::test::elapsed(), 2ms);
    co_await numbers.send(7);
    EXPECT_EQ(co_await select(all(any_case{otherwise})), 0u);
    EXPECT_EQ(seen, "7");
    auto chooses = [&](std::size_t expected) -> task<> {
      auto choice = select(all(any_case{after(1h)}));
      EXPECT_EQ(co_await std::move(choice), expected);
    };
    co_await when_all(chooses(1), words.send("hello"));
    EXPECT_EQ(seen, "hello");
    auto receives = [&]() -> task<> { EXPECT_EQ(**co_await parcels.receive(), 3); };
    co_await when_all(chooses(2), receives());
    EXPECT_EQ(seen, "sent");
    closing.request_stop();
    EXPECT_EQ(co_await select(all()), 3u);
    EXPECT_EQ(numbers.stats().waiting + words.stats().waiting + parcels.stats().waiting, 0u);
  });
}

WEFT_TEST("any_case: fails as the case does, and its function is not called then, or as that does") {
  channel<int> over{1}, ready{1};
  over.close();
  std::vector<any_case> cases;
  cases.emplace_back(weft::on_send(over, 1), [] { ADD_FAILURE() << "nothing was sent"; });
  EXPECT_EQ((co_await as_result(select(std::move(cases)))).error(), weft::errc::closed);
  co_await ready.send(1);
  std::vector<any_case> throwing;
  throwing.emplace_back(on_receive(ready), [](std::optional<int>) { throw std::runtime_error{"as planned"}; });
  EXPECT_TRUE((co_await as_result(select(std::move(throwing)))).exception() != nullptr);
}

WEFT_TEST("any_case: fair among the ready ones, also beside those that are not") {
  constexpr int channels = 8, draws = 1600;
  std::vector<std::unique_ptr<channel<int>>> all;
  weft::semaphore none{0};
  for (int i = 0; i != channels; ++i) all.push_back(std::make_unique<channel<int>>(1));
  int drawn[channels] = {};
  for (int i = 0; i != draws; ++i) {
    std::vector<any_case> cases;
    for (int n = 0; n != channels; ++n) {
      if (n % 2 == 0) static_cast<void>(all[static_cast<std::size_t>(n)]->try_send(n));
      cases.emplace_back(on_receive(*all[static_cast<std::size_t>(n)]), [&](std::optional<int> k) { ++drawn[*k]; });
      cases.emplace_back(on(none.acquire()), [](weft::semaphore::permit) { ADD_FAILURE() << "there is none"; });
    }
    cases.emplace_back(otherwise);
    EXPECT_LT(co_await select(std::move(cases)), std::size_t{2 * channels});
  }
  for (int n = 0; n != channels; ++n) {
    if (n % 2 != 0) {
      EXPECT_EQ(drawn[n], 0);
    } else {
      EXPECT_GT(drawn[n], draws / 4 * 3 / 4);
      EXPECT_LT(drawn[n], draws / 4 * 5 / 4);
    }
  }
}

TEST(any_case, of_primitives_and_forks_and_of_none_it_waits_until_it_is_stopped) {
  weft::test::run([]() -> task<> {
    weft::mutex m;
    bool held = false;
    auto body = [&](scope& s) -> task<> {
      weft::fork<int> work = s.fork(naps(1ms, 5));
      auto taken = co_await m.lock();
      std::vector<any_case> cases;
      cases.emplace_back(on(m.lock()), [&](weft::mutex::guard) { held = true; });
      cases.emplace_back(on(work), [&](int& n) { EXPECT_EQ(n, 5); });
      EXPECT_EQ(co_await select(std::move(cases)), 1u);
    };
    co_await with_scope(body);
    EXPECT_FALSE(held || m.is_locked());
    EXPECT_EQ((co_await as_result(weft::timeout(1ms, select(std::vector<any_case>{})))).error(), weft::errc::timed_out);
  });
}

TEST(any_case, in_a_fiber_and_on_a_thread) {
  channel<int> c{0};
  channel<std::string> words{0};
  std::atomic<int> sum = 0;
  const auto all = [&] {
    std::vector<any_case> cases;
    cases.emplace_back(on_receive(c), [&](std::optional<int> n) { sum += *n; });
    cases.emplace_back(on_receive(words),
                       [&](std::optional<std::string> word) { sum += static_cast<int>(word->size()); });
    return cases;
  };
  std::jthread thread{[&] { EXPECT_EQ(sync_wait(select(all())), 0u); }};
  while (c.stats().waiting == 0) std::this_thread::yield();
  auto body = [&](scope& s) -> task<> {
    co_await c.send(1);
    s.go([&] { EXPECT_EQ(await(select(all())), 1u); });
    co_await words.send("four");
  };
  sync_wait(with_scope(body));
  thread.join();
  EXPECT_EQ(sum, 5);
}

// Senders and receivers that each have a vector of both kinds: each value comes once.
TEST(any_case, loses_no_value_on_several_threads) {
  weft::pool p{{.threads = 3}};
  channel<int> left{0}, right{1};
  const int each = test::rounds(1500);
  std::atomic<int> sent{0}, received{0}, at_it{3};
  weft::stop_source over;
  auto works = [&]() -> task<> {
    for (int i = 0; i != each; ++i) {
      std::vector<any_case> cases;
      cases.emplace_back(weft::on_send(left, 1), [&] { ++sent; });
      cases.emplace_back(on_receive(left), [&](std::optional<int> n) { received += *n; });
      cases.emplace_back(weft::on_send(right, 1), [&] { ++sent; });
      cases.emplace_back(on_receive(right), [&](std::optional<int> n) { received += *n; });
      cases.emplace_back(on_stop(over.token()));
      if (i % 3 == 0) cases.emplace_back(otherwise);
      static_cast<void>(co_await select(std::move(cases)));
    }
    if (--at_it == 0) over.request_stop();
  };
  auto body = [&](scope& s) -> task<> {
    for (int i = 0; i != 3; ++i) s.fork_on(p.executor(), works);
    co_return;
  };
  sync_wait(with_scope(body));
  EXPECT_EQ(received + static_cast<int>(right.size()), sent);
  EXPECT_EQ(left.stats().waiting + right.stats().waiting, 0u);
}

}  // namespace
