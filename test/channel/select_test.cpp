// Select beside what is no channel, and what the Go project's tests of select check, by behaviour: doubled cases, selects
// that never wait against others, order through chains, stress. channel_test has the plain ones; sweep_channel_test stops
// them everywhere.
#include <weft/channel.hpp>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>
#include <weft/broadcast.hpp>
#include <weft/combine.hpp>
#include <weft/fiber.hpp>
#include <weft/pool.hpp>
#include <weft/scope.hpp>
#include <weft/select.hpp>
#include <weft/test.hpp>
#include <weft/with.hpp>

#include "support/weft_test.hpp"

namespace {

using namespace std::chrono_literals;
using weft::after;
using weft::as_result;
using weft::await;
using weft::channel;
using weft::errc;
using weft::fork;
using weft::on;
using weft::on_receive;
using weft::on_send;
using weft::otherwise;
using weft::scope;
using weft::select;
using weft::sleep_for;
using weft::sync_wait;
using weft::task;
using weft::timeout;
using weft::when_all;
using weft::with_scope;

// ---- beside what is no channel --------------------------------------------------------------------------------------------

// Gives `what` after a time, and says in `left` how often one was left before that.
task<std::string> says(std::string what, std::chrono::milliseconds when, int& left) {
  struct leaving {
    int& left;
    bool said = false;
    ~leaving() {
      if (!said) ++left;
    }
  } one{left};
  co_await sleep_for(when);
  one.said = true;
  co_return what;
}

TEST(select_on, a_task_is_chosen_when_it_ends_and_stopped_when_another_is) {
  weft::test::run([]() -> task<> {
    channel<int> c{0};
    int left = 0;
    auto first = co_await select(on_receive(c), on(says("hello", 3ms, left)), after(1h));
    EXPECT_EQ(first.index, 1u);
    EXPECT_EQ(std::get<1>(first.value), "hello");
    EXPECT_EQ(weft::test::elapsed(), 3ms);
    EXPECT_EQ(left, 0);
    auto chooses = [&]() -> task<> {
      const auto second = co_await select(on(says("too late", 1h, left)), on_receive(c));
      EXPECT_EQ(second.index, 1u);
      EXPECT_EQ(std::get<1>(second.value), 7);
      EXPECT_EQ(left, 1) << "it was stopped and joined";
    };
    co_await when_all(chooses(), c.send(7));
    EXPECT_EQ(weft::test::elapsed(), 3ms);
    EXPECT_EQ(c.stats().waiting, 0u);
  });
}

TEST(select_on, a_fork_that_was_not_chosen_still_has_its_result) {
  weft::test::run([]() -> task<> {
    channel<int> c{1};
    int left = 0;
    auto body = [&](scope& s) -> task<> {
      fork<std::string> work = s.fork(says("done", 5ms, left));
      co_await c.send(1);
      EXPECT_EQ((co_await select(on(work), on_receive(c))).index, 1u);
      EXPECT_FALSE(work.done());
      const auto got = co_await select(on(work), on_receive(c));
      EXPECT_EQ(got.index, 0u);
      EXPECT_EQ(std::get<0>(got.value).get(), "done");
      EXPECT_EQ(co_await std::move(work), "done");
    };
    co_await with_scope(body);
    EXPECT_EQ(weft::test::elapsed(), 5ms);
    EXPECT_EQ(left, 0);
  });
}

TEST(select_on, any_primitive) {
  weft::test::run([]() -> task<> {
    weft::mutex m;
    weft::event e;
    auto held = co_await m.lock();
    auto opens = [&]() -> task<> {
      co_await sleep_for(2ms);
      e.set();
      co_await sleep_for(2ms);
      held.unlock();
    };
    auto chooses = [&]() -> task<> {
      EXPECT_EQ((co_await select(on(m.lock()), on(e.wait()))).index, 1u);
      EXPECT_EQ(weft::test::elapsed(), 2ms);
      e.reset();
      auto got = co_await select(on(e.wait()), on(m.lock()));
      EXPECT_EQ(weft::test::elapsed(), 4ms);
      EXPECT_TRUE(std::get<1>(got.value)) << "it owns the mutex";
      EXPECT_TRUE(m.is_locked());
    };
    co_await when_all(opens(), chooses());
    EXPECT_FALSE(m.is_locked());
    EXPECT_EQ(m.stats().waiting + e.stats().waiting, 0u);
  });
}

WEFT_TEST("select_on: a channel's own operations are its cases") {
  channel<int> a{1}, b{1};
  static_assert(std::is_same_v<decltype(on(a.receive())), weft::receive_case<int>>);
  static_assert(std::is_same_v<decltype(on(a.send(1))), weft::send_case<int>>);
  EXPECT_EQ((co_await select(on(a.receive()), on(b.send(4)), otherwise)).index, 1u);
  weft::broadcast<int> all;
  auto mine = all.subscribe();
  co_await all.send(5);
  const auto got = co_await select(on(mine.receive()), on(a.receive()));
  EXPECT_EQ(std::get<0>(got.value), 5);
}

task<> is_fair_among_the_ready_ones() {
  weft::semaphore s{1000};
  channel<int> c{weft::unbounded};
  for (int i = 0; i != 1000; ++i) co_await c.send(1);
  int from_channel = 0;
  for (int i = 0; i != 400; ++i) {
    const auto got = co_await select(on(s.acquire()), on_receive(c));
    from_channel += static_cast<int>(got.index);
  }
  EXPECT_GT(from_channel, 120);
  EXPECT_LT(from_channel, 280);
  EXPECT_EQ(c.size(), static_cast<std::size_t>(1000 - from_channel)) << "no value went where it was not chosen";
}
WEFT_TEST("select_on: fair among the ready ones") { co_await is_fair_among_the_ready_ones(); }
// Where forks are for others to take.
TEST(select_on, fair_among_the_ready_ones_on_a_pool) {
  weft::pool threads{{.threads = 2}};
  sync_wait(weft::start_on(threads.executor(), is_fair_among_the_ready_ones()));
}

task<int> fails() {
  throw std::runtime_error{"as planned"};
  co_return 0;
}

WEFT_TEST("select_on: throws what the chosen one throws, and a send to a closed channel") {
  channel<int> never{0}, closed{0};
  closed.close();
  const auto how = co_await as_result(select(on(fails()), on_receive(never)));
  EXPECT_TRUE(how.exception() != nullptr);
  weft::event e;
  const auto sent = co_await as_result(select(on(e.wait()), on_send(closed, 1)));
  EXPECT_EQ(sent.error(), errc::closed);
  EXPECT_EQ(e.stats().waiting + never.stats().waiting, 0u);
}

WEFT_TEST("select_on: the failure of one that was not chosen is a lost error") {
  static std::string lost;
  const auto before =
      weft::set_lost_error_handler([](const char* operation, const std::exception_ptr&) noexcept { lost = operation; });
  channel<int> c{1};
  co_await c.send(1);
  auto fails_when_stopped = [](channel<int>& from) -> task<> {
    const auto how = co_await as_result(sleep_for(1h));
    if (how.is_stopped()) throw std::runtime_error{"as planned"};
    static_cast<void>(from);
  };
  const auto got = co_await select(on(fails_when_stopped(c)), on_receive(c));
  weft::set_lost_error_handler(before);
  EXPECT_EQ(got.index, 1u);
  EXPECT_EQ(lost, "select");
}

WEFT_TEST("select_on: the failure of a fork that was not chosen is thrown by the fork, and is no lost error") {
  static int lost;
  lost = 0;
  const auto before = weft::set_lost_error_handler([](const char*, const std::exception_ptr&) noexcept { ++lost; });
  auto failing = []() -> task<int> {
    static_cast<void>(co_await as_result(weft::yield()));
    throw std::runtime_error{"as planned"};
  };
  int thrown = 0;
  auto body = [&](scope& s) -> task<> {
    channel<int> c{1};
    fork<int> work = s.fork(failing());
    while (!work.done()) co_await weft::yield();
    for (std::size_t chosen = 0; chosen != 1;) {  // both are ready: each is as likely
      static_cast<void>(c.try_send(1));
      const auto got = co_await as_result(select(on(work), on_receive(c)));
      if (got.has_value()) chosen = got->index;
    }
    thrown += (co_await as_result(std::move(work))).exception() != nullptr;
  };
  EXPECT_FALSE((co_await as_result(with_scope({.on_error = weft::collect_all_errors}, body))).has_value());
  weft::set_lost_error_handler(before);
  EXPECT_EQ(thrown, 1);
  EXPECT_EQ(lost, 0);
}

TEST(select_on, one_that_ends_stopped_and_is_chosen_ends_the_select_stopped) {
  weft::test::run([]() -> task<> {
    channel<int> never{0};
    int left = 0;
    auto body = [&](scope& s) -> task<> {
      fork<std::string> work = s.fork(says("never", 1h, left));
      auto stops = [&]() -> task<> {
        co_await sleep_for(1ms);
        work.request_stop();
      };
      auto chooses = [&]() -> task<> {
        EXPECT_TRUE((co_await as_result(select(on(work), on_receive(never)))).is_stopped());
      };
      co_await when_all(stops(), chooses());
    };
    co_await with_scope(body);
    EXPECT_EQ(never.stats().waiting, 0u);
  });
}

TEST(select_on, of_many_that_only_the_run_knows) {
  weft::test::run([]() -> task<> {
    std::vector<weft::on_case<std::string>> cases;
    int left = 0;
    for (int i = 0; i != 200; ++i)
      cases.push_back(on(says(std::to_string(i), std::chrono::milliseconds{200 - i}, left)));
    const auto got = co_await select(std::move(cases));
    EXPECT_EQ(got.index, 199u);
    EXPECT_EQ(got.value, "199");
    EXPECT_EQ(left, 199);
    EXPECT_EQ(weft::test::elapsed(), 1ms);
  });
}

TEST(select_on, in_a_fiber_and_on_a_thread) {
  channel<int> c{0};
  weft::event e;
  std::jthread thread{[&] { EXPECT_EQ(sync_wait(select(on(e.wait()), on_receive(c))).index, 1u); }};
  auto waits = [&] { EXPECT_EQ(weft::await(select(on_receive(c), on(e.wait()))).index, 0u); };
  auto body = [&](scope& s) -> task<> {
    s.go(waits);
    co_await c.send(1);
    co_await c.send(2);
  };
  sync_wait(with_scope(body));
}

// Tasks end and values come on several threads at once: each value that was sent is received, in whatever case.
TEST(select_on, loses_no_value_while_tasks_end_on_other_threads) {
  channel<int> c{0};
  weft::pool p{{.threads = 3}};
  const int count = test::rounds(500);
  int received = 0;
  auto sends = [&]() -> task<> {
    for (int i = 0; i != count; ++i) co_await c.send(1);
    c.close();
  };
  auto hops = [&]() -> task<> {
    for (int i = 0; i != 3; ++i) co_await weft::yield();
  };
  auto receives = [&]() -> task<> {
    for (;;) {
      const auto got = co_await select(on_receive(c), on(hops()));
      if (got.index == 1) continue;
      if (!std::get<0>(got.value)) break;
      ++received;
    }
  };
  auto body = [&](scope& s) -> task<> {
    s.fork_on(p.executor(), sends);
    s.fork_on(p.executor(), receives);
    co_return;
  };
  sync_wait(with_scope(body));
  EXPECT_EQ(received, count);
}

// ---- what the Go project checks -------------------------------------------------------------------------------------------

WEFT_TEST("select_go: a channel may be named twice, and either place is chosen") {
  channel<int> c{weft::unbounded};
  for (int i = 0; i != 200; ++i) co_await c.send(i);
  int expected = 0, first = 0;
  while (expected != 200) {
    const auto got = co_await select(on_receive(c), on_receive(c));
    if (got.index == 0) ++first;
    EXPECT_EQ(got.index == 0 ? std::get<0>(got.value) : std::get<1>(got.value), expected++);
  }
  EXPECT_GT(first, 40);
  EXPECT_LT(first, 160);
  auto waits = [&]() -> task<> {
    const auto got = co_await select(on_receive(c), on_receive(c), on_receive(c));
    EXPECT_LT(got.index, 3u);  // any of them: select_fair_test
    const auto value = got.index == 0   ? std::get<0>(got.value)
                       : got.index == 1 ? std::get<1>(got.value)
                                        : std::get<2>(got.value);
    EXPECT_EQ(value, 1);
  };
  co_await when_all(waits(), c.send(1));
  EXPECT_EQ(c.stats().waiting, 0u);
}

WEFT_TEST("select_go: which value is sent is random") {
  channel<int> c{0};
  int ones = 0;
  auto receives = [&]() -> task<> {
    for (int i = 0; i != 200; ++i) ones += *co_await c.receive();
  };
  auto sends = [&]() -> task<> {
    for (int i = 0; i != 200; ++i) static_cast<void>(co_await select(on_send(c, 0), on_send(c, 1)));
  };
  co_await when_all(receives(), sends());
  EXPECT_GT(ones, 40);
  EXPECT_LT(ones, 160);
}

// What was sent, or closed, before is there for one that never waits, whatever others do at the same time.
TEST(select_go, one_that_never_waits_sees_what_was_there_before) {
  for (int i = 0; i != test::rounds(300); ++i) {
    channel<int> value{1}, late{1}, ended{1};
    EXPECT_TRUE(value.try_send(1));
    std::jthread other{[&] {
      const auto got = sync_wait(select(on_receive(value), on_receive(late), on_receive(ended), otherwise));
      EXPECT_NE(got.index, 3u) << "one of them was ready all the time";
    }};
    EXPECT_TRUE(late.try_send(2));
    ended.close();
    const auto got = sync_wait(select(on_receive(value), on_receive(ended), otherwise));
    EXPECT_NE(got.index, 2u);
  }
}

// A case that is never ready, and moves a value when it is looked at.
struct moves_one : weft::detail::happening_case {
  using result_type = std::monostate;
  using state = moves_one;
  moves_one(weft::detail::happening& never, channel<int>& from, channel<int>& to)
      : happening_case{never}, never_{never}, from_{from}, to_{to} {}
  moves_one(const moves_one& other) : moves_one{other.never_, other.from_, other.to_} {}
  bool may_be_ready() const noexcept {
    if (to_.try_send(1)) static_cast<void>(from_.try_receive());
    return false;
  }
  result_type take() noexcept { return {}; }

