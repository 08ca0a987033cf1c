// Cases of a select that are not there now, what never is, and times: what Go does with nil channels and with time.Tick.
#include <weft/channel.hpp>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>
#include <weft/broadcast.hpp>
#include <weft/combine.hpp>
#include <weft/event.hpp>
#include <weft/fiber.hpp>
#include <weft/hop.hpp>
#include <weft/pool.hpp>
#include <weft/scope.hpp>
#include <weft/select.hpp>
#include <weft/test.hpp>
#include <weft/with.hpp>

#include "support/weft_test.hpp"

namespace {

using namespace std::chrono_literals;
using weft::after;
using weft::any_case;
using weft::as_result;
using weft::at;
using weft::await;
using weft::case_if;
using weft::channel;
using weft::never;
using weft::on;
using weft::on_if;
using weft::on_receive;
using weft::on_send;
using weft::otherwise;
using weft::receive_case;
using weft::scope;
using weft::select;
using weft::stop_source;
using weft::sync_wait;
using weft::task;
using weft::when_all;
using weft::with_scope;

// ---- never ------------------------------------------------------------------------------------------------------------------

WEFT_TEST("never: ends when it is stopped, and not else") {
  bool went_on = false;
  auto waits = [&]() -> task<> {
    co_await never();
    went_on = true;
  };
  auto body = [&](scope& s) -> task<> {
    auto one = s.fork(waits());
    co_await weft::yield();
    EXPECT_FALSE(one.done());
    one.request_stop();
    EXPECT_TRUE((co_await as_result(std::move(one))).is_stopped());
    s.request_stop();
    EXPECT_TRUE((co_await as_result(never<int>())).is_stopped()) << "told before";
  };
  co_await with_scope(body);
  EXPECT_FALSE(went_on);
}

WEFT_TEST("never: stands where a value would come") {
  auto value = [](bool comes) -> task<int> {
    if (!comes) co_return co_await never<int>();
    co_return 7;
  };
  const auto first = co_await weft::when_any(value(false), value(true));
  EXPECT_EQ(first.index, 1u);
}

TEST(never, in_a_fiber_and_with_a_time_limit) {
  weft::test::run([]() -> task<> {
    auto waits = [] { await(never()); };
    auto body = [&](scope& s) -> task<> {
      auto fiber = s.go(waits);
      const auto got = co_await as_result(weft::timeout(5ms, never<int>()));
      EXPECT_EQ(got.error(), weft::errc::timed_out);
      EXPECT_FALSE(fiber.done());
      fiber.request_stop();
      EXPECT_TRUE((co_await as_result(std::move(fiber))).is_stopped());
    };
    co_await with_scope(body);
  });
}

WEFT_TEST("never: as a case of a select it is never chosen") {
  channel<int> c{1};
  auto polls = select(on(never<int>()), otherwise);
  EXPECT_EQ((co_await std::move(polls)).index, 1u);
  EXPECT_TRUE(c.try_send(1));
  auto receives = select(on(never()), on_receive(c), on(never<std::string>()));
  EXPECT_EQ((co_await std::move(receives)).index, 1u);
  auto waits = [&]() -> task<> {
    auto choice = select(on(never()), on_receive(c));
    EXPECT_EQ((co_await std::move(choice)).index, 1u);
  };
  auto sends = [&]() -> task<> { co_await c.send(2); };
  co_await when_all(waits(), sends());
}

// There is no lock that keeps such a select where it is until it has parked.
TEST(never, a_select_of_nothing_else_is_stopped_from_other_threads) {
  for (int i = 0; i != test::rounds(500); ++i) {
    stop_source stop;
    std::jthread stopper{[&] { stop.request_stop(); }};
    auto waits = [i]() -> task<> {
      std::vector<case_if<receive_case<int>>> cases;
      for (int k = 0; k != 3; ++k) cases.push_back(on_receive(static_cast<channel<int>*>(nullptr)));
      auto known = select(on(never()), on(never()));
      auto many = select(std::move(cases));
      if (i % 2 == 0)
        co_await std::move(known);
      else
        co_await std::move(many);
    };
    auto stopped = [&]() -> task<bool> {
      auto work = [&] { return waits(); };
      co_return (co_await as_result(weft::with_stop(stop.token(), work))).is_stopped();
    };
    EXPECT_TRUE(sync_wait(stopped()));
  }
}

// ---- holes ------------------------------------------------------------------------------------------------------------------

// Go's idiom: who has nothing to send does not send, and receives meanwhile.
WEFT_TEST("on_if: a case that is not there is never chosen, and keeps its number") {
  channel<int> in{0}, out{0};
  std::vector<int> passed;
  auto buffers = [&]() -> task<> {
    std::vector<int> queue;
    bool ended = false;
    while (!ended || !queue.empty()) {
      const int next = queue.empty() ? 0 : queue.front();
      auto choice = select(on_if(!ended, on_receive(in)), on_if(!queue.empty(), on_send(out, next)));
      const auto got = co_await std::move(choice);
      if (got.index == 1) {
        queue.erase(queue.begin());
      } else if (const std::optional<int> value = std::get<0>(got.value)) {
        queue.push_back(*value);
      } else {
        ended = true;
      }
    }
    out.close();
  };
  auto sends = [&]() -> task<> {
    for (int i = 1; i <= 5; ++i) co_await in.send(i);
    in.close();
  };
  auto receives = [&]() -> task<> {
    while (const auto value = co_await out.receive()) passed.push_back(*value);
  };
  co_await when_all(buffers(), sends(), receives());
  EXPECT_EQ(passed, (std::vector{1, 2, 3, 4, 5}));
}

// Channels are taken out as they end.
WEFT_TEST("on_receive: of a null pointer is never ready, in a vector, too") {
  std::array<std::optional<channel<int>>, 3> channels;
  for (auto& one : channels) one.emplace(1);
  auto sends = [&]() -> task<> {
    for (int i = 0; i != 9; ++i) co_await channels.at(static_cast<std::size_t>(i % 3))->send(i);
    for (auto& one : channels) one->close();
  };
  int sum = 0;
  auto receives = [&]() -> task<> {
    std::array<channel<int>*, 3> from{&*channels[0], &*channels[1], &*channels[2]};
    for (std::size_t left = 3; left != 0;) {
      std::vector<case_if<receive_case<int>>> cases;
      for (channel<int>* one : from) cases.push_back(on_receive(one));
      auto choice = select(std::move(cases));
      const auto got = co_await std::move(choice);
      EXPECT_NE(from.at(got.index), nullptr);
      if (got.value) {
        sum += *got.value;
      } else {
        from.at(got.index) = nullptr;
        --left;
      }
    }
  };
  co_await when_all(receives(), sends());
  EXPECT_EQ(sum, 36);
}

WEFT_TEST("on_if: of cases of all kinds") {
  channel<std::unique_ptr<int>> c{1};
  weft::mutex m;
  weft::broadcast<int> b;
  auto mine = b.subscribe();
  stop_source others;
  EXPECT_TRUE(b.try_send(1));
  EXPECT_TRUE(c.try_send(std::make_unique<int>(1)));
  others.request_stop();
  auto work = []() -> task<int> { co_return 7; };
  auto body = [&](scope& s) -> task<> {
    auto f = s.fork(work());
    for (std::size_t only = 0; only != 6; ++only) {
      auto choice = select(on_if(only == 0, on_receive(c)), on_if(only == 1, on(m.lock())), on_if(only == 2, on(f)),
                           on_if(only == 3, on_receive(mine)), on_if(only == 4, weft::on_stop(others.token())),
                           on_if(only == 5, after(0ms)), otherwise);
      EXPECT_EQ((co_await std::move(choice)).index, only);
    }
    EXPECT_FALSE(m.is_locked());
    co_await std::move(f);
  };
  co_await with_scope(body);
  auto polls = select(on_if(false, after(0ms)), on_send(static_cast<channel<std::unique_ptr<int>>*>(nullptr), nullptr),
                      otherwise);
  EXPECT_EQ((co_await std::move(polls)).index, 2u);
}

// As those that are there, when they wait: in line, by a timer, and out again.
WEFT_TEST("on_if: those that are there wait as they do without it") {
  channel<int> c{0};
  weft::event e;
  auto waits = [&]() -> task<> {
    std::vector<any_case> cases;
    int got = 0;
    cases.emplace_back(on_if(true, on_receive(c)), [&](std::optional<int> n) { got = n.value_or(-1); });
    cases.emplace_back(on_if(false, on(e.wait())));
    cases.emplace_back(on_if(true, on(e.wait())));
    cases.emplace_back(on_if(true, after(1h)));
    cases.emplace_back(on_if(false, after(0ms)));
    auto choice = select(std::move(cases));
    EXPECT_EQ(co_await std::move(choice), 0u);
    EXPECT_EQ(got, 5);
    EXPECT_EQ(c.stats().waiting + e.stats().waiting, 0u);
  };
  auto sends = [&]() -> task<> {
    EXPECT_EQ(c.stats().waiting, 1u);
    EXPECT_EQ(e.stats().waiting, 1u);
    co_await c.send(5);
  };
  co_await when_all(waits(), sends());
}

// ---- times --------------------------------------------------------------------------------------------------------------------

TEST(at, is_a_time_as_a_case) {
  weft::test::run([]() -> task<> {
    channel<int> c{0};
    const auto begin = weft::current_clock().now();
    auto waits = select(on_receive(c), at(begin + 5ms));
    EXPECT_EQ((co_await std::move(waits)).index, 1u);
    EXPECT_EQ(weft::test::elapsed(), 5ms);
    auto passed = select(at(begin), otherwise);
    EXPECT_EQ((co_await std::move(passed)).index, 0u);
    auto to_come = select(at(begin + 6ms), otherwise);
    EXPECT_EQ((co_await std::move(to_come)).index, 1u);
    EXPECT_EQ(weft::test::elapsed(), 5ms);
  });
}

// The book's idiom for time.Tick: the time is the loop's own, so what else comes does not move it.
TEST(at, ticks_beside_a_channel) {
  weft::test::run([]() -> task<> {
    channel<int> c{0};
    std::string seen;
    auto loop = [&]() -> task<> {
      auto tick = weft::current_clock().now() + 10ms;
      for (;;) {
        auto choice = select(on_receive(c), at(tick));
        const auto got = co_await std::move(choice);
        if (got.index == 1) {
          seen += 't';
          EXPECT_EQ(weft::current_clock().now(), tick);
          tick += 10ms;
        } else if (std::get<0>(got.value)) {
          seen += 'c';
        } else {
          co_return;
        }
      }
    };
    auto sends = [&]() -> task<> {
      for (int i = 0; i != 5; ++i) {
        co_await weft::sleep_for(6ms);
        co_await c.send(i);
      }
      co_await weft::sleep_for(6ms);
      c.close();
    };
    co_await when_all(loop(), sends());
    // Values at 6, 12, 18, 24 and 30, ticks at 10, 20 and 30: at 30 either may be first.
    EXPECT_TRUE(seen == "ctcctcct" || seen == "ctcctctc") << seen;
  });
}

// Whoever ends the wait goes on, and frees the select, while the select still gives its locks back.
TEST(select_holes, is_gone_as_soon_as_its_last_lock_is_free) {
  const weft::pool workers{{.threads = 2}};
  const int rounds = test::rounds(50'000);
  channel<int> absent{0};
  weft::auto_event bell;
  auto one = [&]() -> task<int> {
    auto got = co_await select(on_if(false, on_receive(absent)), on_if(true, on(bell.wait())));
    co_return static_cast<int>(got.index);
  };
  auto waits = [&]() -> task<int> {
    int sum = 0;
    for (int i = 0; i != rounds; ++i) sum += co_await one();
    co_return sum;
  };
  // From a thread of its own, so that it is there while the select falls asleep.
  std::atomic<bool> over = false;
  std::jthread rings{[&] {
    while (!over) {
      bell.set();
      std::this_thread::yield();
    }
  }};
  const int sum = sync_wait(weft::start_on(workers, waits()));
  over = true;
  EXPECT_EQ(sum, rounds);
}

}  // namespace
