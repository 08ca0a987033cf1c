// Every primitive, with a stop at each place of each await, and without memory: nothing is lost, and nobody is forgotten.
#include <weft/sync.hpp>

#include <utility>
#include <vector>
#include <weft/batcher.hpp>
#include <weft/combine.hpp>

#include "support/sweep.hpp"

namespace {

using namespace test::in_sweeps;
using weft::when_all;

struct locks {
  weft::mutex m;
  task<> one(int milliseconds) {
    const auto held = co_await m.lock();
    co_await rest(milliseconds);
  }
  task<> run() { co_await when_all(one(1), one(0), one(2)); }
  void check() const { require(!m.is_locked(), "a mutex was not given back"); }
};
TEST(sweep, mutex) { sweep<locks>("mutex::lock"); }

template <bool PreferWriters>
struct shares {
  weft::shared_mutex m{{.prefer_writers = PreferWriters}};
  task<> reads(int milliseconds) {
    const auto held = co_await m.lock_shared();
    co_await rest(milliseconds);
  }
  task<> writes() {
    const auto held = co_await m.lock();
    co_await rest(1);
  }
  task<> upgrades() {
    auto held = co_await m.lock_upgradable();
    co_await rest(1);
    const auto alone = co_await std::move(held).upgrade();
    co_await rest(1);
  }
  task<> run() { co_await when_all(reads(2), upgrades(), writes(), reads(1)); }
  void check() { require(static_cast<bool>(m.try_lock()), "a shared_mutex was not given back"); }
};
TEST(sweep, shared_mutex) { sweep<shares<false>>("shared_mutex::lock, shared_mutex::lock_shared"); }
TEST(sweep, shared_mutex_upgraded) { sweep<shares<true>>("shared_mutex::lock_upgradable, shared_mutex::upgrade"); }

struct permits {
  weft::semaphore s{2};
  task<> one(std::size_t count, int milliseconds) {
    const auto held = co_await s.acquire(count);
    co_await rest(milliseconds);
  }
  task<> run() { co_await when_all(one(1, 1), one(2, 1), one(1, 1), one(2, 0)); }
  void check() const { require(s.available() == 2, "a permit was lost"); }
};
TEST(sweep, semaphore) { sweep<permits>("semaphore::acquire"); }

struct opens {
  weft::event e;
  weft::latch l{2};
  task<> waits() {
    co_await e.wait();
    co_await l.arrive_and_wait();
  }
  task<> sets() {
    co_await rest(1);
    e.set();
    co_await rest(1);
    l.count_down();
  }
  task<> run() { co_await when_all(waits(), sets(), l.wait()); }
};
TEST(sweep, event_and_latch) { sweep<opens>("event::wait, latch::wait, latch::arrive_and_wait", waits_for_the_other); }

// What is set once passes one, and is not lost where that one was stopped.
struct passes_one {
  weft::auto_event e;
  int passed = 0;
  bool set = false;
  task<> waits() {
    co_await e.wait();
    ++passed;
  }
  task<> sets() {
    co_await rest(1);
    set = true;
    e.set();
    co_await rest(1);
    e.set();
  }
  task<> run() { co_await when_all(waits(), sets(), waits()); }
};
TEST(sweep, auto_event) { sweep<passes_one>("auto_event::wait", waits_for_the_other); }

// Nobody passes without the other: who ends stopped has not arrived.
struct meets {
  weft::barrier b{2};
  int passed[2] = {};
  task<> party(int me) {
    co_await rest(1 + me);
    for (int i = 0; i != 2; ++i) {
      co_await b.arrive_and_wait();
      ++passed[me];
    }
  }
  task<> run() { co_await when_all(party(0), party(1)); }
  void check() const { require(passed[0] == passed[1], "one passed, and the other one did not"); }
};
TEST(sweep, barrier) { sweep<meets>("barrier::arrive_and_wait", waits_for_the_other); }

struct notifies {
  weft::mutex m;
  weft::condition_variable changed;
  int there = 0, taken = 0;
  task<> takes() {
    auto held = co_await m.lock();
    co_await rest(1);  // the other one waits for the mutex meanwhile, and is woken as this one lets go of it
    auto any = [this] { return there != 0; };
    co_await changed.wait(held, any);
    --there, ++taken;
  }
  task<> gives() {
    for (int i = 0; i != 2; ++i) {
      co_await rest(1);
      const auto held = co_await m.lock();
      ++there;
      changed.notify_one();
    }
  }
  task<> run() { co_await when_all(takes(), takes(), gives()); }
  void check() const { require(!m.is_locked(), "a mutex was not given back"); }
};
TEST(sweep, condition_variable) { sweep<notifies>("condition_variable::wait", waits_for_the_other); }

struct happens {
  weft::once o;
  int done = 0;
  task<> one() {
    auto does = [this]() -> task<> {
      co_await rest(1);
      ++done;
    };
    co_await o.call(does);
  }
  task<> run() { co_await when_all(one(), one()); }
  void check() const { require(done <= 1, "it happened twice"); }
};
TEST(sweep, once) { sweep<happens>("once::call"); }

struct shares_a_value {
  weft::guarded<int> value{0};
  task<> one() {
    auto held = co_await value.lock();
    const int before = *held;
    co_await rest(1);
    *held = before + 1;
  }
  task<> run() { co_await when_all(one(), one()); }
  void check() { require(static_cast<bool>(value.try_lock()), "a value was not given back"); }
};
TEST(sweep, guarded) { sweep<shares_a_value>("guarded::lock"); }

struct asks_together {
  task<std::vector<int>> doubled(std::vector<int> all) {
    co_await rest(1);
    for (int& one : all) one *= 2;
    co_return all;
  }
  // Whoever makes the calls may be stopped alone; then nobody is left to ask.
  task<> asks(weft::batcher<int, int>& all, int one) {
    const auto got = co_await as_result(all(one));
    if (got.has_value()) require(*got == 2 * one, "a wrong answer");
    if (got.exception())
      require(
          test::lacked_memory(got) || got.error() == weft::errc::closed || got.error() == weft::errc::broken_promise,
          "a wrong error");
  }
  task<> run() {
    auto body = [this](weft::scope& s) -> task<> {
      auto call = [this](std::vector<int> all) { return doubled(std::move(all)); };
      weft::batcher<int, int> all{s, call, {.most = 2}};
      co_await when_all(asks(all, 1), asks(all, 2), asks(all, 3));
    };
    co_await weft::with_scope(body);
  }
};
TEST(sweep, batcher) { sweep<asks_together>("batcher"); }

// Where nobody is stopped, every answer is there, or there was no memory for it; and the batcher goes on.
struct asks_without_memory : asks_together {
  task<> asks(weft::batcher<int, int>& all, int one) {
    const auto got = co_await as_result(all(one));
    if (got.has_value()) require(*got == 2 * one, "a wrong answer");
    if (got.exception()) require(test::lacked_memory(got), "a wrong error");
  }
  task<> run() {
    auto body = [this](weft::scope& s) -> task<> {
      auto call = [this](std::vector<int> all) { return doubled(std::move(all)); };
      weft::batcher<int, int> all{s, call, {.most = 2}};
      co_await when_all(asks(all, 1), asks(all, 2), asks(all, 3));
      co_await asks(all, 4);
    };
    co_await weft::with_scope(body);
  }
};
TEST(sweep, batcher_without_memory) { weft::test::allocation_sweep<asks_without_memory>("batcher"); }

}  // namespace
