// The test kit, by bugs that are planted: each kind is found, and what is right passes.
//
// Long because the kinds share one semaphore, and what they are compared with.
#include <weft/test.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>
#include <weft/combine.hpp>
#include <weft/scope.hpp>

#include "support/weft_test.hpp"

namespace {

using namespace std::chrono_literals;
using weft::sleep_for;
using weft::task;
using weft::test::allocation_sweep;
using weft::test::cancellation_sweep;
using weft::test::failure;
using weft::test::require;
using weft::test::sweep_options;

enum class bug { none, lost_wake_up, lost_permit, used_after_free, woken_twice };

// A semaphore, with one bug or none.
template <bug planted>
class permits {
 public:
  explicit permits(int count) : free_{count} {}

  class awaiter : weft::detail::waiter {
   public:
    explicit awaiter(permits& of) noexcept : waiter{type}, of_{of} {}
    bool await_ready() const noexcept { return false; }
    template <class Promise>
    bool await_suspend(std::coroutine_handle<Promise> caller) noexcept {
      weft::detail::root& self = weft::detail::suspending(caller);
      {
        const std::lock_guard guard{of_.lock_};
        if (of_.free_ > 0) {
          --of_.free_;
          return false;
        }
        if (self.park(*this)) {
          of_.line_.push(*this);
          return true;
        }
      }
      weft::detail::end_stopped(self);
      return true;
    }
    void await_resume() const noexcept {}

   private:
    static weft::detail::on_stop leave(waiter& self) noexcept {
      permits& of = static_cast<awaiter&>(self).of_;
      const std::lock_guard guard{of.lock_};
      if constexpr (planted != bug::used_after_free) of.line_.remove(self);
      return weft::detail::on_stop::left;
    }
    static constexpr weft::detail::wait_type type{.leave = leave, .name = "permits"};
    permits& of_;
  };
  struct acquiring : weft::detail::knows_roots {
    permits& of;
    explicit acquiring(permits& from) noexcept : of{from} {}
    awaiter operator co_await() const noexcept { return awaiter{of}; }
  };
  acquiring acquire() noexcept { return acquiring{*this}; }

  void release() noexcept {
    weft::detail::waiter* woken = nullptr;
    {
      const std::lock_guard guard{lock_};
      if constexpr (planted == bug::lost_wake_up) {
        // A waiter that has been stopped is still in line for a moment, and takes the permit of who stands behind it.
        woken = line_.pop();
        if (woken != nullptr && !woken->try_claim())
          woken = nullptr, ++free_;
        else if (woken == nullptr)
          ++free_;
      } else if constexpr (planted == bug::lost_permit) {
        woken = line_.pop();
        if (woken == nullptr) ++free_;
        if (woken != nullptr && !woken->try_claim()) woken = nullptr;
      } else {
        while ((woken = line_.pop()) != nullptr && !woken->try_claim()) {
        }
        if (woken == nullptr) ++free_;
      }
    }
    if (woken == nullptr) return;
    if constexpr (planted == bug::woken_twice) {
      weft::detail::waiter& twice = *woken;
      twice.wake();
      return again(twice);
    }
    woken->wake();
  }
  int free() const noexcept { return free_; }

 private:
  static void again(weft::detail::waiter& one) noexcept { one.wake(); }

