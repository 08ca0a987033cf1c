// Two tasks, two fibers and two plain threads at a time on one of each primitive, and each wait may be stopped at any moment:
// by another thread, or by a deadline. Who was stopped tries again, so each gets what it wants in the end, and once.
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <deque>
#include <mutex>
#include <optional>
#include <stop_token>
#include <thread>
#include <utility>
#include <vector>
#include <weft/broadcast.hpp>
#include <weft/channel.hpp>
#include <weft/clock.hpp>
#include <weft/fiber.hpp>
#include <weft/pool.hpp>
#include <weft/scope.hpp>
#include <weft/select.hpp>
#include <weft/sync.hpp>
#include <weft/task.hpp>

#include "support/weft_test.hpp"

namespace {

using namespace std::chrono_literals;
using weft::scope;
using weft::task;

constexpr std::size_t parties = 6;
// Fewer where chaos makes each wait take its time.
const std::size_t times = std::getenv("WEFT_CHAOS") != nullptr ? 20 : static_cast<std::size_t>(test::rounds(300));

/// Stops what the parties do, one after the other, as long as it lives.
class stopper {
 public:
  stopper()
      : thread_{[this](const std::stop_token& end) {
          for (std::size_t next = 0; !end.stop_requested(); ++next) {
            stop(next % parties);
            std::this_thread::yield();
          }
        }} {}

  weft::stop_token begin(std::size_t who) {
    const std::lock_guard held{parties_[who].lock};
    return parties_[who].source.emplace().token();
  }
  void end(std::size_t who) {
    const std::lock_guard held{parties_[who].lock};
    parties_[who].source.reset();
  }

 private:
  void stop(std::size_t who) {
    const std::lock_guard held{parties_[who].lock};
    if (parties_[who].source) parties_[who].source->request_stop();
  }

