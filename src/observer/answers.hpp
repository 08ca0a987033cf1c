// The answers' texts, about the state of the process. Called on the observer's thread, which is no worker and never blocks one.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace weft::detail {

/// The observer's own counters.
struct observer_counts {
  std::uint64_t answers = 0, refused = 0, dropped = 0, deadlocks = 0, stalls = 0;
  unsigned clients = 0;
};

struct told_deadlock {
  std::string key;   ///< identifies the deadlock for as long as it lasts
  std::string json;  ///< a JSON object
  std::string text;  ///< for people, ending in a new line
};

/// A snapshot of all tasks, with its deadlocks, and its texts.
class process_view {
 public:
  process_view();
  ~process_view();
  process_view(const process_view&) = delete;
  process_view& operator=(const process_view&) = delete;

  std::string json() const;
  std::string dot() const;
  std::string text() const;
  std::vector<told_deadlock> deadlocks() const;

 private:
  struct parts;
  std::unique_ptr<parts> parts_;
};

/// Whether there are deadlocks now, by a snapshot without stacks, which take the most time, above all those of fibers.
bool are_deadlocks();

/// Figures of the pools' workers and of the process, as a JSON object.
std::string status_json(const observer_counts& counts);
/// The same figures in OpenMetrics' text format.
std::string metrics_text(const observer_counts& counts);

}  // namespace weft::detail
