// No case of a select has an edge over another one: where one event makes several of them possible, each is as likely,
// whether the select waits for it or finds it. select_test has select itself.
//
// A test counts who was chosen. By Hoeffding's inequality a count of `rounds` draws is off by `most_off` in one of 10^10
// runs, and no test here looks at more than six of them; a thread that draws is in the same state in each run, besides.
#include <weft/channel.hpp>

#include <array>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>
#include <weft/broadcast.hpp>
#include <weft/combine.hpp>
#include <weft/fiber.hpp>
#include <weft/scope.hpp>
#include <weft/select.hpp>
#include <weft/test.hpp>

#include "support/weft_test.hpp"

namespace {

using namespace std::chrono_literals;
using weft::after;
using weft::any_case;
using weft::await;
using weft::channel;
using weft::on;
using weft::on_receive;
using weft::on_send;
using weft::on_stop;
using weft::scope;
using weft::select;
using weft::sync_wait;
using weft::task;
using weft::when_all;
using weft::with_scope;

constexpr int rounds = 2000;

// How often each case was chosen. At the end, each that may be was as often as the others.
class tally {
 public:
  explicit tally(std::size_t cases) : times_(cases) {}
  ~tally() {
    std::size_t all = 0;
    for (const std::size_t one : times_) all += one;
    const double n = static_cast<double>(all);
    const double most_off = std::sqrt(n * std::log(2e10) / 2);
    for (std::size_t i = 0; i != times_.size(); ++i)
      EXPECT_NEAR(static_cast<double>(times_[i]), n / static_cast<double>(times_.size()), most_off) << "case " << i;
  }
  void count(std::size_t chosen) { ++times_.at(chosen); }