  struct party {
    std::mutex lock;
    std::optional<weft::stop_source> source;
  };
  std::array<party, parties> parties_;
  std::jthread thread_;  // last: it ends first
};

/// When an attempt ends, if it has not succeeded: at once, soon, or never.
weft::clock::time_point deadline_of(std::size_t attempt) {
  if (attempt % 3 != 1) return weft::clock::time_point::max();
  return weft::clock::time_point{std::chrono::steady_clock::now() + std::chrono::microseconds{attempt % 4 * 10} - 10us};
}

// Each of the six does its part so many times: `blocks(who, nth, wait, done)` in a fiber or thread, `suspends(who, nth, done)`
// in a task. It says when it is done; until then it is called again. Returns how often that was.
template <class Blocks, class Suspends>
std::size_t all_six(Blocks blocks, Suspends suspends) {
  const weft::pool pool{{.threads = 2}};
  stopper stops;
  std::atomic<std::size_t> stopped{0};
  const auto again = [&stopped](const bool& done) {
    if (!done) ++stopped;
    return !done;
  };
  std::vector<std::jthread> threads;
  for (std::size_t who : {0, 1})
    threads.emplace_back([&, who] {
      for (std::size_t nth = 0; nth != times; ++nth)
        for (bool done = false;;) {
          const weft::stop_token told = stops.begin(who);
          try {
            blocks(who, nth, [&told](auto&& what) { return weft::sync_wait(std::move(what), told); }, done);
          } catch (const weft::stopped&) {
          }
          stops.end(who);
          std::this_thread::yield();
          if (!again(done)) break;
        }
    });
  // One attempt, in a scope that is told to stop, or ends at its deadline. The first one was told before, so that whatever
  // the others meet, one has been stopped.
  weft::stop_source before;
  before.request_stop();
  auto tries = [&](std::size_t who, std::size_t attempt, auto body) -> task<> {
    weft::stop_token told;
    if (attempt == who)
      told = before.token();
    else if (attempt % 3 == 0)
      told = stops.begin(who);
    static_cast<void>(
        co_await as_result(weft::with_scope({.stop = told, .deadline = deadline_of(attempt)}, std::move(body))));
    if (attempt != who && attempt % 3 == 0) stops.end(who);
  };
  auto in_fibers = [&](std::size_t who) -> task<> {
    for (std::size_t nth = 0, attempt = who; nth != times; ++nth)
      for (bool done = false;; ++attempt) {
        auto body = [&](scope& s) -> task<> {
          co_await s.go([&] { blocks(who, nth, [](auto&& what) { return weft::await(std::move(what)); }, done); });
        };
        co_await tries(who, attempt, body);
        if (!again(done)) break;
      }
  };
  auto in_tasks = [&](std::size_t who) -> task<> {
    for (std::size_t nth = 0, attempt = who; nth != times; ++nth)
      for (bool done = false;; ++attempt) {
        auto body = [&](scope&) -> task<> { co_await suspends(who, nth, done); };
        co_await tries(who, attempt, body);
        if (!again(done)) break;
      }
  };
  auto body = [&](scope& s) -> task<> {
    for (std::size_t who : {2, 3}) s.fork(in_fibers, who);
    for (std::size_t who : {4, 5}) s.fork(in_tasks, who);
    co_return;
  };
  weft::sync_wait(weft::with_scope({.executor = &pool.executor()}, body));
  threads.clear();
  return stopped;
}

TEST(stop_stress, a_mutex) {
  weft::mutex m;
  std::size_t count = 0;
  const std::size_t stopped = all_six(
      [&](std::size_t, std::size_t, auto wait, bool& done) {
        const auto held = wait(m.lock());
        wait(weft::yield());
        ++count;
        done = true;
      },
      [&](std::size_t, std::size_t, bool& done) -> task<> {
        const auto held = co_await m.lock();
        co_await weft::yield();
        ++count;
        done = true;
      });
  EXPECT_NE(stopped, 0u);
  EXPECT_EQ(count, parties * times);
  EXPECT_FALSE(m.is_locked());
}

TEST(stop_stress, a_guarded) {
  weft::guarded<std::size_t> count{0};
  const std::size_t stopped = all_six(
      [&](std::size_t, std::size_t, auto wait, bool& done) {
        auto held = wait(count.lock());
        wait(weft::yield());
        ++*held;
        done = true;
      },
      [&](std::size_t, std::size_t, bool& done) -> task<> {
        auto held = co_await count.lock();
        co_await weft::yield();
        ++*held;
        done = true;
      });
  EXPECT_NE(stopped, 0u);
  auto held = count.try_lock();
  ASSERT_TRUE(static_cast<bool>(held));
  EXPECT_EQ(*held, parties * times);
}

TEST(stop_stress, a_shared_mutex) {
  weft::shared_mutex m;
  std::size_t one = 0, other = 0;
  std::atomic<bool> torn{false};
  auto writes = [&] { ++one, ++other; };
  auto reads = [&] {
    if (one != other) torn = true;
  };
  const std::size_t stopped = all_six(
      [&](std::size_t who, std::size_t nth, auto wait, bool& done) {
        if ((who + nth) % 3 == 0) {
          auto upgradable = wait(m.lock_upgradable());
          reads();
          const auto alone = wait(std::move(upgradable).upgrade());
          writes();
          done = true;
        } else {
          const auto shared = wait(m.lock_shared());
          wait(weft::yield());
          reads();
          done = true;
        }
      },
      [&](std::size_t who, std::size_t nth, bool& done) -> task<> {
        if ((who + nth) % 3 == 0) {
          const auto alone = co_await m.lock();
          writes();
        } else if ((who + nth) % 3 == 1) {
          auto upgradable = co_await m.lock_upgradable();
          reads();
          const auto alone = co_await std::move(upgradable).upgrade();
          writes();
        } else {
          const auto shared = co_await m.lock_shared();
          co_await weft::yield();
          reads();
        }
        done = true;
      });
  EXPECT_NE(stopped, 0u);
  EXPECT_FALSE(torn);
  EXPECT_EQ(one, other);
  EXPECT_TRUE(static_cast<bool>(m.try_lock()));
}

TEST(stop_stress, a_semaphore) {
  weft::semaphore permits{2};
  std::size_t count = 0;  // by who has all
  const std::size_t stopped = all_six(
      [&](std::size_t, std::size_t nth, auto wait, bool& done) {
        const auto held = wait(permits.acquire(1 + nth % 2));
        wait(weft::yield());
        if (nth % 2 == 1) ++count;
        done = true;
      },
      [&](std::size_t, std::size_t nth, bool& done) -> task<> {
        const auto held = co_await permits.acquire(1 + nth % 2);
        co_await weft::yield();
        if (nth % 2 == 1) ++count;
        done = true;
      });
  EXPECT_NE(stopped, 0u);
  EXPECT_EQ(permits.available(), 2u);
  EXPECT_EQ(count, parties * (times / 2));
}

// It is set once for each that passes, so it would hang if one that was stopped took what it was set for.
TEST(stop_stress, an_auto_event) {
  weft::auto_event free{true};
  std::size_t count = 0;
  all_six(
      [&](std::size_t, std::size_t, auto wait, bool& done) {
        wait(free.wait());
        ++count;
        done = true;
        free.set();
      },
      [&](std::size_t, std::size_t, bool& done) -> task<> {
        co_await free.wait();
        ++count;
        done = true;
        free.set();
      });
  EXPECT_EQ(count, parties * times);
}

// One sets each, once, and counts each latch down; the others pass both.
TEST(stop_stress, events_and_latches) {
  std::vector<weft::event> events(times);
  std::deque<weft::latch> latches;
  for (std::size_t i = 0; i != times; ++i) latches.emplace_back(1u);
  std::vector<std::size_t> written(times);
  std::array<std::size_t, parties> sums{};
  auto opens = [&](std::size_t nth, bool& done) {
    written[nth] = nth;
    events[nth].set();
    latches[nth].count_down();
    done = true;
  };
  all_six(
      [&](std::size_t who, std::size_t nth, auto wait, bool& done) {
        if (nth % parties == who) return opens(nth, done);
        wait(events[nth].wait());
        wait(latches[nth].wait());
        sums[who] += written[nth];
        done = true;
      },
      [&](std::size_t who, std::size_t nth, bool& done) -> task<> {
        if (nth % parties == who) {
          opens(nth, done);
          co_return;
        }
        co_await events[nth].wait();
        co_await latches[nth].wait();
        sums[who] += written[nth];
        done = true;
      });
  for (std::size_t who = 0; who != parties; ++who) {
    std::size_t expected = 0;
    for (std::size_t nth = 0; nth != times; ++nth)
      if (nth % parties != who) expected += nth;
    EXPECT_EQ(sums[who], expected);
  }
  for (std::size_t i = 0; i != times; ++i) EXPECT_EQ(events[i].stats().waiting + latches[i].stats().waiting, 0u);
}

// Who is stopped has not arrived, and does it again.
TEST(stop_stress, a_barrier) {
  weft::barrier both{parties};
  std::array<std::size_t, parties> passed{};
  std::array<std::size_t, parties> last{};
  std::atomic<bool> early{false};
  std::array<std::atomic<std::size_t>, parties> arrives{};  // which phase each is about to pass, from 1 on
  auto expects = [&](std::size_t nth) {
    for (const auto& one : arrives)
      if (one.load() < nth + 1) early = true;
  };
  const std::size_t stopped = all_six(
      [&](std::size_t who, std::size_t nth, auto wait, bool& done) {
        arrives[who] = nth + 1;
        last[who] += wait(both.arrive_and_wait());
        expects(nth);
        ++passed[who];
        done = true;
      },
      [&](std::size_t who, std::size_t nth, bool& done) -> task<> {
        arrives[who] = nth + 1;
        last[who] += co_await both.arrive_and_wait();
        expects(nth);
        ++passed[who];
        done = true;
      });
  EXPECT_NE(stopped, 0u);
  EXPECT_FALSE(early);
  std::size_t phases = 0;
  for (std::size_t who = 0; who != parties; ++who) {
    EXPECT_EQ(passed[who], times);
    phases += last[who];
  }
  EXPECT_EQ(phases, times);
}

TEST(stop_stress, a_condition_variable) {
  weft::mutex m;
  weft::condition_variable changed;
  std::size_t turn = 0;
  const std::size_t stopped = all_six(
      [&](std::size_t who, std::size_t, auto wait, bool& done) {
        auto held = wait(m.lock());
        wait(changed.wait(held, [&turn, who] { return turn % parties == who; }));
        ++turn;
        done = true;
        changed.notify_all();
      },
      [&](std::size_t who, std::size_t, bool& done) -> task<> {
        auto held = co_await m.lock();
        auto is_mine = [&turn, who] { return turn % parties == who; };
        co_await changed.wait(held, is_mine);
        ++turn;
        done = true;
        changed.notify_all();
      });
  EXPECT_NE(stopped, 0u);
  EXPECT_EQ(turn, parties * times);
  EXPECT_EQ(changed.stats().waiting, 0u);
  EXPECT_FALSE(m.is_locked());
}

// Who is stopped while it does it leaves it to another one.
TEST(stop_stress, once) {
  std::vector<weft::once> each(times);
  std::vector<std::size_t> ended(times);
  auto does = [&](std::size_t nth) -> task<> {
    co_await weft::yield();
    ++ended[nth];
  };
  const std::size_t stopped = all_six(
      [&](std::size_t, std::size_t nth, auto wait, bool& done) {
        wait(weft::yield());  // which who was told to stop before does not pass
        wait(each[nth].call([&] { return does(nth); }));
        EXPECT_EQ(ended[nth], 1u);
        done = true;
      },
      [&](std::size_t, std::size_t nth, bool& done) -> task<> {
        auto its = [&] { return does(nth); };
        co_await weft::yield();
        co_await each[nth].call(its);
        EXPECT_EQ(ended[nth], 1u);
        done = true;
      });
  EXPECT_NE(stopped, 0u);
  for (const weft::once& one : each) EXPECT_EQ(one.stats().waiting, 0u);
}

// Half of them send, the others receive, also by a select; each value comes once.
void through(weft::channel<std::size_t*>& c) {
  weft::channel<std::size_t*> never{0};
  std::vector<std::size_t> numbers(parties / 2 * times);
  std::vector<unsigned> came(numbers.size());
  const auto number = [&](std::size_t who, std::size_t nth) {
    const std::size_t index = who / 2 * times + nth;
    numbers[index] = index;
    return &numbers[index];
  };
  const auto keep = [&](const std::size_t* value) { ++came[*value]; };  // another one's only
  all_six(
      [&](std::size_t who, std::size_t nth, auto wait, bool& done) {
        if (who % 2 == 0) {
          wait(c.send(number(who, nth)));
        } else if (nth % 2 == 0) {
          keep(*wait(c.receive()));
        } else {
          auto chosen = wait(select(on_receive(never), on_receive(c)));
          keep(*std::get<1>(chosen.value));
        }
        done = true;
      },
      [&](std::size_t who, std::size_t nth, bool& done) -> task<> {
        if (who % 2 == 0 && nth % 2 == 0) {
          co_await c.send(number(who, nth));
        } else if (who % 2 == 0) {
          auto choice = select(on_receive(never), on_send(c, number(who, nth)));
          static_cast<void>(co_await std::move(choice));
        } else {
          const auto value = co_await c.receive();
          keep(*value);
        }
        done = true;
      });
  EXPECT_EQ(std::ranges::count(came, 1u), static_cast<std::ptrdiff_t>(came.size()));
  EXPECT_EQ(c.stats().waiting + never.stats().waiting, 0u);
  EXPECT_EQ(c.size(), 0u);
}
TEST(stop_stress, a_rendezvous) {
  weft::channel<std::size_t*> c{0};
  through(c);
}
TEST(stop_stress, a_bounded_channel) {
  weft::channel<std::size_t*> c{2};
  through(c);
}
TEST(stop_stress, an_unbounded_channel) {
  weft::channel<std::size_t*> c{weft::unbounded};
  through(c);
}

// Half of them send to all the others, of whom each gets each value once, and those of one sender in their order.
TEST(stop_stress, a_broadcast) {
  weft::broadcast<const std::size_t*> b{{.capacity = 2}};
  std::vector<std::size_t> numbers(parties * times);
  std::array<weft::broadcast<const std::size_t*>::receiver, parties> mine;
  std::array<std::array<std::size_t, parties>, parties> next{};
  std::atomic<bool> wrong{false};
  for (std::size_t who : {1, 3, 5}) mine[who] = b.subscribe();
  const auto number = [&](std::size_t who, std::size_t nth) {
    numbers[who * times + nth] = who * times + nth;
    return &numbers[who * times + nth];
  };
  const auto expects = [&](std::size_t who, const std::size_t* value) {
    if (*value % times != next[who][*value / times]++) wrong = true;
  };
  std::array<std::size_t, parties> got{};  // of what belongs to this attempt's round
  all_six(
      [&](std::size_t who, std::size_t nth, auto wait, bool& done) {
        if (who % 2 == 0) {
          wait(b.send(number(who, nth)));
        } else {
          for (; got[who] != 3 * (nth + 1); ++got[who]) expects(who, *wait(mine[who].receive()));
        }
        done = true;
      },
      [&](std::size_t who, std::size_t nth, bool& done) -> task<> {
        if (who % 2 == 0) {
          co_await b.send(number(who, nth));
        } else {
          for (; got[who] != 3 * (nth + 1); ++got[who]) {
            const auto value = co_await mine[who].receive();
            expects(who, *value);
          }
        }
        done = true;
      });
  EXPECT_FALSE(wrong);
  for (std::size_t who : {1, 3, 5}) {
    EXPECT_EQ(got[who], parties / 2 * times);
    EXPECT_EQ(mine[who].try_receive(), std::nullopt);
  }
  EXPECT_EQ(b.stats().waiting, 0u);
}

// A thread sets it; the others see values that only grow, and the last one.
TEST(stop_stress, a_watch) {
  std::vector<std::size_t> numbers(times);
  static constexpr std::size_t before = 0;
  weft::watch<const std::size_t*> w{&before};
  std::array<weft::watch<const std::size_t*>::receiver, parties> mine;
  std::array<std::size_t, parties> seen{};
  std::atomic<bool> wrong{false};
  for (auto& one : mine) one = w.subscribe();
  const auto sees = [&](std::size_t who, const std::size_t* value) {
    if (*value < seen[who]) wrong = true;
    seen[who] = *value;
  };
  all_six(
      [&](std::size_t who, std::size_t nth, auto wait, bool& done) {
        if (who == 0) {
          numbers[nth] = nth;
          w.set(&numbers[nth]);
          if (nth + 1 == times) w.close();
          if (nth % 8 == 0) std::this_thread::sleep_for(10us);
        } else if (const auto value = wait(mine[who].receive())) {
          sees(who, *value);
        }
        done = who == 0 || seen[who] >= nth;
      },
      [&](std::size_t who, std::size_t nth, bool& done) -> task<> {
        const auto value = co_await mine[who].receive();
        if (value) sees(who, *value);
        done = seen[who] >= nth;
      });
  EXPECT_FALSE(wrong);
  for (std::size_t who = 1; who != parties; ++who) EXPECT_EQ(seen[who], times - 1);
  EXPECT_EQ(w.stats().waiting, 0u);
}

}  // namespace
