// In the place of src/base/any_below.hpp: the model's choice, so that it can be made again, and all of them tried.
#pragma once

#include <cstddef>

#include "relacy.hpp"

namespace weft::detail {

inline std::size_t any_below(std::size_t count) noexcept { return rl::rand(static_cast<unsigned>(count)); }

}  // namespace weft::detail
