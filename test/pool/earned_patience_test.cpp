// For how long a worker looks on. See src/pool/earned_patience.hpp; times here are numbers.
#include "pool/earned_patience.hpp"

#include <gtest/gtest.h>

#include <cstdint>

namespace {

using weft::detail::earned_patience;

constexpr std::uint64_t ms = 1'000'000, us = 1'000, start = 1'000 * ms;

std::uint64_t earn(earned_patience& one, std::uint64_t busy) {
  one.is_busy(start);
  one.is_idle(start + busy);
  return one.left();
}

TEST(earned_patience, who_has_done_nothing_has_none) {
  earned_patience one;
  EXPECT_EQ(one.left(), 0u);
  one.is_idle(start);
  EXPECT_EQ(one.left(), 0u);
}

TEST(earned_patience, is_a_small_part_of_the_time_for_which_one_was_busy) {
  earned_patience one;
  EXPECT_EQ(earn(one, 4'800 * us), 200 * us);
}

TEST(earned_patience, has_a_limit_however_long_that_was) {
  earned_patience one;
  EXPECT_EQ(earn(one, 60 * ms), 250 * us);
  EXPECT_EQ(earn(one, 60 * ms), 250 * us);
}

TEST(earned_patience, what_took_microseconds_adds_up_until_it_is_worth_a_look) {
  earned_patience one;
  for (int i = 0; i != 19; ++i) EXPECT_EQ(earn(one, 24 * us), 0u) << i;
  EXPECT_EQ(earn(one, 24 * us), 20 * us);
}

TEST(earned_patience, time_without_work_earns_none) {
  earned_patience one;
  EXPECT_EQ(earn(one, 2'400 * us), 100 * us);
  one.is_idle(start + 60 * ms);
  EXPECT_EQ(one.left(), 100 * us);
}

TEST(earned_patience, is_used_up) {
  earned_patience one;
  EXPECT_EQ(earn(one, 2'400 * us), 100 * us);
  one.was_used(40 * us, 1 * us);
  EXPECT_EQ(one.left(), 60 * us);
  one.was_used(41 * us, 1 * us);
  EXPECT_EQ(one.left(), 0u) << "19 us are not worth a look";
  one.was_used(200 * us, 1 * us);
  EXPECT_EQ(earn(one, 2'400 * us), 100 * us) << "it can't be less than none";
}

// Whoever had its processor meanwhile was a while at it.
void comes_back_late(earned_patience& one) { one.was_used(2 * ms, 2 * ms); }

void expect_pause(earned_patience& one, unsigned sleeps) {
  for (unsigned i = 0; i != sleeps; ++i) {
    EXPECT_EQ(earn(one, 60 * ms), 0u) << i << " of " << sleeps;
    one.has_slept();
  }
  EXPECT_EQ(one.left(), 250 * us) << sleeps;
}

TEST(earned_patience, who_came_back_late_has_none_for_some_sleeps_and_then_for_twice_as_many) {
  earned_patience one;
  for (const unsigned sleeps : {10, 20, 40, 80}) {
    EXPECT_EQ(earn(one, 60 * ms), 250 * us);
    comes_back_late(one);
    EXPECT_EQ(one.left(), 0u);
    expect_pause(one, sleeps);
  }
}

TEST(earned_patience, who_came_back_sooner_goes_on) {
  earned_patience one;
  earn(one, 60 * ms);
  one.was_used(100 * us, 699 * us);
  EXPECT_EQ(one.left(), 150 * us);
}

TEST(earned_patience, pauses_are_halved_by_each_time_that_went_well_and_have_a_limit) {
  earned_patience one;
  for (int i = 0; i != 3; ++i) comes_back_late(one);  // 10, 20, 40
  expect_pause(one, 40);
  one.was_used(10 * us, 1 * us);
  one.was_used(10 * us, 1 * us);
  comes_back_late(one);
  expect_pause(one, 20);
  for (int i = 0; i != 20; ++i) comes_back_late(one);
  expect_pause(one, 10'000);
}

}  // namespace
