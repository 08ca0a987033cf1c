// What is answered: looks at the process, as texts. Called by the observer's thread, which is no worker and never blocks one.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace weft::detail {

/// What the observer itself counts.
struct observer_counts {
  std::uint64_t answers = 0, refused = 0, dropped = 0, deadlocks = 0, stalls = 0;
  unsigned clients = 0;
};

struct told_deadlock {
  std::string key;   ///< the same as long as it is the same one
  std::string json;  ///< an object
  std::string text;  ///< for people, ending in a new line
};

/// One look at all that lives, and at who waits for whom.
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

/// Whether there are deadlocks now: a look without stacks, which are what takes long, above all those of fibers.
bool are_deadlocks();

/// The pools' workers, and figures of the process: an object.
std::string status_json(const observer_counts& counts);
/// In OpenMetrics' text format.
std::string metrics_text(const observer_counts& counts);

}  // namespace weft::detail
