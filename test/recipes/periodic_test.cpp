// Periodic work: it does not drift, leaves out what it has missed, and ends with what it is for.
#include <gtest/gtest.h>
#include <weft/test.hpp>
#include <weft/weft.hpp>

#define main program
#include "../../examples/recipes/periodic.cpp"
#undef main

namespace {

w::task<> beat_during(std::chrono::milliseconds work, int& beats) {
  const auto beside = [&](w::scope& s) -> w::task<> {
    w::fork<> beating = s.fork(beat(beats));
    co_await w::sleep_for(work);
    beating.request_stop();
  };
  co_await w::with_scope(beside);
}

TEST(periodic, beats_at_each_tick_however_long_a_beat_takes) {
  w::test::for_each_seed(20, [](std::uint64_t seed) {
    w::test::run({.seed = seed}, []() -> w::task<> {
      int beats = 0;
      co_await beat_during(5020ms, beats);  // before the first one is done
      const int done_too_late = beats;
      co_await beat_during(1h + 21ms, beats);
      EXPECT_LE(done_too_late, 1);                 // both at once
      EXPECT_EQ(beats - done_too_late, 720);       // with 20 ms more for each it would be 717
      EXPECT_EQ(w::test::elapsed(), 1h + 5041ms);  // nothing of it is left
    });
  });
}

struct is_stopped {
  int beats = 0;
  w::task<> run() { co_await beat_during(10'021ms, beats); }
  void check(const w::result<void>& how) const {
    w::test::require(how ? beats == 2 : how.is_stopped() && beats <= 2, "it has beaten too often, or not often enough");
  }
};
TEST(periodic, ends_with_what_it_is_for_wherever_that_is_stopped) {
  w::test::cancellation_sweep<is_stopped>({.each_alone = false}, "periodic work");
}

}  // namespace
