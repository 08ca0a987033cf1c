// When a thief takes a fork again. See src/pool/steal_pace.hpp; times here are numbers.
#include "pool/steal_pace.hpp"

#include <gtest/gtest.h>

#include <cstdint>

namespace {

using weft::detail::steal_pace;

// Takes one at `now` for 100, is through with it `work` later, and tells when that is.
std::uint64_t take(steal_pace& one, std::uint64_t now, std::uint64_t work, std::uint64_t price = 100) {
  one.took(now, now + price);
  EXPECT_TRUE(one.has_one());
  EXPECT_FALSE(one.pauses());
  one.has_done(now + price + work);
  EXPECT_FALSE(one.has_one());
  return now + price + work;
}

TEST(steal_pace, who_has_taken_none_does_not_pause) {
  steal_pace one;
  EXPECT_FALSE(one.may_pause());
  EXPECT_FALSE(one.has_one());
  EXPECT_FALSE(one.pauses(1));
  EXPECT_FALSE(one.pauses());
}

TEST(steal_pace, one_that_was_worth_it_lets_it_go_on) {
  steal_pace one;
  const std::uint64_t now = take(one, 1'000, 100);  // as long as it took to get
  EXPECT_FALSE(one.may_pause());
  EXPECT_FALSE(one.pauses(now));
}

TEST(steal_pace, one_that_was_not_has_it_pause_for_what_that_took) {
  steal_pace one;
  const std::uint64_t now = take(one, 1'000, 99);
  EXPECT_TRUE(one.may_pause());
  EXPECT_TRUE(one.pauses(now));
  EXPECT_TRUE(one.pauses(now + 99));
  EXPECT_TRUE(one.pauses()) << "as it said last";
  EXPECT_FALSE(one.pauses(now + 100));
  EXPECT_FALSE(one.pauses());
  EXPECT_TRUE(one.pauses(now));
  take(one, now, 99);  // which ends it
}

TEST(steal_pace, pauses_double_up_to_eight_prices_and_end_with_one_that_was_worth_it) {
  steal_pace one;
  std::uint64_t now = 1'000;
  for (const std::uint64_t pause : {100, 200, 400, 800, 800}) {
    now = take(one, now, 10);
    EXPECT_TRUE(one.pauses(now + pause - 1)) << pause;
    EXPECT_FALSE(one.pauses(now + pause)) << pause;
    now += pause;
  }
  now = take(one, now, 1'000);
  EXPECT_FALSE(one.pauses(now));
  now = take(one, now, 10);
  EXPECT_FALSE(one.pauses(now + 100)) << "from the beginning";
}

TEST(steal_pace, none_that_are_left_end_it) {
  steal_pace one;
  const std::uint64_t now = take(one, 1'000, 10);
  EXPECT_TRUE(one.pauses(now));
  one.found_none();
  EXPECT_FALSE(one.pauses());
  EXPECT_FALSE(one.may_pause());
  EXPECT_FALSE(one.pauses(now));
}

TEST(steal_pace, who_lost_its_processor_meanwhile_does_not_count_that) {
  steal_pace one;
  const std::uint64_t now = take(one, 1'000, 10, 1'000'000);
  EXPECT_TRUE(one.pauses(now + 11'999));
  EXPECT_FALSE(one.pauses(now + 12'000));
}

}  // namespace
