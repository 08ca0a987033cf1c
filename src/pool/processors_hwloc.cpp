#include "pool/processors_hwloc.hpp"

#include <hwloc.h>
#include <hwloc/distances.h>

#include <algorithm>
#include <memory>
#include <utility>

namespace weft::detail {
namespace {

unsigned first_of(hwloc_const_bitmap_t set, unsigned otherwise) {
  const int first = ::hwloc_bitmap_first(set);
  return first >= 0 ? static_cast<unsigned>(first) : otherwise;
}

// From the processor outward: of the last level, and of the last but one; the same where there is only one.
void read_caches(processor& one, hwloc_obj_t unit) {
  bool any = false;
  for (hwloc_obj_t outer = unit->parent; outer != nullptr; outer = outer->parent) {
    if (!::hwloc_obj_type_is_dcache(outer->type)) continue;
    const unsigned shared_from = first_of(outer->cpuset, 0);
    one.near_cache = any ? one.cache : shared_from;
    one.cache = shared_from;
    any = true;
  }
}

// How far the nodes are from each other, if the firmware says so.
std::vector<unsigned> nodes_from(hwloc_topology_t topology, unsigned node) {
  hwloc_distances_s* found = nullptr;
  unsigned count = 1;
  constexpr unsigned long kind = HWLOC_DISTANCES_KIND_FROM_OS | HWLOC_DISTANCES_KIND_MEANS_LATENCY;
  if (::hwloc_distances_get_by_type(topology, HWLOC_OBJ_NUMANODE, &count, &found, kind, 0) != 0 || count == 0)
    return {};
  std::vector<unsigned> from;
  const auto end = found->objs + found->nbobjs;
  const auto mine = std::find_if(found->objs, end, [&](hwloc_obj_t one) { return one->os_index == node; });
  if (mine != end)
    for (unsigned other = 0; other != found->nbobjs; ++other) {
      const unsigned number = found->objs[other]->os_index;
      if (from.size() <= number) from.resize(number + 1);
      from[number] = static_cast<unsigned>(found->values[(mine - found->objs) * found->nbobjs + other]);
    }
  ::hwloc_distances_release(topology, found);
  return from;
}

}  // namespace

std::vector<processor> processors_of_topology(hwloc_topology* topology, const std::vector<unsigned>& numbers) {
  std::vector<processor> all;
  for (const unsigned number : numbers) {
    processor one;
    one.number = one.core = number;
    if (const hwloc_obj_t unit = ::hwloc_get_pu_obj_by_os_index(topology, number); unit != nullptr) {
      const hwloc_obj_t core = ::hwloc_get_ancestor_obj_by_type(topology, HWLOC_OBJ_CORE, unit);
      const hwloc_obj_t package = ::hwloc_get_ancestor_obj_by_type(topology, HWLOC_OBJ_PACKAGE, unit);
      if (core != nullptr) one.core = first_of(core->cpuset, number);
      if (package != nullptr) one.package = package->os_index;
      read_caches(one, unit);
      one.node = first_of(unit->nodeset, 0);
      one.nodes = nodes_from(topology, one.node);
    }
    all.push_back(std::move(one));
  }
  put_in_order(all);
  return all;
}

// What it can't load, it can't describe, and the kernel may.
std::vector<processor> processors_here(const std::vector<unsigned>& numbers) {
  constexpr auto end = [](hwloc_topology_t one) { ::hwloc_topology_destroy(one); };
  hwloc_topology_t made = nullptr;
  if (::hwloc_topology_init(&made) == 0) {
    const std::unique_ptr<hwloc_topology, decltype(end)> topology{made};
    // Also those that a control group forbids, as the kernel's files have them: a core is named by its first processor.
    if (::hwloc_topology_set_flags(made, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED) == 0 &&
        ::hwloc_topology_load(made) == 0)
      return processors_of_topology(made, numbers);
  }
  return processors_in("/sys/devices/system/cpu", numbers);
}

}  // namespace weft::detail
