// Choosing what to measure, and measuring it: round after round, in each every row, in each row every library.
//
// The interleaving is the point. These machines drift by half within minutes, so figures taken one after the other compare
// two moments, not two libraries; within a round the same drift hits all, and cancels in the ratio. The order alternates
// (A B C, C B A, …): who always comes behind a program that leaves the processor hot, or its caches full, would pay for it.
#pragma once

#include "results.hpp"

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace bench {

/// What was asked for.
struct selection {
  std::vector<std::string> workloads;  ///< see shapes_asked_for; empty: all
  std::vector<std::string> libraries;  ///< empty: all; weft and the limits always come along
  bool headline_only = false;          ///< leave out what a short run has no time for
  bool one_peer = false;               ///< weft and the first peer that is there (smoke)
};

/// How long.
struct schedule {
  std::size_t rounds = 0;
  std::chrono::milliseconds warm_up{};
  double ms = 0;                   ///< a round of a workload of weight one
  std::chrono::seconds limit{60};  ///< for one program
  bool full = false;               ///< workloads that have a length of their own run at it
};

inline constexpr std::size_t fewest_rounds = 5;

/// One program in one row, and where its results go.
struct assignment {
  std::size_t row;
  std::size_t entry;
  const program* what;
};

struct plan {
  std::vector<row> rows;
  std::vector<assignment> assignments;  ///< in the order of the first round
  std::vector<std::string> left_out;
};

/// Fails  with std::runtime_error on a name that does not exist.
plan make_plan(const manifest& built, const selection& wanted);

/// Divides the time over the plan. `rounds`: what the user insists on.
schedule make_schedule(const plan& what, std::chrono::seconds budget, std::optional<std::size_t> rounds);

/// Runs the plan, with progress on stderr. Failures are noted in the entries.
std::vector<row> measure(plan what, const schedule& when);

}  // namespace bench
