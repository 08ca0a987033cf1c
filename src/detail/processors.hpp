// How many processors this process may use.
#pragma once

#include <string>

namespace weft::detail {

/// The lesser of what the calling thread's affinity mask allows and the quota of the control group that `membership`
/// (/proc/self/cgroup) names below `mounted` (/sys/fs/cgroup), or of one above it; at least 1. Both versions of control
/// groups; what can't be read limits nothing.
unsigned processors_of(const std::string& membership, const std::string& mounted);

}  // namespace weft::detail
