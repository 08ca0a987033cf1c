// What hwloc says of the processors, beside what the kernel's files say, and of machines that this one is not.
#include <gtest/gtest.h>
#include <hwloc.h>

#include <numeric>
#include <ostream>
#include <vector>
#include <weft/pool.hpp>

#include "pool/processors_hwloc.hpp"

namespace weft::detail {

std::ostream& operator<<(std::ostream& out, const processor& one) {
  out << one.number << ": core " << one.core << " (" << one.nth << "), caches " << one.near_cache << " and "
      << one.cache << ", package " << one.package << ", node " << one.node << ", nodes";
  for (const unsigned far : one.nodes) out << ' ' << far;
  return out;
}

}  // namespace weft::detail

namespace {

using weft::detail::distance;
using weft::detail::processor;

/// As hwloc describes it in its own words, or where there are none, this machine.
class machine {
 public:
  explicit machine(const char* description = nullptr) {
    EXPECT_EQ(hwloc_topology_init(&topology_), 0);
    EXPECT_EQ(hwloc_topology_set_flags(topology_, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED), 0);
    if (description != nullptr) {
      EXPECT_EQ(hwloc_topology_set_synthetic(topology_, description), 0);
    }
    EXPECT_EQ(hwloc_topology_load(topology_), 0);
  }
  machine(const machine&) = delete;
  ~machine() { hwloc_topology_destroy(topology_); }

  std::vector<processor> processors(const std::vector<unsigned>& numbers) const {
    return weft::detail::processors_of_topology(topology_, numbers);
  }

 private:
  hwloc_topology_t topology_ = nullptr;
};

std::vector<unsigned> first(unsigned count) {
  std::vector<unsigned> all(count);
  std::iota(all.begin(), all.end(), 0u);
  return all;
}

TEST(hwloc, says_of_this_machine_what_the_kernel_says) {
  const std::vector<unsigned> mine = weft::detail::allowed_processors();
  ASSERT_FALSE(mine.empty());
  const auto by_kernel = weft::detail::processors_in("/sys/devices/system/cpu", mine);
  EXPECT_EQ(machine{}.processors(mine), by_kernel);
  EXPECT_EQ(weft::detail::processors_here(mine), by_kernel);
}

// Two packages of four cores of two threads; each core has an L2, each package an L3 and a node.
TEST(hwloc, one_thread_of_each_core_comes_before_the_second_ones) {
  const machine two_packages{"package:2 numa:1 l3:1 l2:4 core:1 pu:2"};
  const auto places = two_packages.processors(first(16));
  ASSERT_EQ(places.size(), 16u);
  for (unsigned i = 0; i != 16; ++i) {
    const unsigned core = i % 8;
    EXPECT_EQ(places[i], (processor{.number = 2 * core + i / 8,
                                    .core = 2 * core,
                                    .nth = i / 8,
                                    .near_cache = 2 * core,
                                    .cache = core / 4 * 8,
                                    .package = core / 4,
                                    .node = core / 4,
                                    .nodes = {}}));
  }
  EXPECT_EQ(distance(places[0], places[8]), 0u);
  EXPECT_EQ(distance(places[0], places[1]), 2u);
  EXPECT_EQ(distance(places[0], places[4]), 10u);
}

TEST(hwloc, cores_may_share_a_cache_below_the_last) {
  const auto places = machine{"package:1 l3:2 l2:2 core:2 pu:1"}.processors(first(8));
  ASSERT_EQ(places.size(), 8u);
  EXPECT_EQ(distance(places[0], places[1]), 1u);
  EXPECT_EQ(distance(places[0], places[2]), 2u);
  EXPECT_EQ(distance(places[0], places[4]), 3u);
}

TEST(hwloc, only_what_is_allowed_counts_and_what_it_does_not_know_is_shared) {
  const auto places = machine{"package:2 l3:1 core:4 pu:2"}.processors({9, 1, 3, 70});
  ASSERT_EQ(places.size(), 4u);
  EXPECT_EQ(places[0].number, 1u);
  EXPECT_EQ(places[1].number, 3u);
  EXPECT_EQ(places[2].number, 70u);
  EXPECT_EQ(places[3].number, 9u);
  EXPECT_EQ(places[2].package, 0u);
}

TEST(hwloc, a_pool_stays_where_it_says) {
  const weft::pool pinned{{.threads = 2, .pin = true}};
  EXPECT_EQ(pinned.run([]() -> weft::task<int> { co_return 1; }()), 1);
}

}  // namespace