  weft::detail::happening& never_;
  channel<int>& from_;
  channel<int>& to_;
};

// There is a value in one of two channels until one is in the other. Who looks first at the other, and then at the one, finds
// none in either, but not at one moment. Whichever they are looked at first.
TEST(select_go, one_that_never_waits_looks_at_one_moment) {
  channel<int> left{1}, right{1};
  weft::detail::happening never;
  EXPECT_TRUE(left.try_send(1));
  EXPECT_EQ(sync_wait(select(on_receive(right), moves_one{never, left, right}, on_receive(left), otherwise)).index, 0u);
  EXPECT_FALSE(left.try_receive());
  EXPECT_TRUE(left.try_send(1));
  EXPECT_EQ(sync_wait(select(on_receive(left), moves_one{never, right, left}, on_receive(right), otherwise)).index, 0u);
}

// A case that is never ready, and does something when it is looked at first.
struct does_once : weft::detail::happening_case {
  using result_type = std::monostate;
  using state = does_once;
  does_once(weft::detail::happening& never, std::function<void()>& what)
      : happening_case{never}, never_{never}, what_{what} {}
  does_once(const does_once& other) : does_once{other.never_, other.what_} {}
  bool may_be_ready() const noexcept {
    if (auto what = std::exchange(what_, nullptr)) what();
    return false;
  }
  result_type take() noexcept { return {}; }