  std::mutex lock_;
  weft::detail::waiter_line line_;
  int free_;
};

// Holds a permit while it works.
template <bug planted>
task<> works(permits<planted>& limit, int times) {
  struct held {
    permits<planted>& limit;
    ~held() { limit.release(); }
  };
  for (int i = 0; i != times; ++i) {
    co_await limit.acquire();
    const held one{limit};
    co_await sleep_for(1ms);
  }
}

template <bug planted>
struct three_work {
  permits<planted> limit{1};
  auto run() { return weft::when_all(works(limit, 2), works(limit, 1), works(limit, 1)); }
  void check() { require(limit.free() == 1, "a permit was lost"); }
};

std::string report_of(auto sweep) {
  try {
    sweep();
  } catch (const failure& found) {
    return found.what();
  }
  return "nothing was found";
}

bool contains(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

// ---- sweeps of what is right ----------------------------------------------------------------------------------------------

TEST(kit, a_sweep_of_what_is_right_passes_and_counts) {
  const auto report = cancellation_sweep<three_work<bug::none>>("permits");
  EXPECT_GE(report.awaits, 6U);
  EXPECT_GT(report.runs, report.awaits * 4);
}

TEST(kit, a_sweep_prints_its_count) {
  testing::internal::CaptureStdout();
  const auto report = cancellation_sweep("naps", [] { return sleep_for(1ms); });
  const std::string said = testing::internal::GetCapturedStdout();
  EXPECT_EQ(said, "weft: cancellation sweep of naps: 1 awaits, " + std::to_string(report.runs) + " runs\n");
}

TEST(kit, stops_come_from_both_threads_and_tasks_complete_both_ways) {
  static int seen[2][2];  // from another thread; without an executor
  struct looks {
    task<> run() {
      const auto here = std::this_thread::get_id();
      const bool goes_on_inline = weft::current_env().executor == nullptr;
      auto count = [here, goes_on_inline] { ++seen[std::this_thread::get_id() != here][goes_on_inline]; };
      const weft::stop_callback counts{weft::current_env().stop, count};
      co_await sleep_for(1ms);
    }
  };
  cancellation_sweep<looks>({.each_alone = false}, "looks");
  for (const auto& thread : seen)
    for (const int count : thread) EXPECT_GT(count, 0);
}

TEST(kit, a_sweep_of_nothing_fails) {
  const std::string said = report_of([] { cancellation_sweep("nothing", []() -> task<> { co_return; }); });
  EXPECT_TRUE(contains(said, "nothing awaits here")) << said;
}

TEST(kit, a_sweep_counts_what_gives_way_without_waiting) {
  EXPECT_EQ(cancellation_sweep("yield", []() -> task<> { co_await weft::yield(); }).awaits, 1U);
}

TEST(kit, a_scenario_looks_at_its_outcome) {
  struct fails_when_stopped {
    bool stopped = false;
    task<int> run() {
      const auto how = co_await weft::as_result(sleep_for(1ms));
      if (how.is_stopped()) throw std::runtime_error{"stopped"};
      co_return 1;
    }
    void check(const weft::result<int>& how) {
      if (how.exception()) stopped = true;
      require(how.has_value() || how.exception() || how.is_stopped(), "it ended in no way");
    }
  };
  EXPECT_EQ(cancellation_sweep<fails_when_stopped>("looks").awaits, 1U);
  auto throws = [] { return fails_when_stopped{}.run(); };
  EXPECT_TRUE(contains(report_of([&] { cancellation_sweep("throws", throws); }), "it throws: stopped"));
  EXPECT_EQ(cancellation_sweep({.may_throw = true}, "may throw", throws).awaits, 1U);
}

TEST(kit, what_ends_only_by_a_stop_is_swept) {
  auto for_ever = []() -> task<> {
    test::gate never;
    co_await never;
  };
  EXPECT_EQ(cancellation_sweep({.stop_when_idle = true}, "for ever", for_ever).awaits, 1U);
}

// ---- planted bugs -----------------------------------------------------------------------------------------------------------

TEST(kit, finds_a_lost_permit) {
  const std::string said =
      report_of([] { cancellation_sweep<three_work<bug::lost_permit>>({.patience = 20ms}, "permits"); });
  EXPECT_TRUE(contains(said, "a permit was lost") || contains(said, "hangs")) << said;
  EXPECT_TRUE(contains(said, "WEFT_SWEEP=")) << said;
}

TEST(kit, finds_a_lost_wake_up_and_who_waits_for_it) {
  const std::string said =
      report_of([] { cancellation_sweep<three_work<bug::lost_wake_up>>({.patience = 20ms}, "permits"); });
  EXPECT_TRUE(contains(said, "it hangs")) << said;
  EXPECT_TRUE(contains(said, "works")) << said;
}

TEST(kit, finds_a_double_wake_up) {
  struct hires {
    three_work<bug::woken_twice> three;
    task<> hire() { co_await three.run(); }
    task<> run() { return hire(); }
    void check() { three.check(); }
  };
  const auto expect = [](const std::string& said, const char* maker) {
    EXPECT_TRUE(contains(said, "woken twice")) << said;
    EXPECT_TRUE(contains(said, "had waited in:\n")) << said;
    EXPECT_TRUE(contains(said, "works")) << said;
    EXPECT_TRUE(contains(said, maker)) << said;
  };
  const sweep_options quick{.patience = 20ms};
  expect(report_of([&] { cancellation_sweep<three_work<bug::woken_twice>>(quick, "permits"); }),
         "outside of all tasks");
  expect(report_of([&] { cancellation_sweep<hires>(quick, "permits"); }), "hire");
}

// Takes a value out, and may be stopped before it has put it away.
struct drops_a_value {
  std::vector<int> from{1, 2, 3}, to;
  task<> run() {
    while (!from.empty()) {
      const int value = from.back();
      from.pop_back();
      co_await sleep_for(1ms);
      to.push_back(value);
    }
  }
  void check() const { require(from.size() + to.size() == 3, "a value was lost"); }
};

TEST(kit, finds_a_lost_value_and_where_the_stop_came) {
  const std::string said = report_of([] { cancellation_sweep<drops_a_value>("drops"); });
  EXPECT_TRUE(contains(said, "its check fails: a value was lost")) << said;
  EXPECT_TRUE(contains(said, "drops_a_value::run")) << said;
}

TEST(kit_death, finds_what_is_used_after_its_frame_was_freed) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH((cancellation_sweep<three_work<bug::used_after_free>>({.patience = 20ms}, "permits")),
               "the program ends in a sweep, at permits: ");
}

// A task that is kept by nobody: its frame stays.
task<> forgets() {
  static auto* lost = new task<>{works(*new permits<bug::none>{1}, 1)};
  static_cast<void>(lost);
  co_await sleep_for(1ms);
}
task<> has_it_forgotten() { co_await forgets(); }

TEST(kit, finds_a_leaked_frame_and_says_where_it_was_made) {
  const std::string said = report_of([] { weft::test::run({.patience = 20ms}, has_it_forgotten); });
  EXPECT_TRUE(contains(said, "a frame was left behind:\n  the frame of ")) << said;
  const auto of = said.find("works"), in = said.find("made in "), by = said.find("awaited by ");
  EXPECT_TRUE(of < in && in < by && by != said.npos) << said;
  const auto forgets = said.find("forgets()"), has = said.find("has_it_forgotten()");
  EXPECT_TRUE(in < forgets && forgets < by && by < has && has != said.npos) << said;
}

// Where the compiler can't see that it might as well not be made.
[[gnu::noinline]] std::unique_ptr<int> made(int value) { return std::make_unique<int>(value); }

std::vector<int*>& kept = *new std::vector<int*>;  // so that a leak checker finds them

struct leaks_on_failure {
  leaks_on_failure() { kept.reserve(100); }
  task<int> run() {
    int* first = made(1).release();
    kept.push_back(first);
    auto second = made(2);
    kept.pop_back();
    delete first;
    co_return *second;
  }
};

#if !defined(WEFT_TEST_TSAN)  // which has an operator new of its own
TEST(kit, finds_what_is_leaked_where_an_allocation_fails) {
  const std::string said = report_of([] { allocation_sweep<leaks_on_failure>({.patience = 20ms}, "leaks"); });
  EXPECT_TRUE(contains(said, "leaves 1 more blocks of operator new")) << said;
}

TEST(kit, an_allocation_sweep_of_what_is_right_passes) {
  EXPECT_GE(allocation_sweep<three_work<bug::none>>("permits"), 4U);
  EXPECT_GE(allocation_sweep("plain",
                             []() -> task<> {
                               auto text = std::make_unique<std::string>(100, 'x');
                               co_await sleep_for(1ms);
                             }),
            3U);
}

TEST(kit, an_allocation_sweep_finds_what_makes_another_error_of_it) {
  auto translates = []() -> task<> {
    try {
      made(1);
    } catch (const std::bad_alloc&) {
      throw std::runtime_error{"out of luck"};
    }
    co_return;
  };
  EXPECT_TRUE(contains(report_of([&] { allocation_sweep("translates", translates); }), "out of luck"));
}
#endif

// ---- runs -------------------------------------------------------------------------------------------------------------------

TEST(kit, a_run_takes_no_time) {
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(weft::test::run([]() -> task<int> {
              co_await sleep_for(24h);
              EXPECT_EQ(weft::test::elapsed(), 24h);
              co_return 7;
            }),
            7);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 1h);
}

