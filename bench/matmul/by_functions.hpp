// The product for libraries whose tasks are plain functions: `both(f, g)` runs the two, perhaps at once, and waits for them.
#pragma once

#include "workload.hpp"

namespace bench {

template <class Both>
void multiply_by(const Both& both, const product& all) {
  if (all.is_small()) return all.add();
  const auto half = all.halves();
  if (half.in_turn) {
    multiply_by(both, half.first);
    multiply_by(both, half.second);
  } else {
    both([&] { multiply_by(both, half.first); }, [&] { multiply_by(both, half.second); });
  }
}

}  // namespace bench
