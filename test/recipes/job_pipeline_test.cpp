// The job pipeline: a reader waits for who writes, what was read before the end is written, and a stop loses no stage.
#include <gtest/gtest.h>
#include <weft/test.hpp>
#include <weft/weft.hpp>

#define main program
#include "../../examples/recipes/job_pipeline.cpp"
#undef main

using namespace std::chrono_literals;

namespace {

w::task<int> told_after(std::chrono::milliseconds time) {
  co_await w::sleep_for(time);
  co_return SIGINT;
}

TEST(job_pipeline, reads_no_further_ahead_than_its_channels_hold) {
  w::test::run([]() -> w::task<> {
    pipeline all;
    const auto look = [&]() -> w::task<> {
      co_await w::sleep_for(1s);       // nobody writes, so soon nothing moves
      EXPECT_EQ(all.read, 4 + 3 + 4);  // in the channels, and one with each of the workers
      EXPECT_EQ(all.written, 0);
    };
    auto stages = w::when_all(all.read_until(told_after(1h)), all.work_by_three());
    co_await w::when_any(std::move(stages), look());
  });
}

TEST(job_pipeline, writes_all_that_was_read_when_it_is_told_to_end) {
  w::test::for_each_seed(20, [](std::uint64_t seed) {
    w::test::run({.seed = seed}, []() -> w::task<> {
      pipeline all;
      const auto write_slowly = [&]() -> w::task<> {
        while (auto result = co_await all.results.receive()) {
          ++all.written;
          co_await w::sleep_for(10ms);
        }
      };
      co_await w::when_all(all.read_until(told_after(995ms)), all.work_by_three(), write_slowly());
      EXPECT_EQ(all.written, all.read);
      EXPECT_EQ(all.read, 100 + 4 + 3 + 4);  // a hundred were written meanwhile
      EXPECT_EQ(w::test::elapsed(), 1110ms);
    });
  });
}

struct is_stopped {
  pipeline all;

  w::task<> write_four() {
    while (auto result = co_await all.results.receive())
      if (++all.written == 4) enough.set();
  }
  w::task<int> told() {
    co_await enough.wait();
    co_return SIGINT;
  }
  w::task<> run() { co_await w::when_all(all.read_until(told()), all.work_by_three(), write_four()); }
  void check(const w::result<void>& how) {
    w::test::require(all.written <= all.read + 1,
                     "one was written that was not read");  // a stop may come before it is counted
    w::test::require(!how || all.written >= all.read, "one was lost");
    w::test::require(how || how.is_stopped(), "it failed");
  }

  w::event enough;
};
// If one stage alone were stopped, the others would wait for ever: a program stops them together.
constexpr w::test::sweep_options together{.each_alone = false};
TEST(job_pipeline, ends_wherever_it_is_stopped) { w::test::cancellation_sweep<is_stopped>(together, "job pipeline"); }

}  // namespace
