// What hwloc says of the processors: the same as the files that processors.cpp reads, on machines and in containers where
// those are not to be had, or say less. Built with -DWEFT_HWLOC=ON.
#pragma once

#include <vector>

#include "pool/processors.hpp"

struct hwloc_topology;

namespace weft::detail {

/// Those with these numbers, as a topology that was loaded has them; as processors_in() otherwise.
std::vector<processor> processors_of_topology(hwloc_topology* topology, const std::vector<unsigned>& numbers);

}  // namespace weft::detail
