// Every primitive, with a stop at each place of each await, and without memory: nothing is lost, and nobody is forgotten.
#include <weft/sync.hpp>

#include <utility>
#include <vector>
#include <weft/batcher.hpp>
#include <weft/combine.hpp>
#include <weft/sequence.hpp>

#include "support/sweep.hpp"

namespace {

using namespace test::in_sweeps;

template <class By>
struct locks {
  weft::mutex m;
  part<By> one(int milliseconds) {
    const auto held = co_await m.lock();
    co_await rest(milliseconds);
  }
  part<By> run() { co_await together(one(1), one(0), one(2)); }
  void check() const { require(!m.is_locked(), "a mutex was not given back"); }
};
TEST(sweep, mutex) { sweep_both<locks>("mutex::lock"); }

template <class By, bool PreferWriters>
struct shares {
  weft::shared_mutex m{{.prefer_writers = PreferWriters}};
  part<By> reads(int milliseconds) {
    const auto held = co_await m.lock_shared();
    co_await rest(milliseconds);
  }
  part<By> writes() {
    const auto held = co_await m.lock();
    co_await rest(1);
  }
  part<By> upgrades() {
    auto held = co_await m.lock_upgradable();
    co_await rest(1);
    const auto alone = co_await std::move(held).upgrade();
    co_await rest(1);
  }
  part<By> run() { co_await together(reads(2), upgrades(), writes(), reads(1)); }
  void check() { require(static_cast<bool>(m.try_lock()), "a shared_mutex was not given back"); }
};
template <class By>
using shares_in_turn = shares<By, false>;
template <class By>
using shares_for_writers = shares<By, true>;
TEST(sweep, shared_mutex) { sweep_both<shares_in_turn>("shared_mutex::lock, shared_mutex::lock_shared"); }
TEST(sweep, shared_mutex_upgraded) {
  sweep_both<shares_for_writers>("shared_mutex::lock_upgradable, shared_mutex::upgrade");
}

template <class By>
struct permits {
  weft::semaphore s{2};
  part<By> one(std::size_t count, int milliseconds) {
    const auto held = co_await s.acquire(count);
    co_await rest(milliseconds);
  }
  part<By> run() { co_await together(one(1, 1), one(2, 1), one(1, 1), one(2, 0)); }
  void check() const { require(s.available() == 2, "a permit was lost"); }
};
TEST(sweep, semaphore) { sweep_both<permits>("semaphore::acquire"); }

template <class By>
struct opens {
  weft::event e;
  weft::latch l{2};
  part<By> waits() {
    co_await e.wait();
    co_await l.arrive_and_wait();
  }
  part<By> sets() {
    co_await rest(1);
    e.set();
    co_await rest(1);
    l.count_down();
  }
  part<By> run() { co_await together(waits(), sets(), l.wait()); }
};
TEST(sweep, event_and_latch) {
  sweep_both<opens>("event::wait, latch::wait, latch::arrive_and_wait", waits_for_the_other);
}

// Nothing is claimed by one that is stopped, and what is claimed is published: nobody waits for ever.
template <class By, class Sequencer>
struct numbers {
  weft::sequence_barrier consumed;
  Sequencer all{consumed, 1};
  std::uint64_t written = 0;

  part<By> produces() {
    all.publish(co_await all.claim_one());
    ++written;
    const weft::sequence_range mine = co_await all.claim_up_to(2);  // waits for who reads
    all.publish(mine);
    written += mine.size();
  }
  part<By> reads() {
    const weft::sequence_number until = co_await all.wait_until_published(0);
    consumed.publish(until);
  }
  part<By> run() { co_await together(produces(), reads()); }
  void check() const { require(all.last_published() + 1 == written, "what was claimed and what is published differ"); }
};
template <class By>
using numbers_of_one = numbers<By, weft::single_producer_sequencer>;
template <class By>
using numbers_of_many = numbers<By, weft::multi_producer_sequencer>;
TEST(sweep, single_producer_sequencer) {
  sweep_both<numbers_of_one>("single_producer_sequencer::claim_one, single_producer_sequencer::claim_up_to",
                             waits_for_the_other);
}
TEST(sweep, multi_producer_sequencer) {
  sweep_both<numbers_of_many>("multi_producer_sequencer::claim_one, multi_producer_sequencer::claim_up_to",
                              waits_for_the_other);
}

template <class Sequencer>
struct with_barrier {
  weft::sequence_barrier consumed;
  Sequencer numbers{consumed, 1};
};
template <class By, class Published>
struct reads_numbers {
  Published of;
  bool read = false;
  auto& all() noexcept {
    if constexpr (requires { of.numbers; })
      return of.numbers;
    else
      return of;
  }

