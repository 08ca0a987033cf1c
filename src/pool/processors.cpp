#include "pool/processors.hpp"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <tuple>
#include <utility>

namespace weft::detail {
namespace {

constexpr unsigned no_limit = ~0u;

unsigned allowed_by_mask() {
  const std::size_t count = allowed_processors().size();
  return count != 0 ? static_cast<unsigned>(count)
                    : static_cast<unsigned>(std::max(::sysconf(_SC_NPROCESSORS_ONLN), 1L));
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

// The first number in a file: all of "3", or of a list like "0-3,8-11", which is the least.
unsigned first_number(const std::string& path, unsigned otherwise) {
  std::ifstream file{path};
  unsigned number = 0;
  return file >> number ? number : otherwise;
}

// Of the last level, and of the last but one; the same where there is only one.
void read_caches(processor& one, const std::string& folder) {
  for (unsigned index = 0, highest = 0;; ++index) {
    const std::string cache = folder + "/cache/index" + std::to_string(index);
    const unsigned level = first_number(cache + "/level", 0);
    if (level == 0) return;
    if (level <= highest) continue;
    const unsigned shared_from = first_number(cache + "/shared_cpu_list", 0);
    one.near_cache = highest == 0 ? shared_from : one.cache;
    one.cache = shared_from;
    highest = level;
  }
}

// The folder has a link to its node, "node0".
unsigned node_of(const std::string& folder) {
  std::error_code ignored;  // a kernel without nodes has no link
  for (const auto& entry : std::filesystem::directory_iterator{folder, ignored}) {
    const std::string name = entry.path().filename();
    if (name.size() > 4 && name.starts_with("node") && name[4] >= '0' && name[4] <= '9')
      return static_cast<unsigned>(std::stoul(name.substr(4)));
  }
  return 0;
}

std::vector<unsigned> numbers_in(const std::string& path) {
  std::ifstream file{path};
  std::vector<unsigned> all;
  for (unsigned number = 0; file >> number;) all.push_back(number);
  return all;
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

std::vector<processor> processors_in(const std::string& folder, const std::vector<unsigned>& numbers) {
  std::vector<processor> all;
  for (const unsigned number : numbers) {
    const std::string mine = folder + "/cpu" + std::to_string(number);
    processor one;
    one.number = number;
    one.core = first_number(mine + "/topology/thread_siblings_list", number);
    read_caches(one, mine);
    one.package = first_number(mine + "/topology/physical_package_id", 0);
    one.node = node_of(mine);
    one.nodes = numbers_in(mine + "/node" + std::to_string(one.node) + "/distance");
    if (one.nodes.size() == 1) one.nodes.clear();
    all.push_back(std::move(one));
  }
  put_in_order(all);
  return all;
}

#ifndef WEFT_WITH_HWLOC  // else in processors_hwloc.cpp
std::vector<processor> processors_here(const std::vector<unsigned>& numbers) {
  return processors_in("/sys/devices/system/cpu", numbers);
}
#endif

void put_in_order(std::vector<processor>& all) {
  const auto place = [](const processor& one) {
    return std::tuple{one.nth, one.package, one.node, one.cache, one.near_cache, one.core, one.number};
  };
  std::ranges::sort(all, {}, place);
  for (std::size_t i = 1; i < all.size(); ++i)
    if (all[i].core == all[i - 1].core) all[i].nth = all[i - 1].nth + 1;
  std::ranges::sort(all, {}, place);
}

std::vector<unsigned> allowed_processors() {
  std::vector<unsigned> numbers;
  for (unsigned most = 1024; most <= 1u << 16 && numbers.empty(); most *= 2) {
    cpu_set_t* const set = CPU_ALLOC(most);
    if (set == nullptr) break;
    if (::sched_getaffinity(0, CPU_ALLOC_SIZE(most), set) == 0)
      for (unsigned number = 0; number != most; ++number)
        if (CPU_ISSET_S(number, CPU_ALLOC_SIZE(most), set)) numbers.push_back(number);
    CPU_FREE(set);
  }
  return numbers;
}

unsigned distance(const processor& one, const processor& other) noexcept {
  constexpr unsigned beyond = 10;
  if (one.node != other.node && other.node < one.nodes.size()) return std::max(beyond, one.nodes[other.node]);
  if (one.package != other.package || one.node != other.node) return beyond;
  if (one.cache != other.cache) return 3;
  if (one.near_cache != other.near_cache) return 2;
  return one.core != other.core ? 1 : 0;
}

}  // namespace weft::detail