TEST(kit, a_run_throws_what_its_task_throws) {
  EXPECT_THROW(weft::test::run([]() -> task<> {
                 co_await sleep_for(1ms);
                 throw std::logic_error{"no"};
               }),
               std::logic_error);
  EXPECT_THROW(weft::test::run({.stop_when_idle = true},
                               []() -> task<> {
                                 test::gate never;
                                 co_await never;
                               }),
               weft::stopped);
}

task<> waits_for_ever(test::gate& never) { co_await never; }

TEST(kit, a_run_that_hangs_says_who_waits) {
  test::gate never;
  auto hangs = [&]() -> task<> { co_await weft::when_all(waits_for_ever(never), sleep_for(1ms)); };
  const std::string said = report_of([&] { weft::test::run({.patience = 1ms}, hangs); });
  EXPECT_TRUE(contains(said, "the test hangs")) << said;
  EXPECT_TRUE(contains(said, "waits_for_ever")) << said;
}

TEST(kit, a_run_waits_for_other_threads) {
  test::gate door;
  std::jthread opener;
  weft::test::run({.patience = 2min}, [&]() -> task<> {
    opener = std::jthread{[&] {
      std::this_thread::sleep_for(20ms);
      door.open();
    }};
    co_await door;
  });
}

TEST(kit, a_run_is_stopped_from_outside) {
  weft::stop_source source;
  source.request_stop();
  EXPECT_THROW(weft::test::run({.stop = source.token()}, []() -> task<> { co_await sleep_for(1ms); }), weft::stopped);
}