 private:
  std::vector<std::size_t> times_;
};

// Chooses so many times, and each time has the event come when the select waits.
template <class Choose, class Event>
task<> is_fair(std::size_t cases, Choose choose, Event event) {
  tally chosen{cases};
  for (int i = 0; i != rounds; ++i) {
    auto selects = [&]() -> task<> { chosen.count(co_await choose()); };
    auto happens = [&]() -> task<> { co_await event(); };
    co_await when_all(selects(), happens());
  }
}

template <class... Cases>
task<std::size_t> index_of(Cases... cases) {
  auto choice = select(std::move(cases)...);
  const auto got = co_await std::move(choice);
  co_return got.index;
}

// ---- channels -----------------------------------------------------------------------------------------------------------

WEFT_TEST("select_fair: receives of one channel, when a sender comes") {
  channel<int> c{0};
  auto choose = [&] { return index_of(on_receive(c), on_receive(c)); };
  auto event = [&]() -> task<> { co_await c.send(1); };
  co_await is_fair(2, choose, event);
}

WEFT_TEST("select_fair: sends to one channel, when a receiver comes") {
  channel<int> c{0};
  std::array<int, 3> got{};
  auto choose = [&] { return index_of(on_send(c, 0), on_send(c, 1), on_send(c, 2)); };
  auto event = [&]() -> task<> { ++got.at(static_cast<std::size_t>((co_await c.receive()).value())); };
  co_await is_fair(3, choose, event);
  EXPECT_EQ(got[0] + got[1] + got[2], rounds);
}

WEFT_TEST("select_fair: sends to a channel that was full, when there is room") {
  channel<int> c{1};
  EXPECT_TRUE(c.try_send(0));
  auto choose = [&] { return index_of(on_send(c, 0), on_send(c, 1)); };
  auto event = [&]() -> task<> { static_cast<void>(co_await c.receive()); };
  co_await is_fair(2, choose, event);
}

// Not at equal distances: from any place on would not do.
WEFT_TEST("select_fair: some in one line, and some in another one between them") {
  channel<int> c{0}, other{0};
  tally chosen{3};
  auto choose = [&]() -> task<> {
    for (int i = 0; i != rounds; ++i) {
      const std::size_t at = co_await index_of(on_receive(other), on_receive(c), on_receive(c), on_receive(other),
                                               on_receive(other), on_receive(c));
      EXPECT_TRUE(at == 1 || at == 2 || at == 5) << at;
      chosen.count(at == 5 ? 2 : at - 1);
    }
  };
  auto sends = [&]() -> task<> {
    for (int i = 0; i != rounds; ++i) co_await c.send(i);
  };
  co_await when_all(choose(), sends());
}

WEFT_TEST("select_fair: a vector of receives, and one of cases of any kind") {
  channel<int> c{0};
  auto choose = [&]() -> task<std::size_t> {
    std::vector<weft::receive_case<int>> cases;
    for (int i = 0; i != 5; ++i) cases.push_back(on_receive(c));
    auto choice = select(std::move(cases));
    co_return (co_await std::move(choice)).index;
  };
  auto choose_any = [&]() -> task<std::size_t> {
    std::vector<any_case> cases;
    for (int i = 0; i != 5; ++i) cases.emplace_back(on_receive(c));
    auto choice = select(std::move(cases));
    co_return co_await std::move(choice);
  };
  auto event = [&]() -> task<> { co_await c.send(1); };
  co_await is_fair(5, choose, event);
  co_await is_fair(5, choose_any, event);
}

WEFT_TEST("select_fair: a select that comes to one that waits") {
  channel<int> c{0}, other{0};
  tally waiting{3}, coming{3};
  for (int i = 0; i != rounds; ++i) {
    auto waits = [&]() -> task<> { waiting.count(co_await index_of(on_receive(c), on_receive(c), on_receive(other))); };
    auto comes = [&]() -> task<> { coming.count(co_await index_of(on_send(c, 0), on_send(other, 1), on_send(c, 2))); };
    // Who comes chooses first, among three cases: then the other one is in one line twice, in the other one once.
    co_await when_all(waits(), comes());
  }
}

// A close ends the waits of both lines.
WEFT_TEST("select_fair: sends and receives, when their channel is closed") {
  std::optional<channel<int>> c;
  auto choose = [&]() -> task<std::size_t> {
    c.emplace(0);
    std::vector<any_case> cases;
    std::size_t received = 0, failed = 0;
    cases.emplace_back(on_receive(*c), [&](std::optional<int> n) { received += n ? 2 : 1; });
    cases.emplace_back(on_send(*c, 1));
    cases.emplace_back(on_receive(*c), [&](std::optional<int> n) { received += n ? 2 : 1; });
    std::size_t at = 1;
    auto choice = select(std::move(cases));
    try {
      at = co_await std::move(choice);
    } catch (weft::channel_closed<int>& closed) {
      failed = static_cast<std::size_t>(closed.value());
    }
    EXPECT_EQ(received + failed, 1u);
    EXPECT_EQ(failed == 1, at == 1);
    co_return at;
  };
  auto event = [&]() -> task<> {
    c->close();
    co_return;
  };
  co_await is_fair(3, choose, event);
}

WEFT_TEST("select_fair: a send and a receive that are known, when their channel is closed") {
  std::optional<channel<int>> c;
  auto choose = [&]() -> task<std::size_t> {
    c.emplace(0);
    std::size_t at = 0;
    auto choice = select(on_send(*c, 1), on_receive(*c));
    try {
      at = (co_await std::move(choice)).index;
      EXPECT_EQ(at, 1u);
    } catch (weft::channel_closed<int>&) {
    }
    co_return at;
  };
  auto event = [&]() -> task<> {
    EXPECT_EQ(c->stats().waiting, 2u);
    c->close();
    EXPECT_EQ(c->stats().waiting, 0u);
    co_return;
  };
  co_await is_fair(2, choose, event);
}

WEFT_TEST("select_fair: a broadcast and a watch") {
  weft::broadcast<int> b{{.capacity = 1}};
  auto reader = b.subscribe();
  EXPECT_TRUE(b.try_send(0));
  auto sends = [&] { return index_of(on(b.send(0)), on(b.send(1))); };
  auto makes_room = [&]() -> task<> { static_cast<void>(co_await reader.receive()); };
  co_await is_fair(2, sends, makes_room);
  static_cast<void>(co_await reader.receive());

  auto one = b.subscribe(), two = b.subscribe();
  auto receives = [&] { return index_of(on_receive(one), on_receive(two)); };
  auto sent = [&]() -> task<> {
    co_await b.send(7);
    static_cast<void>(co_await reader.receive());
    static_cast<void>(one.try_receive());
    static_cast<void>(two.try_receive());
  };
  co_await is_fair(2, receives, sent);

  weft::watch<int> w{0};
  auto left = w.subscribe(), right = w.subscribe();
  auto set = [&]() -> task<> {
    w.set(1);
    co_return;
  };
  auto sees = [&]() -> task<std::size_t> {
    static_cast<void>(left.try_receive());
    static_cast<void>(right.try_receive());
    co_return co_await index_of(on_receive(left), on_receive(right));
  };
  co_await is_fair(2, sees, set);
}

WEFT_TEST("select_fair: a broadcast that is closed, to one that sends and receives") {
  std::optional<weft::broadcast<int>> b;
  std::optional<weft::broadcast<int>::receiver> behind, mine;
  auto choose = [&]() -> task<std::size_t> {
    behind.reset();
    mine.reset();
    b.emplace(weft::broadcast_options{.capacity = 1});
    behind.emplace(b->subscribe());
    EXPECT_TRUE(b->try_send(1));
    mine.emplace(b->subscribe());
    std::size_t at = 1;
    auto choice = select(on_receive(*mine), on(b->send(2)));
    try {
      at = (co_await std::move(choice)).index;
    } catch (weft::channel_closed<int>&) {
    }
    co_return at;
  };
  auto event = [&]() -> task<> {
    b->close();
    co_return;
  };
  co_await is_fair(2, choose, event);
  behind.reset();
  mine.reset();
}

// ---- primitives ---------------------------------------------------------------------------------------------------------

WEFT_TEST("select_fair: locks of one mutex") {
  weft::mutex m;
  auto choose = [&]() -> task<std::size_t> {
    auto held = std::make_unique<weft::mutex::guard>(m.try_lock());
    auto gives_back = [&]() -> task<> {
      held.reset();
      co_return;
    };
    std::size_t at = 2;
    auto selects = [&]() -> task<> { at = co_await index_of(on(m.lock()), on(m.lock())); };
    co_await when_all(selects(), gives_back());
    co_return at;
  };
  auto nothing = []() -> task<> { co_return; };
  co_await is_fair(2, choose, nothing);
}

WEFT_TEST("select_fair: a shared_mutex that is free: alone or shared; or shared twice") {
  weft::shared_mutex m;
  std::optional<weft::shared_mutex::guard> held;
  auto choose = [&]() -> task<std::size_t> {
    held.emplace(m.try_lock());
    co_return co_await index_of(on(m.lock()), on(m.lock_shared()));
  };
  auto choose_shared = [&]() -> task<std::size_t> {
    held.emplace(m.try_lock());
    co_return co_await index_of(on(m.lock_shared()), on(m.lock_shared()), on(m.lock_upgradable()));
  };
  auto event = [&]() -> task<> {
    held.reset();
    co_return;
  };
  co_await is_fair(2, choose, event);
  co_await is_fair(3, choose_shared, event);
}

WEFT_TEST("select_fair: permits of a semaphore, of one or more") {
  weft::semaphore s{0};
  auto choose = [&] { return index_of(on(s.acquire(1)), on(s.acquire(2)), on(s.acquire(1))); };
  auto event = [&]() -> task<> {
    s.release(2);  // what was taken is given back
    static_cast<void>(co_await s.acquire(2));
    s.try_acquire(2).keep();
  };
  co_await is_fair(3, choose, event);
}

WEFT_TEST("select_fair: events and a latch") {
  weft::event e;
  auto waits = [&] { return index_of(on(e.wait()), on(e.wait()), on(e.wait())); };
  auto sets = [&]() -> task<> {
    e.set();
    e.reset();
    co_return;
  };
  co_await is_fair(3, waits, sets);

  weft::auto_event signal;
  auto waits_for_signal = [&] { return index_of(on(signal.wait()), on(signal.wait())); };
  auto signals = [&]() -> task<> {
    signal.set();
    co_return;
  };
  co_await is_fair(2, waits_for_signal, signals);

  std::optional<weft::latch> l;
  auto waits_for_latch = [&]() -> task<std::size_t> {
    l.emplace(1);
    co_return co_await index_of(on(l->wait()), on(l->wait()));
  };
  auto counts = [&]() -> task<> {
    l->count_down();
    co_return;
  };
  co_await is_fair(2, waits_for_latch, counts);
}

WEFT_TEST("select_fair: a fork by its name, and by its views") {
  weft::event ends;
  auto choose = [&]() -> task<std::size_t> {
    std::size_t at = 3;
    auto body = [&](scope& s) -> task<> {
      auto work = [&]() -> task<> { co_await ends.wait(); };
      auto one = s.fork(work());
      at = co_await index_of(on(one), on(one.view()), on(one.view()));
    };
    co_await with_scope(body);
    co_return at;
  };
  auto event = [&]() -> task<> {
    ends.set();
    ends.reset();
    co_return;
  };
  co_await is_fair(3, choose, event);
}

// ---- what a clock and a stop_source serve one after the other --------------------------------------------------------------

TEST(select_fair, times_that_come_together) {
  weft::test::run([]() -> task<> {
    tally chosen{3};
    for (int i = 0; i != rounds; ++i) chosen.count(co_await index_of(after(5ms), after(5ms), after(5ms)));
    tally any{4};
    for (int i = 0; i != rounds; ++i) {
      std::vector<any_case> cases;
      for (int k = 0; k != 4; ++k) cases.emplace_back(after(5ms));
      auto choice = select(std::move(cases));
      any.count(co_await std::move(choice));
    }
  });
}

WEFT_TEST("select_fair: a stop of others, twice or more") {
  std::optional<weft::stop_source> closing;
  auto choose = [&]() -> task<std::size_t> {
    closing.emplace();
    co_return co_await index_of(on_stop(closing->token()), on_stop(closing->token()), on_stop(closing->token()));
  };
  auto choose_any = [&]() -> task<std::size_t> {
    closing.emplace();
    std::vector<weft::stop_case> cases(3, on_stop(closing->token()));
    auto choice = select(std::move(cases));
    co_return (co_await std::move(choice)).index;
  };
  auto event = [&]() -> task<> {
    closing->request_stop();
    co_return;
  };
  co_await is_fair(3, choose, event);
  co_await is_fair(3, choose_any, event);
}

// ---- what runs beside -----------------------------------------------------------------------------------------------------

WEFT_TEST("select_fair: tasks that wait for the same") {
  weft::auto_event signal;
  auto waits = [&]() -> task<> { co_await signal.wait(); };
  auto choose = [&]() -> task<std::size_t> {
    auto choice = select(on(waits()), on(waits()), on(waits()));
    co_return (co_await std::move(choice)).index;
  };
  auto choose_of_many = [&]() -> task<std::size_t> {
    std::vector<weft::on_case<void>> cases;
    for (int i = 0; i != 3; ++i) cases.push_back(on(waits()));
    auto choice = select(std::move(cases));
    co_return (co_await std::move(choice)).index;
  };
  auto event = [&]() -> task<> {
    signal.set();
    co_return;
  };
  co_await is_fair(3, choose, event);
  co_await is_fair(3, choose_of_many, event);
}

// ---- where it is drawn ------------------------------------------------------------------------------------------------------

WEFT_TEST("select_fair: in a fiber") {
  channel<int> c{0};
  tally chosen{2};
  auto body = [&](scope& s) -> task<> {
    auto selects = [&] {
      for (int i = 0; i != rounds; ++i) {
        auto choice = select(on_receive(c), on_receive(c));
        chosen.count(await(std::move(choice)).index);
      }
    };
    auto choosing = s.go(selects);
    for (int i = 0; i != rounds; ++i) co_await c.send(i);
    co_await std::move(choosing);
  };
  co_await with_scope(body);
}

// Threads that choose once each do not all choose the same.
TEST(select_fair, in_threads_that_choose_once) {
  channel<int> one{1}, other{1};
  tally chosen{2};
  for (int i = 0; i != 300; ++i) {
    static_cast<void>(one.try_send(1));
    static_cast<void>(other.try_send(1));
    std::jthread{[&] { chosen.count(sync_wait(index_of(on_receive(one), on_receive(other)))); }}.join();
  }
}

// ---- a select does not hold itself up ---------------------------------------------------------------------------------------

WEFT_TEST("select_fair: few permits are given where the same select waits for more") {
  weft::semaphore s{0};
  for (int i = 0; i != 100; ++i) {
    auto selects = [&]() -> task<> {
      EXPECT_EQ(co_await index_of(on(s.acquire(3)), on(s.acquire(1)), on(s.acquire(2))), 1u);
    };
    auto gives = [&]() -> task<> {
      s.release(1);
      co_return;
    };
    co_await when_all(selects(), gives());
    EXPECT_EQ(s.available(), 1u);
    s.try_acquire().keep();
  }
}

// But it waits behind others, as all do.
WEFT_TEST("select_fair: few permits are not given where another one waits for more before") {
  weft::semaphore s{0};
  std::string order;
  auto many = [&]() -> task<> {
    auto held = co_await s.acquire(2);
    order += 'm';
    held.keep();
  };
  auto selects = [&]() -> task<> {
    EXPECT_EQ(co_await index_of(on(s.acquire(2)), on(s.acquire(1))), 1u);
    order += 's';
  };
  auto gives = [&]() -> task<> {
    s.release(1);
    EXPECT_EQ(s.available(), 1u);
    s.release(1);
    EXPECT_EQ(s.available(), 0u);
    s.release(1);
    EXPECT_EQ(s.available(), 0u);
    co_return;
  };
  co_await when_all(many(), selects(), gives());
  EXPECT_EQ(order, "ms");
}

template <bool PreferWriters>
task<> shares_where_it_also_wants_it_alone() {
  weft::shared_mutex m{{.prefer_writers = PreferWriters}};
  for (int i = 0; i != 100; ++i) {
    std::optional<weft::shared_mutex::guard> alone{m.try_lock()};
    auto selects = [&]() -> task<> { EXPECT_EQ(co_await index_of(on(m.lock()), on(m.lock_shared())), 1u); };
    auto shares = [&]() -> task<> {
      const auto shared = std::move(*alone).downgrade();
      alone.reset();
      co_return;
    };
    co_await when_all(selects(), shares());
  }
}

WEFT_TEST("select_fair: a mutex that is shared is shared by one that would have it alone, too") {
  co_await shares_where_it_also_wants_it_alone<false>();
  co_await shares_where_it_also_wants_it_alone<true>();
}

}  // namespace
