// How many processors this process may use, which, and how near they are to each other.
#pragma once

#include <string>
#include <vector>

namespace weft::detail {

/// The lesser of what the calling thread's affinity mask allows and the quota of the control group that `membership`
/// (/proc/self/cgroup) names below `mounted` (/sys/fs/cgroup), or of one above it; at least 1. Both versions of control
/// groups; what can't be read limits nothing.
unsigned processors_of(const std::string& membership, const std::string& mounted);

/// A processor as the kernel numbers them: a hardware thread. Two that share something have the same number there, which is
/// that of the first processor that has part in it, or the system's own.
struct processor {
  unsigned number = 0;
  unsigned core = 0;
  unsigned nth = 0;             // of those of its core, by number
  unsigned near_cache = 0;      // of the last level but one
  unsigned cache = 0;           // of the last level
  unsigned package = 0;         // the socket
  unsigned node = 0;            // of memory
  std::vector<unsigned> nodes;  // how far each node is from its own, as the firmware says; empty: not said, or alone

  bool operator==(const processor&) const = default;
};

/// Those with these numbers, as `folder` (/sys/devices/system/cpu) describes them, in the order in which threads are to
/// take them: one of each core first, and neighbours after each other. What can't be read is taken for shared, but for
/// the core.
std::vector<processor> processors_in(const std::string& folder, const std::vector<unsigned>& numbers);

/// The same of this machine, as hwloc describes it where weft is built with it, else as the kernel does.
std::vector<processor> processors_here(const std::vector<unsigned>& numbers);

/// Puts them in that order, and counts those of each core.
void put_in_order(std::vector<processor>& all);

/// Those that the affinity mask of the calling thread allows.
std::vector<unsigned> allowed_processors();

/// How far a job has to go: 0 within a core, 1 within the last caches but one, 2 within the last, 3 within a package, and
/// beyond that 10 or more, as far as the nodes are from each other.
unsigned distance(const processor& one, const processor& other) noexcept;

}  // namespace weft::detail
