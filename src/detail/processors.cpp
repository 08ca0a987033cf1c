#include "detail/processors.hpp"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <sstream>

namespace weft::detail {
namespace {

constexpr unsigned no_limit = ~0u;

unsigned allowed_by_mask() {
  for (unsigned most = 1024; most <= 1u << 16; most *= 2) {
    cpu_set_t* const set = CPU_ALLOC(most);
    if (set == nullptr) break;
    const bool read = ::sched_getaffinity(0, CPU_ALLOC_SIZE(most), set) == 0;
    const int count = read ? CPU_COUNT_S(CPU_ALLOC_SIZE(most), set) : 0;
    CPU_FREE(set);
    if (count > 0) return static_cast<unsigned>(count);
  }
  return static_cast<unsigned>(std::max(::sysconf(_SC_NPROCESSORS_ONLN), 1L));
}

unsigned as_processors(double quota, double period) {
  if (!(quota > 0) || !(period > 0)) return no_limit;
  const double count = std::min(quota / period, 1e6);
  const auto whole = static_cast<unsigned>(count);
  return std::max(whole < count ? whole + 1 : whole, 1u);
}

// "max 100000" or "150000 100000"
unsigned quota_2(const std::string& folder) {
  std::ifstream file{folder + "/cpu.max"};
  double quota = 0, period = 0;
  return file >> quota >> period ? as_processors(quota, period) : no_limit;
}

unsigned quota_1(const std::string& folder) {
  std::ifstream quota_file{folder + "/cpu.cfs_quota_us"}, period_file{folder + "/cpu.cfs_period_us"};
  double quota = 0, period = 0;
  return quota_file >> quota && period_file >> period ? as_processors(quota, period) : no_limit;
}

// The least of `above`, of the folder `path` below it, and of all between.
template <class Quota>
unsigned least_on_the_way(const std::string& above, std::string path, Quota quota) {
  unsigned least = no_limit;
  for (;;) {
    least = std::min(least, quota(above + path));
    const auto last = path.rfind('/');
    if (last == std::string::npos) return least;
    path.resize(last);
  }
}

}  // namespace

// Lines are "0::/path" (version 2) or "7:cpu,cpuacct:/path".
unsigned processors_of(const std::string& membership, const std::string& mounted) {
  unsigned count = allowed_by_mask();
  std::ifstream file{membership};
  for (std::string line; std::getline(file, line);) {
    std::istringstream fields{line};
    std::string number, kinds, path;
    if (!std::getline(fields, number, ':') || !std::getline(fields, kinds, ':') || !std::getline(fields, path))
      continue;
    if (kinds.empty())
      count = std::min(count, least_on_the_way(mounted, path, quota_2));
    else if (("," + kinds + ",").find(",cpu,") != std::string::npos)
      count = std::min(count, least_on_the_way(mounted + "/" + kinds, path, quota_1));
  }
  return std::max(count, 1u);
}

}  // namespace weft::detail
