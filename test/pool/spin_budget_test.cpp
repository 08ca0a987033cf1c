// For how long a worker looks on. See src/pool/spin_budget.hpp; times here are numbers.
#include "pool/spin_budget.hpp"

#include <gtest/gtest.h>

#include <cstdint>

namespace {

using weft::detail::spin_budget;

constexpr std::uint64_t ms = 1'000'000, us = 1'000, start = 1'000 * ms;

std::uint64_t earn(spin_budget& one, std::uint64_t busy) {
  one.is_busy(start);
  one.is_idle(start + busy);
  return one.left();
}

TEST(spin_budget, who_has_done_nothing_has_none) {
  spin_budget one;
  EXPECT_EQ(one.left(), 0u);
  one.is_idle(start);
  EXPECT_EQ(one.left(), 0u);
}

TEST(spin_budget, is_a_small_part_of_the_time_for_which_one_was_busy) {
  spin_budget one;
  EXPECT_EQ(earn(one, 4'800 * us), 200 * us);
}

TEST(spin_budget, has_a_limit_however_long_that_was) {
  spin_budget one;
  EXPECT_EQ(earn(one, 60 * ms), 250 * us);
  EXPECT_EQ(earn(one, 60 * ms), 250 * us);
}

TEST(spin_budget, what_took_microseconds_adds_up_until_it_is_worth_a_look) {
  spin_budget one;
  for (int i = 0; i != 19; ++i) EXPECT_EQ(earn(one, 24 * us), 0u) << i;
  EXPECT_EQ(earn(one, 24 * us), 20 * us);
}

TEST(spin_budget, time_without_work_earns_none) {
  spin_budget one;
  EXPECT_EQ(earn(one, 2'400 * us), 100 * us);
  one.is_idle(start + 60 * ms);
  EXPECT_EQ(one.left(), 100 * us);
}

TEST(spin_budget, is_used_up) {
  spin_budget one;
  EXPECT_EQ(earn(one, 2'400 * us), 100 * us);
  one.was_used(40 * us, 1 * us);
  EXPECT_EQ(one.left(), 60 * us);
  one.was_used(41 * us, 1 * us);
  EXPECT_EQ(one.left(), 0u) << "19 us are not worth a look";
  one.was_used(200 * us, 1 * us);
  EXPECT_EQ(earn(one, 2'400 * us), 100 * us) << "it can't be less than none";
}

TEST(spin_budget, is_lost_where_a_socket_has_ended_a_sleep) {
  spin_budget one;
  EXPECT_EQ(earn(one, 2'400 * us), 100 * us);
  one.has_slept(false);
  EXPECT_EQ(one.left(), 100 * us);
  one.has_slept(true);
  EXPECT_EQ(one.left(), 0u);
}

// Whoever had its processor meanwhile was a while at it.
void comes_back_late(spin_budget& one) { one.was_used(2 * ms, 2 * ms); }

void expect_pause(spin_budget& one, unsigned sleeps) {
  for (unsigned i = 0; i != sleeps; ++i) {
    EXPECT_EQ(earn(one, 60 * ms), 0u) << i << " of " << sleeps;
    one.has_slept(false);
  }
  EXPECT_EQ(one.left(), 250 * us) << sleeps;
}

TEST(spin_budget, who_came_back_late_has_none_for_some_sleeps_and_then_for_twice_as_many) {
  spin_budget one;
  for (const unsigned sleeps : {10, 20, 40, 80}) {
    EXPECT_EQ(earn(one, 60 * ms), 250 * us);
    comes_back_late(one);
    EXPECT_EQ(one.left(), 0u);
    expect_pause(one, sleeps);
  }
}

TEST(spin_budget, who_came_back_sooner_goes_on) {
  spin_budget one;
  earn(one, 60 * ms);
  one.was_used(100 * us, 699 * us);
  EXPECT_EQ(one.left(), 150 * us);
}

TEST(spin_budget, pauses_are_halved_by_each_time_that_went_well_and_have_a_limit) {
  spin_budget one;
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
