// Two tasks, two fibers and two plain threads at a time on one of each primitive. What they share is not atomic, so the
// thread sanitizer sees an edge that is not there. And each primitive is destroyed as soon as its one waiter is through.
#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <deque>
#include <memory>
#include <optional>
#include <stop_token>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>
#include <weft/broadcast.hpp>
#include <weft/channel.hpp>
#include <weft/fiber.hpp>
#include <weft/pool.hpp>
#include <weft/scope.hpp>
#include <weft/select.hpp>
#include <weft/sync.hpp>

#include "support/weft_test.hpp"

namespace {

using weft::scope;
using weft::task;

constexpr std::size_t parties = 6;
const std::size_t times = static_cast<std::size_t>(test::rounds(1000));

constexpr auto in_a_fiber = []<class T>(T&& what) -> decltype(auto) { return weft::await(std::forward<T>(what)); };
constexpr auto in_a_thread = []<class T>(T&& what) -> decltype(auto) { return weft::sync_wait(std::forward<T>(what)); };

// Each of the six does its part so many times: `blocks(who, nth, wait)` in a fiber or thread, `suspends(who, nth)` in a task.
template <class Blocks, class Suspends>
void all_six(Blocks blocks, Suspends suspends) {
  const weft::pool pool{{.threads = 2}};
  std::vector<std::jthread> threads;
  for (std::size_t who : {0, 1})
    threads.emplace_back([&blocks, who] {
      for (std::size_t nth = 0; nth != times; ++nth) blocks(who, nth, in_a_thread);
    });
  auto in_a_task = [&](std::size_t who) -> task<> {
    for (std::size_t nth = 0; nth != times; ++nth) co_await suspends(who, nth);
  };
  auto body = [&](scope& s) -> task<> {
    for (std::size_t who : {2, 3})
      s.go([&blocks, who] {
        for (std::size_t nth = 0; nth != times; ++nth) blocks(who, nth, in_a_fiber);
      });
    for (std::size_t who : {4, 5}) s.fork(in_a_task, who);
    co_return;
  };
  weft::sync_wait(weft::with_scope({.executor = &pool.executor()}, body));
}

TEST(sync, a_mutex_of_tasks_fibers_and_threads) {
  weft::mutex m;
  std::size_t count = 0;
  all_six(
      [&](std::size_t, std::size_t, auto wait) {
        const auto held = wait(m.lock());
        ++count;
      },
      [&](std::size_t, std::size_t) -> task<> {
        const auto held = co_await m.lock();
        ++count;
      });
  EXPECT_EQ(count, parties * times);
}

TEST(sync, a_guarded_of_tasks_fibers_and_threads) {
  weft::guarded<std::size_t> count{0};
  all_six([&](std::size_t, std::size_t, auto wait) { ++*wait(count.lock()); },
          [&](std::size_t, std::size_t) -> task<> {
            auto held = co_await count.lock();
            ++*held;
          });
  EXPECT_EQ(*count.try_lock(), parties * times);
}

TEST(sync, a_shared_mutex_of_tasks_fibers_and_threads) {
  weft::shared_mutex m;
  std::size_t one = 0, other = 0;
  std::atomic<bool> torn{false};
  auto writes = [&] { ++one, ++other; };
  auto reads = [&] {
    if (one != other) torn = true;
  };
  all_six(
      [&](std::size_t who, std::size_t nth, auto wait) {
        if ((who + nth) % 3 == 0) {
          const auto alone = wait(m.lock());
          return writes();
        }
        const auto shared = wait(m.lock_shared());
        reads();
      },
      [&](std::size_t who, std::size_t nth) -> task<> {
        if ((who + nth) % 3 == 0) {
          auto upgradable = co_await m.lock_upgradable();
          reads();
          const auto alone = co_await std::move(upgradable).upgrade();
          writes();
        } else {
          const auto shared = co_await m.lock_shared();
          reads();
        }
      });
  EXPECT_FALSE(torn);
  EXPECT_EQ(one, parties * times / 3);
}

TEST(sync, a_semaphore_of_tasks_fibers_and_threads) {
  weft::semaphore permits{2};
  std::size_t count = 0;  // by who has all
  all_six(
      [&](std::size_t, std::size_t nth, auto wait) {
        const auto held = wait(permits.acquire(1 + nth % 2));
        if (nth % 2 == 1) ++count;
      },
      [&](std::size_t, std::size_t nth) -> task<> {
        const auto held = co_await permits.acquire(1 + nth % 2);
        if (nth % 2 == 1) ++count;
      });
  EXPECT_EQ(permits.available(), 2u);
  EXPECT_EQ(count, parties * times / 2);
}

TEST(sync, an_auto_event_of_tasks_fibers_and_threads) {
  weft::auto_event free{true};
  std::size_t count = 0;
  all_six(
      [&](std::size_t, std::size_t, auto wait) {
        wait(free.wait());
        ++count;
        free.set();
      },
      [&](std::size_t, std::size_t) -> task<> {
        co_await free.wait();
        ++count;
        free.set();
      });
  EXPECT_EQ(count, parties * times);
}

// One sets each, the others pass it, and read what that one wrote before.
TEST(sync, events_of_tasks_fibers_and_threads) {
  std::vector<weft::event> events(times);
  std::vector<std::size_t> written(times);
  std::array<std::size_t, parties> sums{};
  all_six(
      [&](std::size_t who, std::size_t nth, auto wait) {
        if (nth % parties == who) {
          written[nth] = nth;
          events[nth].set();
        }
        wait(events[nth].wait());
        sums[who] += written[nth];
      },
      [&](std::size_t who, std::size_t nth) -> task<> {
        if (nth % parties == who) {
          written[nth] = nth;
          events[nth].set();
        }
        co_await events[nth].wait();
        sums[who] += written[nth];
      });
  for (const std::size_t sum : sums) EXPECT_EQ(sum, times * (times - 1) / 2);
}

// Each writes its own, and behind the latch, or barrier, reads those of all.
TEST(sync, latches_and_a_barrier_of_tasks_fibers_and_threads) {
  std::deque<weft::latch> latches;
  for (std::size_t i = 0; i != times; ++i) latches.emplace_back(parties);
  weft::barrier both{parties};
  std::array<std::size_t, parties> own{}, last{};
  std::atomic<bool> missed{false};
  auto expects = [&](std::size_t nth) {
    if (!std::ranges::all_of(own, [nth](std::size_t one) { return one == nth + 1; })) missed = true;
  };
  all_six(
      [&](std::size_t who, std::size_t nth, auto wait) {
        own[who] = nth + 1;
        wait(latches[nth].arrive_and_wait());
        expects(nth);
        last[who] += wait(both.arrive_and_wait());  // nobody writes the next before all have read
      },
      [&](std::size_t who, std::size_t nth) -> task<> {
        own[who] = nth + 1;
        co_await latches[nth].arrive_and_wait();
        expects(nth);
        last[who] += co_await both.arrive_and_wait();
      });
  EXPECT_FALSE(missed);
  std::size_t phases = 0;
  for (const std::size_t one : last) phases += one;
  EXPECT_EQ(phases, times);  // each has one that came last
}

// They take turns, in a circle that goes from one kind to another.
TEST(sync, a_condition_variable_of_tasks_fibers_and_threads) {
  weft::mutex m;
  weft::condition_variable changed;
  std::size_t turn = 0;
  all_six(
      [&](std::size_t who, std::size_t, auto wait) {
        auto held = wait(m.lock());
        wait(changed.wait(held, [&turn, who] { return turn % parties == who; }));
        ++turn;
        changed.notify_all();
      },
      [&](std::size_t who, std::size_t) -> task<> {
        auto held = co_await m.lock();
        auto is_mine = [&turn, who] { return turn % parties == who; };
        co_await changed.wait(held, is_mine);
        ++turn;
        changed.notify_all();
      });
  EXPECT_EQ(turn, parties * times);
  EXPECT_EQ(changed.stats().waiting, 0u);
}

TEST(sync, once_for_tasks_fibers_and_threads) {
  std::vector<weft::once> each(times);
  std::vector<std::size_t> done(times);
  all_six(
      [&](std::size_t, std::size_t nth, auto wait) {
        wait(each[nth].call([&done, nth] { ++done[nth]; }));
        EXPECT_EQ(done[nth], 1u);
      },
      [&](std::size_t, std::size_t nth) -> task<> {
        auto does = [&done, nth]() -> task<> {
          co_await weft::yield();
          ++done[nth];
        };
        co_await each[nth].call(does);
        EXPECT_EQ(done[nth], 1u);
      });
  for (const weft::once& one : each) EXPECT_EQ(one.stats().waiting, 0u);
}

// All send, and receive as many; the values are pointers to what the sender wrote.
void through(weft::channel<std::size_t*>& c) {
  std::vector<std::size_t> numbers(parties * times);
  std::array<std::size_t, parties> sums{};
  const auto number = [&](std::size_t who, std::size_t nth) {
    std::size_t* const one = &numbers[who * times + nth];
    *one = who * times + nth;
    return one;
  };
  all_six(
      [&](std::size_t who, std::size_t nth, auto wait) {
        if (who % 2 == 0)  // a thread, a fiber and a task each
          for (int i = 0; i != 2; ++i) wait(c.send(number(who + (i == 0 ? 0 : 1), nth)));
        else
          for (int i = 0; i != 2; ++i) sums[who] += **wait(c.receive());
      },
      [&](std::size_t who, std::size_t nth) -> task<> {
        if (who % 2 == 0)
          for (int i = 0; i != 2; ++i) co_await c.send(number(who + (i == 0 ? 0 : 1), nth));
        else
          for (int i = 0; i != 2; ++i) sums[who] += **co_await c.receive();
      });
  std::size_t sum = 0;
  for (const std::size_t one : sums) sum += one;
  EXPECT_EQ(sum, parties * times * (parties * times - 1) / 2);
}
TEST(sync, a_rendezvous_of_tasks_fibers_and_threads) {
  weft::channel<std::size_t*> c{0};
  through(c);
}
TEST(sync, a_bounded_channel_of_tasks_fibers_and_threads) {
  weft::channel<std::size_t*> c{3};
  through(c);
}
TEST(sync, an_unbounded_channel_of_tasks_fibers_and_threads) {
  weft::channel<std::size_t*> c{weft::unbounded};
  through(c);
}

// In each round three pairs meet: whoever sends, and whoever receives, is what comes of it.
TEST(sync, a_select_of_tasks_fibers_and_threads) {
  weft::channel<std::size_t> c{0};
  weft::barrier next_round{parties};
  std::array<std::size_t, parties> sent{}, got{};
  const auto number = [](std::size_t who, std::size_t nth) { return parties * nth + who + 1; };
  const auto count = [&](std::size_t who, std::size_t mine, auto& chosen) {
    if (chosen.index == 0)
      sent[who] += mine;
    else
      got[who] += *std::get<1>(chosen.value);
  };
  all_six(
      [&](std::size_t who, std::size_t nth, auto wait) {
        const std::size_t mine = number(who, nth);
        auto chosen = wait(select(on_send(c, mine), on_receive(c)));
        count(who, mine, chosen);
        wait(next_round.arrive_and_wait());
      },
      [&](std::size_t who, std::size_t nth) -> task<> {
        const std::size_t mine = number(who, nth);
        auto chosen = co_await select(on_send(c, mine), on_receive(c));
        count(who, mine, chosen);
        co_await next_round.arrive_and_wait();
      });
  std::size_t all_sent = 0, all_got = 0;
  for (std::size_t who = 0; who != parties; ++who) all_sent += sent[who], all_got += got[who];
  EXPECT_NE(all_sent, 0u);
  EXPECT_EQ(all_sent, all_got);
}

// Half of them send to all the others, who receive until it is closed. They get those of one sender in their order: each,
// or as many as they have not missed, or those that came before they were too slow, and subscribed again.
void to_all(weft::slow_receiver slow) {
  weft::broadcast<const std::size_t*> b{{.capacity = 3, .slow = slow}};
  std::vector<std::size_t> numbers(parties * times);
  std::array<weft::broadcast<const std::size_t*>::receiver, parties> mine;
  std::array<std::array<std::size_t, parties>, parties> next{};
  std::array<std::size_t, parties> got{};
  std::atomic<std::size_t> senders{parties / 2};
  std::atomic<bool> wrong{false};
  for (std::size_t who : {1, 3, 5}) mine[who] = b.subscribe();
  const auto number = [&](std::size_t who, std::size_t nth) {
    numbers[who * times + nth] = who * times + nth;
    return &numbers[who * times + nth];
  };
  const auto was_sent = [&](std::size_t nth) {
    if (nth + 1 == times && --senders == 0) b.close();
  };
  const auto gets = [&](std::size_t who, const std::size_t* value) {
    std::size_t& expected = next[who][*value / times];
    if (slow == weft::slow_receiver::wait ? *value % times != expected : *value % times < expected) wrong = true;
    expected = *value % times + 1;
    ++got[who];
  };
  all_six(
      [&](std::size_t who, std::size_t nth, auto wait) {
        if (who % 2 == 0) {
          wait(b.send(number(who, nth)));
          return was_sent(nth);
        }
        while (nth == 0) try {
            const auto value = wait(mine[who].receive());
            if (!value) return;
            gets(who, *value);
          } catch (const weft::receiver_too_slow&) {
            mine[who] = b.subscribe();
          }
      },
      [&](std::size_t who, std::size_t nth) -> task<> {
        if (who % 2 == 0) {
          co_await b.send(number(who, nth));
          was_sent(nth);
          co_return;
        }
        while (nth == 0) try {
            const auto value = co_await mine[who].receive();
            if (!value) co_return;
            gets(who, *value);
          } catch (const weft::receiver_too_slow&) {
            mine[who] = b.subscribe();
          }
      });
  EXPECT_FALSE(wrong);
  for (std::size_t who : {1, 3, 5}) {
    const std::size_t all = parties / 2 * times;
    if (slow == weft::slow_receiver::end)
      EXPECT_LE(got[who], all);
    else
      EXPECT_EQ(got[who] + mine[who].missed(), all);
  }
  EXPECT_EQ(b.stats().waiting, 0u);
}
TEST(sync, a_broadcast_of_tasks_fibers_and_threads) { to_all(weft::slow_receiver::wait); }
TEST(sync, a_broadcast_that_drops_of_tasks_fibers_and_threads) { to_all(weft::slow_receiver::drop_oldest); }
TEST(sync, a_broadcast_that_ends_of_tasks_fibers_and_threads) { to_all(weft::slow_receiver::end); }

// A thread sets it; the others see values that only grow, and the last one.
TEST(sync, a_watch_of_tasks_fibers_and_threads) {
  std::vector<std::size_t> numbers(times);
  static constexpr std::size_t before = 0;
  weft::watch<const std::size_t*> w{&before};
  std::array<weft::watch<const std::size_t*>::receiver, parties> mine;
  std::array<std::size_t, parties> seen{};
  std::atomic<bool> wrong{false};
  for (auto& one : mine) one = w.subscribe();
  const auto sets = [&](std::size_t nth) {
    numbers[nth] = nth;
    w.set(&numbers[nth]);
    if (nth + 1 == times) w.close();
  };
  const auto sees = [&](std::size_t who, const std::size_t* value) {
    if (*value < seen[who]) wrong = true;
    seen[who] = *value;
  };
  all_six(
      [&](std::size_t who, std::size_t nth, auto wait) {
        if (who == 0) return sets(nth);
        if (nth != 0) return;
        while (const auto value = wait(mine[who].receive())) sees(who, *value);
      },
      [&](std::size_t who, std::size_t nth) -> task<> {
        if (nth != 0) co_return;
        while (const auto value = co_await mine[who].receive()) sees(who, *value);
      });
  EXPECT_FALSE(wrong);
  for (std::size_t who = 1; who != parties; ++who) EXPECT_EQ(seen[who], times - 1);
  EXPECT_EQ(w.stats().waiting, 0u);
}

// ---- destroyed by who was let through -----------------------------------------------------------------------------------------

// A thread releases; a thread, a fiber and a task wait, and each destroys it once it is let through, whether the release
// has returned or not. The thread sanitizer sees an access that comes after.
template <class Make, class Releases, class Blocks, class Suspends>
void goes_with_who_was_let_through(Make make, Releases releases, Blocks blocks, Suspends suspends) {
  using shared = typename std::invoke_result_t<Make&>::element_type;
  std::atomic<shared*> next{nullptr};
  const std::jthread releasing{[&](const std::stop_token& end) {
    while (!end.stop_requested())
      if (shared* const one = next.exchange(nullptr); one != nullptr)
        releases(*one);
      else
        std::this_thread::yield();
  }};
  const auto made = [&] {
    auto one = make();
    next = one.get();
    return one;
  };
  for (std::size_t nth = 0; nth != times; ++nth) {
    const auto one = made();
    blocks(*one, in_a_thread);
  }
  const weft::pool pool{{.threads = 1}};
  auto in_a_task = [&]() -> task<> {
    for (std::size_t nth = 0; nth != times; ++nth) {
      const auto one = made();
      co_await suspends(*one);
    }
  };
  auto body = [&](scope& s) -> task<> {
    auto fiber = s.go([&] {
      for (std::size_t nth = 0; nth != times; ++nth) {
        const auto one = made();
        blocks(*one, in_a_fiber);
      }
    });
    co_await std::move(fiber);
    co_await in_a_task();
  };
  weft::sync_wait(weft::with_scope({.executor = &pool.executor()}, body));
}

TEST(sync, a_mutex_goes_with_who_was_let_through) {
  struct shared {
    weft::mutex m;
    weft::mutex::guard held = m.try_lock();
  };
  goes_with_who_was_let_through([] { return std::make_unique<shared>(); }, [](shared& one) { one.held.unlock(); },
                                [](shared& one, auto wait) { wait(one.m.lock()).unlock(); },
                                [](shared& one) -> task<> { (co_await one.m.lock()).unlock(); });
}

TEST(sync, a_shared_mutex_goes_with_who_was_let_through) {
  struct shared {
    weft::shared_mutex m;
    weft::shared_mutex::guard held = m.try_lock();
  };
  goes_with_who_was_let_through([] { return std::make_unique<shared>(); }, [](shared& one) { one.held.unlock(); },
                                [](shared& one, auto wait) { wait(one.m.lock_shared()).unlock(); },
                                [](shared& one) -> task<> { (co_await one.m.lock_shared()).unlock(); });
}

TEST(sync, a_shared_mutex_goes_with_who_upgrades) {
  struct shared {
    weft::shared_mutex m;
    weft::shared_mutex::shared_guard held = m.try_lock_shared();
    weft::shared_mutex::upgradable_guard waits = m.try_lock_upgradable();
  };
  goes_with_who_was_let_through([] { return std::make_unique<shared>(); }, [](shared& one) { one.held.unlock(); },
                                [](shared& one, auto wait) { wait(std::move(one.waits).upgrade()).unlock(); },
                                [](shared& one) -> task<> { (co_await std::move(one.waits).upgrade()).unlock(); });
}

TEST(sync, a_semaphore_goes_with_who_was_let_through) {
  goes_with_who_was_let_through([] { return std::make_unique<weft::semaphore>(1u); },
                                [](weft::semaphore& one) { one.release(2); },
                                [](weft::semaphore& one, auto wait) { wait(one.acquire(3)).release(); },
                                [](weft::semaphore& one) -> task<> { (co_await one.acquire(3)).release(); });
}

template <class Event>
void event_goes_with_who_was_let_through() {
  goes_with_who_was_let_through([] { return std::make_unique<Event>(); }, [](Event& one) { one.set(); },
                                [](Event& one, auto wait) { wait(one.wait()); },
                                [](Event& one) -> task<> { co_await one.wait(); });
}
TEST(sync, an_event_goes_with_who_was_let_through) { event_goes_with_who_was_let_through<weft::event>(); }
TEST(sync, an_auto_event_goes_with_who_was_let_through) { event_goes_with_who_was_let_through<weft::auto_event>(); }

TEST(sync, a_latch_goes_with_who_was_let_through) {
  goes_with_who_was_let_through([] { return std::make_unique<weft::latch>(2u); },
                                [](weft::latch& one) { one.count_down(); },
                                [](weft::latch& one, auto wait) { wait(one.arrive_and_wait()); },
                                [](weft::latch& one) -> task<> { co_await one.arrive_and_wait(); });
}

// Who releases waits, too: the one that comes last lets the other through, and may be gone before that runs.
template <class One>
void goes_with_one_of_two() {
  goes_with_who_was_let_through([] { return std::make_unique<One>(2u); },
                                [](One& one) { weft::sync_wait(one.arrive_and_wait()); },
                                [](One& one, auto wait) { wait(one.arrive_and_wait()); },
                                [](One& one) -> task<> { co_await one.arrive_and_wait(); });
}
TEST(sync, a_latch_goes_with_one_of_two) { goes_with_one_of_two<weft::latch>(); }
TEST(sync, a_barrier_goes_with_one_of_two) { goes_with_one_of_two<weft::barrier>(); }

TEST(sync, a_barrier_goes_with_who_was_let_through) {
  goes_with_who_was_let_through([] { return std::make_unique<weft::barrier>(2u); },
                                [](weft::barrier& one) { one.drop(); },
                                [](weft::barrier& one, auto wait) { wait(one.arrive_and_wait()); },
                                [](weft::barrier& one) -> task<> { co_await one.arrive_and_wait(); });
}

TEST(sync, a_condition_variable_goes_with_who_was_let_through) {
  struct shared {
    weft::mutex m;
    weft::condition_variable changed;
    bool done = false;
  };
  goes_with_who_was_let_through([] { return std::make_unique<shared>(); },
                                [](shared& one) {
                                  const auto held = weft::sync_wait(one.m.lock());
                                  one.done = true;
                                  one.changed.notify_one();
                                },
                                [](shared& one, auto wait) {
                                  auto held = wait(one.m.lock());
                                  wait(one.changed.wait(held, [&one] { return one.done; }));
                                },
                                [](shared& one) -> task<> {
                                  auto held = co_await one.m.lock();
                                  auto is_done = [&one] { return one.done; };
                                  co_await one.changed.wait(held, is_done);
                                });
}

// Who finds it done, too: the one that did it may not have returned.
TEST(sync, once_goes_with_who_finds_it_done) {
  struct shared {
    weft::once one;
    std::atomic<bool> begun{false};
    void waits_for_begin() const {
      while (!begun) std::this_thread::yield();
    }
  };
  goes_with_who_was_let_through([] { return std::make_unique<shared>(); },
                                [](shared& of) { weft::sync_wait(of.one.call([&of] { of.begun = true; })); },
                                [](shared& of, auto wait) {
                                  of.waits_for_begin();
                                  wait(of.one.call([] {}));
                                },
                                [](shared& of) -> task<> {
                                  of.waits_for_begin();
                                  auto nothing = [] {};
                                  co_await of.one.call(nothing);
                                });
}

using numbers = weft::channel<int>;

constexpr auto rendezvous = [] { return std::make_unique<numbers>(0u); };
constexpr auto has_room = [] { return std::make_unique<numbers>(1u); };
constexpr auto grows = [] { return std::make_unique<numbers>(weft::unbounded); };

template <class Make>
void channel_goes_with_who_has_received(Make make) {
  goes_with_who_was_let_through(
      make, [](numbers& one) { weft::sync_wait(one.send(1)); },
      [](numbers& one, auto wait) { EXPECT_EQ(wait(one.receive()), 1); },
      [](numbers& one) -> task<> { EXPECT_EQ(co_await one.receive(), 1); });
}
TEST(sync, a_rendezvous_goes_with_who_has_received) { channel_goes_with_who_has_received(rendezvous); }
TEST(sync, a_bounded_channel_goes_with_who_has_received) { channel_goes_with_who_has_received(has_room); }
TEST(sync, an_unbounded_channel_goes_with_who_has_received) { channel_goes_with_who_has_received(grows); }

TEST(sync, a_rendezvous_goes_with_who_has_sent) {
  goes_with_who_was_let_through(
      rendezvous, [](numbers& one) { EXPECT_EQ(weft::sync_wait(one.receive()), 1); },
      [](numbers& one, auto wait) { wait(one.send(1)); }, [](numbers& one) -> task<> { co_await one.send(1); });
}

TEST(sync, a_channel_goes_with_who_sees_it_closed) {
  goes_with_who_was_let_through(
      has_room, [](numbers& one) { one.close(); },
      [](numbers& one, auto wait) { EXPECT_FALSE(wait(one.receive()).has_value()); },
      [](numbers& one) -> task<> { EXPECT_FALSE((co_await one.receive()).has_value()); });
}

TEST(sync, a_channel_goes_with_who_has_selected) {
  struct two {
    numbers one{0}, other{0};
  };
  goes_with_who_was_let_through(
      [] { return std::make_unique<two>(); }, [](two& of) { weft::sync_wait(of.other.send(1)); },
      [](two& of, auto wait) { EXPECT_EQ(wait(select(on_receive(of.one), on_receive(of.other))).index, 1u); },
      [](two& of) -> task<> { EXPECT_EQ((co_await select(on_receive(of.one), on_receive(of.other))).index, 1u); });
}

}  // namespace
