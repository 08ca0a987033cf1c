// Running one program: pinned to a core, with a time limit, both its outputs caught.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace bench {

struct process_options {
  std::optional<int> cpu;                   ///< the core to pin it to
  std::chrono::milliseconds limit{60'000};  ///< killed after this, with all that it started
};

/// How a program ended.
struct process_result {
  int exit_code = -1;  ///< if it ended by itself
  int signal = 0;      ///< else the signal that ended it
  bool timed_out = false;
  std::string out;
  std::string err;
  double seconds = 0;     ///< wall time
  long peak_rss_kib = 0;  ///< of the largest process in it; not below the caller's own

  [[nodiscard]] bool ok() const noexcept { return exit_code == 0 && !timed_out; }

  /// Why it failed, as a sentence for people: "was killed by SIGSEGV", "took longer than 60 s", …
  [[nodiscard]] std::string failure() const;
};

/// Runs `command` (a path and its arguments) to its end.
///
/// Fails  with std::system_error where it cannot be started.
process_result run_process(const std::vector<std::string>& command, const process_options& options = {});

}  // namespace bench
