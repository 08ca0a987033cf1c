// switch_30k_prefetch: as switch_30k, with the hint of switch_prefetch.
#pragma once

#include "../switch_30k/workload.hpp"

#include <algorithm>

namespace bench {

/// Resumes each of `all` that has not ended, having fetched the one ten ahead; gives how many yielded.
template <class All, class Fetch, class Resume>
std::size_t resume_prefetched(All& all, Fetch fetch, Resume resume) {
  constexpr std::size_t ahead = 10;
  std::size_t yielded = 0;
  const std::size_t last = all.size() - 1;
  for (std::size_t i = 0; i <= last; ++i) {
    fetch(all[std::min(i + ahead, last)]);
    if (!all[i]) continue;
    resume(all[i]);
    yielded += static_cast<bool>(all[i]);
  }
  return yielded;
}

}  // namespace bench