  weft::detail::happening& never_;
  std::function<void()>& what_;
};

// The same where who would have sent in the one is stopped, once somebody would receive in the other.
TEST(select_go, one_that_never_waits_looks_at_one_moment_where_one_is_stopped) {
  channel<int> sent{0}, wanted{0};
  weft::detail::happening never;
  weft::stop_source stop;
  std::optional<int> got;
  auto sends = [&]() -> task<> { co_await sent.send(1); };
  auto receives = [&]() -> task<> { got = co_await wanted.receive(); };
  const auto nothing = [](weft::result<void>) {};
  weft::start(weft::with_stop(stop.token(), sends), nothing);
  std::function<void()> moves = [&] {
    weft::start(receives(), nothing);
    stop.request_stop();
  };
  EXPECT_EQ(sync_wait(select(on_send(wanted, 2), does_once{never, moves}, on_receive(sent), otherwise)).index, 0u);
  EXPECT_EQ(got, 2);
}

// Nor does one that looks see less while the values are moved to where there is more room, or one makes room for the next.
TEST(channel_go, what_was_sent_is_there_for_one_that_never_waits) {
  const int count = test::rounds(20'000);
  for (const bool bounded : {false, true}) {
    std::optional<channel<int>> c;
    bounded ? c.emplace(1) : c.emplace(weft::unbounded);
    std::atomic<int> sent{0};
    std::jthread sends{[&] {
      for (int i = 0; i != count; ++i) {
        if (bounded) {
          sync_wait(c->send(i));
        } else {
          EXPECT_TRUE(c->try_send(i));
        }
        sent = i + 1;
      }
    }};
    for (int got = 0; got != count;) {
      if (got < sent) {
        EXPECT_EQ(c->try_receive(), got);
        ++got;
      }
    }
  }
}

TEST(select_go, a_time_of_nothing_is_over_at_once) {
  channel<int> never{0}, ready{1};
  EXPECT_EQ(sync_wait(select(on_receive(never), after(0s))).index, 1u);
  int times = 0;
  for (int i = 0; i != 200; ++i) {
    static_cast<void>(ready.try_send(i));
    times += sync_wait(select(on_receive(ready), after(0s))).index == 1;
  }
  EXPECT_GT(times, 40);
  EXPECT_LT(times, 160);
}

WEFT_TEST("select: a fiber leaves its stack only to wait") {
  channel<int> one{2}, other{2}, full{1}, over{1};
  EXPECT_TRUE(full.try_send(0));
  over.close();
  auto body = [&](scope& s) -> task<> {
    auto receives = [&] { return await(select(on_receive(one), on_receive(other))); };
    auto waits = s.go(receives);
    co_await s.go([&] {
      const std::size_t before = weft::fibers().switches;
      EXPECT_EQ(await(select(on_send(full, 1), on_send(one, 2))).index, 1u);  // to the one that waits
      EXPECT_EQ(await(select(on_receive(one), on_receive(other), otherwise)).index, 2u);
      EXPECT_EQ(await(select(on_send(full, 1), otherwise)).index, 1u);
      EXPECT_EQ(await(select(on_send(other, 3), on_receive(one), otherwise)).index, 0u);
      const auto got = await(select(on_receive(one), on_receive(other)));
      EXPECT_EQ(std::get<1>(got.value), 3);
      std::vector<weft::receive_case<int>> all;
      for (channel<int>* c : {&one, &full}) all.push_back(on_receive(*c));
      EXPECT_EQ(await(select(std::move(all))).index, 1u);
      EXPECT_EQ(await(select(on_receive(one), after(0s))).index, 1u);
      EXPECT_EQ(std::get<0>(await(select(on_receive(over), on_receive(one))).value), std::nullopt);
      EXPECT_THROW(static_cast<void>(await(select(on_send(over, 1), on_receive(one)))), weft::channel_closed<int>);
      EXPECT_EQ(weft::fibers().switches, before);
    });
    EXPECT_EQ((co_await std::move(waits)).index, 0u);
    for (const bool never_waits : {false, true}) {
      weft::fork<void> told;
      told = s.go([&] {
        weft::this_fiber::yield();
        told.request_stop();
        if (never_waits)
          await(select(on_send(one, 4), otherwise));  // there is room
        else
          await(select(on_send(one, 4), on_receive(other)));
        ADD_FAILURE() << "it went on";
      });
      while (told.status() == weft::fork_status::running) co_await weft::yield();
      const auto how = co_await as_result(std::move(told));
      EXPECT_TRUE(how.is_stopped());
    }
  };
  co_await with_scope(body);
  EXPECT_EQ(one.size(), 0u);
}

// Senders that select over four channels, and receivers that do: each value comes once, and those of one sender through
// one channel in order.
TEST(select_go, doubled_selects) {
  constexpr std::size_t channels = 4;
  channel<int> all[channels]{channel<int>{0}, channel<int>{0}, channel<int>{1}, channel<int>{2}};
  weft::pool p{{.threads = 3}};
  const int each = test::rounds(1500);
  std::vector<std::atomic<int>> seen(static_cast<std::size_t>(2 * each));
  std::atomic<int> sending{2};
  auto sends = [&](int from) -> task<> {
    for (int i = 0; i != each; ++i) {
      const int value = from * each + i;
      static_cast<void>(co_await select(on_send(all[0], value), on_send(all[1], value), on_send(all[2], value),
                                        on_send(all[3], value)));
    }
    if (--sending == 0)
      for (auto& one : all) one.close();
  };
  auto receives = [&]() -> task<> {
    std::vector<int> last(2 * channels, -1);
    std::vector<channel<int>*> open;
    for (auto& one : all) open.push_back(&one);
    while (!open.empty()) {
      std::vector<weft::receive_case<int>> cases;
      for (auto* one : open) cases.push_back(on_receive(*one));
      const auto got = co_await select(std::move(cases));
      if (!got.value) {
        open.erase(open.begin() + static_cast<std::ptrdiff_t>(got.index));
        continue;
      }
      ++seen[static_cast<std::size_t>(*got.value)];
      const auto through = static_cast<std::size_t>(open[got.index] - all);
      int& before = last[2 * through + static_cast<std::size_t>(*got.value / each)];
      EXPECT_LT(before, *got.value);
      before = *got.value;
    }
  };
  auto body = [&](scope& s) -> task<> {
    for (int i = 0; i != 2; ++i) s.fork_on(p.executor(), sends, i);
    for (int i = 0; i != 2; ++i) s.fork_on(p.executor(), receives);
    co_return;
  };
  sync_wait(with_scope(body));
  for (const auto& count : seen) EXPECT_EQ(count, 1);
}

// A row of tasks that hand a value on, through rendezvous and through room: it comes in order.
TEST(select_go, order_is_kept_through_a_chain) {
  for (const std::size_t capacity : {0u, 10u}) {
    std::vector<std::unique_ptr<channel<int>>> row;
    for (int i = 0; i != 20; ++i) row.push_back(std::make_unique<channel<int>>(capacity));
    auto hands_on = [&](std::size_t i) -> task<> {
      while (const auto value = co_await row[i]->receive()) co_await row[i + 1]->send(*value + 1);
      row[i + 1]->close();
    };
    auto body = [&](scope& s) -> task<> {
      for (std::size_t i = 0; i + 1 != row.size(); ++i) s.fork(hands_on, i);
      auto sends = [&]() -> task<> {
        for (int i = 0; i != 50; ++i) co_await row.front()->send(int{i});
        row.front()->close();
      };
      s.fork(sends);
      int expected = 19;
      while (const auto value = co_await row.back()->receive()) EXPECT_EQ(*value, expected++);
      EXPECT_EQ(expected, 69);
    };
    sync_wait(with_scope(body));
  }
}

// Four channels, some with room. To each one a task sends, and from each one receives; one sends to whichever is ready until
// each has got so many, and one receives so.
TEST(select_go, stress) {
  constexpr int channels = 4;
  const int each = test::rounds(1000);
  channel<int> all[channels]{channel<int>{0}, channel<int>{0}, channel<int>{2}, channel<int>{3}};
  weft::pool p{{.threads = 3}};
  auto sends = [&](int to) -> task<> {
    for (int i = 0; i != each; ++i) co_await all[to].send(1);
  };
  auto receives = [&](int from) -> task<> {
    for (int i = 0; i != each; ++i) static_cast<void>(co_await all[from].receive());
  };
  auto sends_to_any = [&]() -> task<> {
    int left[channels] = {each, each, each, each};
    for (int total = channels * each; total != 0; --total) {
      std::vector<weft::send_case<int>> cases;
      std::vector<int> which;
      for (int i = 0; i != channels; ++i)
        if (left[i] != 0) {
          cases.push_back(on_send(all[i], 1));
          which.push_back(i);
        }
      const auto got = co_await select(std::move(cases));
      --left[which[got.index]];
    }
  };
  auto receives_from_any = [&]() -> task<> {
    int left[channels] = {each, each, each, each};
    for (int total = channels * each; total != 0; --total) {
      std::vector<weft::receive_case<int>> cases;
      std::vector<int> which;
      for (int i = 0; i != channels; ++i)
        if (left[i] != 0) {
          cases.push_back(on_receive(all[i]));
          which.push_back(i);
        }
      const auto got = co_await select(std::move(cases));
      --left[which[got.index]];
    }
  };
  auto body = [&](scope& s) -> task<> {
    for (int i = 0; i != channels; ++i) {
      s.fork_on(p.executor(), sends, i);
      s.fork_on(p.executor(), receives, i);
    }
    s.fork_on(p.executor(), sends_to_any);
    s.fork_on(p.executor(), receives_from_any);
    co_return;
  };
  sync_wait(with_scope(body));
  for (auto& one : all) EXPECT_EQ(one.size() + one.stats().waiting, 0u);
}

}  // namespace