  part<By> reads() {
    static_cast<void>(co_await all().wait_until_published(0));
    read = true;
  }
  part<By> publishes() {
    co_await rest(1);
    all().publish(0);
  }
  part<By> run() { co_await together(reads(), publishes()); }
  void check() { require(!read || all().last_published() == 0, "what was not published was read"); }
};
template <class By>
using reads_from_barrier = reads_numbers<By, weft::sequence_barrier>;
template <class By>
using reads_from_one = reads_numbers<By, with_barrier<weft::single_producer_sequencer>>;
template <class By>
using reads_from_many = reads_numbers<By, with_barrier<weft::multi_producer_sequencer>>;
TEST(sweep, sequences_that_are_read) {
  sweep_both<reads_from_barrier>("sequence_barrier::wait_until_published", waits_for_the_other);
  sweep_both<reads_from_one>("single_producer_sequencer::wait_until_published", waits_for_the_other);
  sweep_both<reads_from_many>("multi_producer_sequencer::wait_until_published", waits_for_the_other);
}

// What is set once passes one, and is not lost where that one was stopped.
template <class By>
struct passes_one {
  weft::auto_event e;
  int passed = 0;
  bool set = false;
  part<By> waits() {
    co_await e.wait();
    ++passed;
  }
  part<By> sets() {
    co_await rest(1);
    set = true;
    e.set();
    co_await rest(1);
    e.set();
  }
  part<By> run() { co_await together(waits(), sets(), waits()); }
};
TEST(sweep, auto_event) { sweep_both<passes_one>("auto_event::wait", waits_for_the_other); }

// Nobody passes without the other: who ends stopped has not arrived.
template <class By>
struct meets {
  weft::barrier b{2};
  int passed[2] = {};
  part<By> party(int me) {
    co_await rest(1 + me);
    for (int i = 0; i != 2; ++i) {
      co_await b.arrive_and_wait();
      ++passed[me];
    }
  }
  part<By> run() { co_await together(party(0), party(1)); }
  void check() const { require(passed[0] == passed[1], "one passed, and the other one did not"); }
};
TEST(sweep, barrier) { sweep_both<meets>("barrier::arrive_and_wait", waits_for_the_other); }

template <class By>
struct notifies {
  weft::mutex m;
  weft::condition_variable changed;
  int there = 0, taken = 0;
  part<By> takes() {
    auto held = co_await m.lock();
    co_await rest(1);  // the other one waits for the mutex meanwhile, and is woken as this one lets go of it
    auto any = [this] { return there != 0; };
    co_await changed.wait(held, any);
    --there, ++taken;
  }
  part<By> gives() {
    for (int i = 0; i != 2; ++i) {
      co_await rest(1);
      const auto held = co_await m.lock();
      ++there;
      changed.notify_one();
    }
  }
  part<By> run() { co_await together(takes(), takes(), gives()); }
  void check() const { require(!m.is_locked(), "a mutex was not given back"); }
};
TEST(sweep, condition_variable) { sweep_both<notifies>("condition_variable::wait(holds)", waits_for_the_other); }

// The loop is the program's.
template <class By>
struct notifies_who_look : notifies<By> {
  part<By> looks() {
    auto held = co_await this->m.lock();
    co_await rest(1);
    while (this->there == 0) co_await this->changed.wait(held);
    --this->there, ++this->taken;
  }
  part<By> run() { co_await together(looks(), looks(), this->gives()); }
};
TEST(sweep, condition_variable_in_a_loop) {
  sweep_both<notifies_who_look>("condition_variable::wait", waits_for_the_other);
}

template <class By>
struct happens {
  weft::once o;
  int done = 0;
  part<By> one() {
    auto does = [this]() -> task<> {
      co_await rest(1);
      ++done;
    };
    co_await o.call(does);
  }
  part<By> run() { co_await together(one(), one()); }
  void check() const { require(done <= 1, "it happened twice"); }
};
TEST(sweep, once) { sweep_both<happens>("once::call"); }

template <class By>
struct shares_a_value {
  weft::guarded<int> value{0};
  part<By> one() {
    auto held = co_await value.lock();
    const int before = *held;
    co_await rest(1);
    *held = before + 1;
  }
  part<By> run() { co_await together(one(), one()); }
  void check() { require(static_cast<bool>(value.try_lock()), "a value was not given back"); }
};
TEST(sweep, guarded) { sweep_both<shares_a_value>("guarded::lock"); }

template <class By>
struct asks_together {
  task<std::vector<int>> doubled(std::vector<int> all) {
    co_await rest(1);
    for (int& one : all) one *= 2;
    co_return all;
  }
  // Whoever makes the calls may be stopped alone; then nobody is left to ask.
  part<By> asks(weft::batcher<int, int>& all, int one) {
    const auto got = co_await as_result(all(one));
    if (got.has_value()) require(*got == 2 * one, "a wrong answer");
    if (got.exception())
      require(
          test::lacked_memory(got) || got.error() == weft::errc::closed || got.error() == weft::errc::broken_promise,
          "a wrong error");
  }
  part<By> run() {
    auto body = [this](weft::scope& s) -> task<> {
      auto call = [this](std::vector<int> all) { return doubled(std::move(all)); };
      weft::batcher<int, int> all{{.most = 2}, s, call};
      co_await together(asks(all, 1), asks(all, 2), asks(all, 3));
    };
    co_await weft::with_scope(body);
  }
};
TEST(sweep, batcher) { sweep_both<asks_together>("batcher"); }

// Where nobody is stopped, every answer is there, or there was no memory for it; and the batcher goes on.
template <class By>
struct asks_without_memory : asks_together<By> {
  part<By> asks(weft::batcher<int, int>& all, int one) {
    const auto got = co_await as_result(all(one));
    if (got.has_value()) require(*got == 2 * one, "a wrong answer");
    if (got.exception()) require(test::lacked_memory(got), "a wrong error");
  }
  part<By> run() {
    auto body = [this](weft::scope& s) -> task<> {
      auto call = [this](std::vector<int> all) { return this->doubled(std::move(all)); };
      weft::batcher<int, int> all{{.most = 2}, s, call};
      co_await together(asks(all, 1), asks(all, 2), asks(all, 3));
      co_await together(asks(all, 4));
    };
    co_await weft::with_scope(body);
  }
};
TEST(sweep, batcher_without_memory) { allocation_sweep_both<asks_without_memory>("batcher"); }

}  // namespace
