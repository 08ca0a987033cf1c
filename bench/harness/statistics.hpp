// The statistics of the bench: medians, and intervals that assume nothing about how the noise is distributed.
//
// Timings on a shared machine are skewed, drift, and have outliers, so means and normal intervals mislead. Everything
// here rests on order alone, and is exact for any number of samples, however small: with 5 rounds the interval is the
// whole range and says that it covers 93.75 %, not 95.
//
// Rejected: the bootstrap (with five samples it covers far less than it claims, and it needs a seed).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <stdexcept>
#include <vector>

namespace bench {

/// A value and where it lies, with the probability that the interval covers the truth.
struct estimate {
  double value = 0;
  double low = 0;
  double high = 0;
  double coverage = 0;
};

inline constexpr double wanted_coverage = 0.95;

namespace detail {

inline std::vector<double> sorted(std::span<const double> values) {
  if (values.empty()) throw std::invalid_argument{"a statistic of no samples"};
  std::vector<double> result{values.begin(), values.end()};
  std::ranges::sort(result);
  return result;
}

inline double middle(std::span<const double> sorted) {
  const std::size_t half = sorted.size() / 2;
  return sorted.size() % 2 == 1 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
}

/// How many values to leave out at each end of a sorted list, given P(statistic <= k) under the null distribution: the
/// most that keeps the wanted coverage, else none.
template <class Cumulative>
std::size_t trimmed(std::size_t count, Cumulative cumulative) {
  std::size_t out = 0;
  while (out + 1 < (count + 1) / 2 && 1 - 2 * cumulative(out + 1) >= wanted_coverage) ++out;
  return out;
}

}  // namespace detail

inline double median(std::span<const double> values) { return detail::middle(detail::sorted(values)); }

/// The median and its interval between two order statistics.
///
/// Source  the sign test turned into an interval: H. A. David and H. N. Nagaraja, "Order Statistics", 3rd edition,
///         section 7.1; J.-Y. Le Boudec, "Performance Evaluation of Computer and Communication Systems", theorem 2.1.
inline estimate median_interval(std::span<const double> values) {
  const auto sorted = detail::sorted(values);
  const std::size_t n = sorted.size();

  // P(at most k of n samples lie below the median), the binomial distribution at one half.
  const auto cumulative = [n](std::size_t k) {
    double sum = 0;
    for (std::size_t i = 0; i <= k; ++i)
      sum += std::exp(std::lgamma(n + 1.0) - std::lgamma(i + 1.0) - std::lgamma(n - i + 1.0) - n * std::log(2.0));
    return sum;
  };
  // Leaving out k values at each end fails when at most k samples lie below the median, or above it.
  const std::size_t k = detail::trimmed(n, cumulative);
  return {detail::middle(sorted), sorted[k], sorted[n - 1 - k], n == 1 ? 0.0 : 1 - 2 * cumulative(k)};
}

/// These two only for tables of others, who use them.
inline double mean(std::span<const double> values) {
  if (values.empty()) throw std::invalid_argument{"a statistic of no samples"};
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

/// Of the samples (n - 1); of one sample it is 0.
inline double standard_deviation(std::span<const double> values) {
  const double middle = mean(values);
  double squares = 0;
  for (const double value : values) squares += (value - middle) * (value - middle);
  return values.size() == 1 ? 0 : std::sqrt(squares / static_cast<double>(values.size() - 1));
}

/// How many times `of` is `to`, both measured in the same rounds.
///
/// Each round gives one ratio, in which the machine's drift cancels; the estimate is their median.
inline estimate paired_ratio(std::span<const double> of, std::span<const double> to) {
  if (of.size() != to.size()) throw std::invalid_argument{"paired samples must be as many on both sides"};
  std::vector<double> ratios;
  for (std::size_t i = 0; i != of.size(); ++i) ratios.push_back(of[i] / to[i]);
  return median_interval(ratios);
}

/// How many times `of` is `to`, measured in different runs: the median of all pairwise ratios.
///
/// Source  the Hodges-Lehmann estimate and Moses' interval, on a logarithmic scale: M. Hollander, D. A. Wolfe and
///         E. Chicken, "Nonparametric Statistical Methods", 3rd edition, sections 4.2 and 4.3.
inline estimate unpaired_ratio(std::span<const double> of, std::span<const double> to) {
  std::vector<double> ratios;
  for (const double a : of)
    for (const double b : to) ratios.push_back(a / b);
  const auto sorted = detail::sorted(ratios);

  // The null distribution of the Mann-Whitney statistic U: arrangements of m and n with u inversions, counted by
  // adding one sample at a time (the Gaussian binomial coefficients).
  const std::size_t m = of.size(), n = to.size();
  std::vector<double> arrangements(m * n + 1, 0.0);
  arrangements[0] = 1;
  for (std::size_t i = 1; i <= m; ++i) {
    for (std::size_t u = m * n; u + 1 > n + i; --u) arrangements[u] -= arrangements[u - n - i];
    for (std::size_t u = i; u <= m * n; ++u) arrangements[u] += arrangements[u - i];
  }
  double total = 0;
  for (const double a : arrangements) total += a;
  const auto cumulative = [&](std::size_t k) {
    double sum = 0;
    for (std::size_t u = 0; u <= k && u <= m * n; ++u) sum += arrangements[u];
    return sum / total;
  };
  const std::size_t k = detail::trimmed(sorted.size(), cumulative);
  return {detail::middle(sorted), sorted[k], sorted[sorted.size() - 1 - k],
          sorted.size() == 1 ? 0.0 : 1 - 2 * cumulative(k)};
}

}  // namespace bench