// ---- seeds ------------------------------------------------------------------------------------------------------------------

std::vector<int> order_by(std::uint64_t seed) {
  std::vector<int> order;
  weft::test::run({.seed = seed}, [&]() -> task<> {
    auto one = [&order](int name) -> task<> {
      for (int i = 0; i != 3; ++i) {
        co_await weft::yield();
        order.push_back(name);
      }
    };
    co_await weft::when_all(one(1), one(2), one(3));
  });
  return order;
}

TEST(kit, a_seed_decides_the_order_and_repeats_it) {
  EXPECT_EQ(order_by(0), (std::vector{1, 2, 3, 1, 2, 3, 1, 2, 3}));
  std::vector<std::vector<int>> orders;
  for (std::uint64_t seed = 1; seed != 20; ++seed) {
    orders.push_back(order_by(seed));
    EXPECT_EQ(order_by(seed), orders.back());
  }
  std::ranges::sort(orders);
  EXPECT_GT(std::ranges::unique(orders).begin() - orders.begin(), 5);
}

TEST(kit, the_seed_that_fails_is_printed) {
  testing::internal::CaptureStderr();
  EXPECT_THROW(weft::test::for_each_seed(100,
                                         [](std::uint64_t seed) {
                                           const auto order = order_by(seed);
                                           require(order.front() != 3, "three came first");
                                         }),
               failure);
  EXPECT_TRUE(contains(testing::internal::GetCapturedStderr(), "WEFT_SEED="));
}

}  // namespace
