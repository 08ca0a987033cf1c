// The bench's statistics, against tables and against simulation: an interval must cover the truth as often as it says.
#include <gtest/gtest.h>

#include <random>
#include <stdexcept>
#include <vector>

#include "../../bench/harness/statistics.hpp"

namespace {

using bench::estimate;

/// Skewed noise with outliers, as timings have it; the median is `middle`.
double noisy(std::mt19937& random, double middle) {
  std::exponential_distribution<double> tail{1.0};
  return middle * (1 + 0.1 * (tail(random) - std::log(2.0)));
}

std::vector<double> samples(std::mt19937& random, std::size_t count, double middle) {
  std::vector<double> out;
  for (std::size_t i = 0; i != count; ++i) out.push_back(noisy(random, middle));
  return out;
}

TEST(bench_stats, median_of_odd_and_even) {
  EXPECT_EQ(bench::median(std::vector{3.0, 1.0, 2.0}), 2.0);
  EXPECT_EQ(bench::median(std::vector{4.0, 1.0, 2.0, 3.0}), 2.5);
  EXPECT_EQ(bench::median(std::vector{7.0}), 7.0);
  EXPECT_THROW((void)bench::median(std::vector<double>{}), std::invalid_argument);
}

TEST(bench_stats, mean_and_deviation) {
  EXPECT_EQ(bench::mean(std::vector{1.0, 2.0, 6.0}), 3.0);
  EXPECT_NEAR(bench::standard_deviation(std::vector{1.0, 2.0, 6.0}), std::sqrt(7.0), 1e-12);
  EXPECT_EQ(bench::standard_deviation(std::vector{4.0}), 0.0);
  EXPECT_THROW((void)bench::mean(std::vector<double>{}), std::invalid_argument);
}

TEST(bench_stats, five_rounds_give_their_whole_range_and_say_what_it_covers) {
  const auto e = bench::median_interval(std::vector{5.0, 1.0, 4.0, 2.0, 3.0});
  EXPECT_EQ(e.value, 3.0);
  EXPECT_EQ(e.low, 1.0);
  EXPECT_EQ(e.high, 5.0);
  EXPECT_NEAR(e.coverage, 0.9375, 1e-12);  // 1 - 2 / 2^5
}

TEST(bench_stats, intervals_match_the_tables_of_the_sign_test) {
  // n, how many order statistics are left out at each end, coverage: David and Nagaraja, section 7.1
  struct {
    std::size_t n, trimmed;
    double coverage;
  } const table[] = {{6, 0, 0.96875}, {9, 1, 0.9609}, {15, 3, 0.9648}, {20, 5, 0.9586}, {25, 7, 0.9567}};
  for (const auto& line : table) {
    std::vector<double> values;
    for (std::size_t i = 0; i != line.n; ++i) values.push_back(static_cast<double>(i));
    const auto e = bench::median_interval(values);
    EXPECT_EQ(e.low, static_cast<double>(line.trimmed)) << line.n;
    EXPECT_EQ(e.high, static_cast<double>(line.n - 1 - line.trimmed)) << line.n;
    EXPECT_NEAR(e.coverage, line.coverage, 1e-4) << line.n;
  }
}

TEST(bench_stats, one_round_proves_nothing) {
  const auto e = bench::median_interval(std::vector{3.0});
  EXPECT_EQ(e.low, 3.0);
  EXPECT_EQ(e.high, 3.0);
  EXPECT_EQ(e.coverage, 0.0);
}

TEST(bench_stats, drift_cancels_in_a_paired_ratio) {
  const std::vector<double> drift{1.0, 1.1, 1.5, 2.0, 0.9, 1.3, 1.0};
  std::vector<double> of, to;
  for (const double d : drift) {
    of.push_back(13.0 * d);
    to.push_back(10.0 * d);
  }
  const auto e = bench::paired_ratio(of, to);
  EXPECT_NEAR(e.value, 1.3, 1e-12);
  EXPECT_NEAR(e.low, 1.3, 1e-12);
  EXPECT_NEAR(e.high, 1.3, 1e-12);
  EXPECT_THROW((void)bench::paired_ratio(of, std::vector{1.0}), std::invalid_argument);
}

TEST(bench_stats, unpaired_interval_matches_the_table_of_mann_and_whitney) {
  // For 5 and 5 samples, P(U <= 2) = 4 / 252: two pairs are left out at each end, and the interval covers 96.8 %.
  const std::vector<double> of{11, 12, 13, 14, 15}, to{1, 1, 1, 1, 1};
  const auto e = bench::unpaired_ratio(of, to);
  EXPECT_EQ(e.value, 13.0);
  EXPECT_EQ(e.low, 11.0);
  EXPECT_EQ(e.high, 15.0);
  EXPECT_NEAR(e.coverage, 1 - 2 * 4.0 / 252, 1e-12);
}

TEST(bench_stats, unpaired_counts_stay_exact_with_many_samples) {
  std::mt19937 random{1};
  const auto e = bench::unpaired_ratio(samples(random, 60, 2), samples(random, 60, 1));
  EXPECT_GT(e.coverage, 0.9499);
  EXPECT_LT(e.coverage, 0.9520);
  EXPECT_NEAR(e.value, 2.0, 0.1);
}

TEST(bench_stats, intervals_cover_the_truth_as_often_as_they_say) {
  std::mt19937 random{20261121};
  constexpr int runs = 4000;
  for (const std::size_t rounds : {5U, 9U, 15U}) {
    int median_hits = 0, ratio_hits = 0;
    double median_claim = 0, ratio_claim = 0;
    for (int i = 0; i != runs; ++i) {
      const auto m = bench::median_interval(samples(random, rounds, 1));
      const auto r = bench::unpaired_ratio(samples(random, rounds, 3), samples(random, rounds, 2));
      median_hits += m.low <= 1 && 1 <= m.high;
      ratio_hits += r.low <= 1.5 && 1.5 <= r.high;
      median_claim = m.coverage;
      ratio_claim = r.coverage;
    }
    EXPECT_NEAR(static_cast<double>(median_hits) / runs, median_claim, 0.012) << rounds;
    EXPECT_NEAR(static_cast<double>(ratio_hits) / runs, ratio_claim, 0.012) << rounds;
  }
}

}  // namespace
