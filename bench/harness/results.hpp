// A run of the bench as data: what was built, what was measured, what came out. The table, the JSON file and the HTML
// report are three views of it.
#pragma once

#include "catalogue.hpp"
#include "statistics.hpp"

#include <nlohmann/json.hpp>

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace bench {

using json = nlohmann::ordered_json;

/// The library that all others are set against.
inline constexpr std::string_view baseline = "weft";

/// A program that stands for a library in a workload.
struct program {
  std::string workload;
  std::string library;
  std::string variant;  ///< which header, which flags; mostly empty
  std::vector<std::string> command;
  bool smoke = true;  ///< a smoke run has it, too
};

/// A library that can be measured, whether it is there or not.
struct library {
  std::string id;
  std::string name;
  std::string version;
  std::string option;  ///< "-DCPPCORO_ROOT=": how to point the build at it
  bool found = false;
};

/// What the build wrote down: bench/manifest.json in its folder.
struct manifest {
  std::string source;              ///< the folder bench/ of the sources
  std::string compiler;            ///< "clang" or "gcc": recorded ratios are kept for each
  json build;                      ///< compiler, flags, …, for people
  std::vector<library> libraries;  ///< in the order of the tables
  std::vector<program> programs;

  [[nodiscard]] const library& find(std::string_view id) const;
};

/// Fails  with std::runtime_error, in a sentence.
manifest read_manifest(const std::string& path);

/// One library in one row.
struct entry {
  enum class status {
    measured,
    failed,    ///< it was run, and gave no result or a wrong one
    recorded,  ///< not in this run: an earlier ratio
    absent,    ///< not in this run, and nothing is recorded
    not_here,  ///< it says why this machine can't run it
  };

  std::string library;
  std::string variant{};
  status state = status::absent;
  std::string note{};                ///< why it failed, or isn't run; where a recorded ratio is from
  std::vector<double> rounds{};      ///< the row's unit, one value a round
  std::vector<double> cpu_rounds{};  ///< the same, of processor time, where the program says
  estimate figure{};                 ///< the median of `rounds` and its interval
  std::optional<estimate> cpu{};     ///< that of `cpu_rounds`
  std::optional<estimate> ratio{};   ///< how many times the baseline
  long peak_rss_kib = 0;
  long own_rss_kib = 0;                   ///< of that, what the program had before the workload began
  std::optional<double> allocations{};    ///< an item
  std::string allocator{};                ///< which malloc the program ran on, where it says
  std::map<std::string, double> extra{};  ///< what else it reported: the median of the rounds
  std::map<std::string, std::vector<double>> extra_rounds{};  ///< the same, of each round

  /// "cppcoro", or "weft weft.hpp"
  [[nodiscard]] std::string key() const { return variant.empty() ? library : library + " " + variant; }
};

struct row {
  const workload* work = nullptr;
  shape form;
  std::vector<entry> entries;

  /// nullptr: it is not in this row.
  [[nodiscard]] const entry* find(std::string_view key) const;

  /// What ratios are to: weft as it is, else the first of its variants.
  [[nodiscard]] const entry* base() const;

  /// Whether processor time is a figure of its own here: the workload has threads, so that it is not just the time again.
  [[nodiscard]] bool shows_cpu() const;
};

struct run_record {
  std::string when;     ///< UTC
  std::string command;  ///< what was typed
  std::string mode;     ///< quick, full, smoke, picked
  double seconds = 0;
  std::size_t rounds = 0;
  double stolen = 0;  ///< the share of CPU time that the hypervisor gave to others
  json machine;
  std::vector<row> rows;
  std::vector<std::string> left_out;

  [[nodiscard]] std::vector<std::string> failures() const;
};

/// Computes figures and ratios from the rounds.
void evaluate(run_record& run);

json to_json(const run_record& run, const manifest& built);

/// The rows of an earlier run's file, by title and key: one value a round.
using earlier_run = std::map<std::string, std::map<std::string, std::vector<double>>>;
earlier_run read_earlier_run(const std::string& path);

/// Puts recorded ratios into the rows, for libraries that are not there.
void add_recorded(run_record& run, const manifest& built, const std::string& path);

/// Keeps this run's ratios for those who lack a library.
void write_recorded(const run_record& run, const manifest& built, const std::string& path);

}  // namespace bench
