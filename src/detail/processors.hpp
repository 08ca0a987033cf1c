// How many processors this process may use, which, and how near they are to each other.
#pragma once

#include <string>
#include <vector>

namespace weft::detail {

/// The lesser of what the calling thread's affinity mask allows and the quota of the control group that `membership`
/// (/proc/self/cgroup) names below `mounted` (/sys/fs/cgroup), or of one above it; at least 1. Both versions of control
/// groups; what can't be read limits nothing.
unsigned processors_of(const std::string& membership, const std::string& mounted);

/// A processor as the kernel numbers them: a hardware thread. Two that share something have the same number there.
struct processor {
  unsigned number = 0;
  unsigned core = 0;
  unsigned nth = 0;      // of those of its core, by number
  unsigned cache = 0;    // of the last level
  unsigned package = 0;  // the socket
  unsigned node = 0;     // of memory
};

/// Those with these numbers, as `folder` (/sys/devices/system/cpu) describes them, in the order in which threads are to
/// take them: one of each core first, and neighbours after each other. What can't be read is taken for shared, but for
/// the core.
std::vector<processor> processors_in(const std::string& folder, const std::vector<unsigned>& numbers);

/// Those that the affinity mask of the calling thread allows.
std::vector<unsigned> allowed_processors();

/// How far a job has to go: 0 within a core, 1 within a cache, 2 within a package, 3 beyond.
unsigned distance(const processor& one, const processor& other) noexcept;

}  // namespace weft::detail
