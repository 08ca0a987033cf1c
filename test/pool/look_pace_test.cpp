// After how many jobs a worker looks at its sockets. See src/pool/look_pace.hpp; times here are numbers.
#include "pool/look_pace.hpp"

#include <gtest/gtest.h>

#include <cstdint>

namespace {

using weft::detail::look_pace;

constexpr std::uint64_t ms = 1'000'000, us = 1'000, start = 1'000 * ms;

// After so many looks that each follow upon as many jobs as the last one said, of this length.
std::uint32_t jobs_after(int looks, std::uint64_t job, look_pace& one, std::uint64_t& now, std::uint32_t jobs) {
  for (int i = 0; i != looks; ++i) jobs = one.looked(now += jobs * job, jobs);
  return jobs;
}

TEST(look_pace, is_61_jobs_where_they_are_short) {
  std::uint64_t now = start;
  look_pace one{now};
  EXPECT_EQ(jobs_after(10, 20 * us, one, now, 61), 61u);
}

TEST(look_pace, is_fewer_where_they_are_long_so_that_they_take_5_ms) {
  std::uint64_t now = start;
  look_pace one{now};
  EXPECT_EQ(jobs_after(1, ms, one, now, 61), 5u);
  EXPECT_EQ(jobs_after(10, ms, one, now, 5), 5u);
  EXPECT_EQ(jobs_after(1, 20 * ms, one, now, 5), 1u) << "at least one";
  EXPECT_EQ(jobs_after(10, 20 * ms, one, now, 1), 1u);
}

TEST(look_pace, is_61_again_soon_after_they_are_short) {
  std::uint64_t now = start;
  look_pace one{now};
  EXPECT_EQ(jobs_after(1, 20 * ms, one, now, 61), 1u);
  EXPECT_EQ(jobs_after(3, us, one, now, 1), 8u);
  EXPECT_EQ(jobs_after(3, us, one, now, 8), 61u);
}

TEST(look_pace, goes_by_those_that_ran_also_if_they_were_fewer) {
  look_pace one{start};
  EXPECT_EQ(one.looked(start + 4 * ms, 1), 1u);
  EXPECT_EQ(one.looked(start + 8 * ms, 4), 2u);
  EXPECT_EQ(one.looked(start + 8 * ms + us, 0), 2u) << "none did";
}

TEST(look_pace, does_not_count_the_time_without_a_job) {
  std::uint64_t now = start;
  look_pace one{now};
  one.was_idle(20'000 * ms);
  now += 20'000 * ms;
  EXPECT_EQ(jobs_after(1, 20 * us, one, now, 61), 61u);
}

}  // namespace
