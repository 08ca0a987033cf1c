// In the place of src/io/file.hpp: files of which relacy sees the use and the end.
#pragma once

#include <weft/detail/base/atomic.hpp>

namespace weft::detail {

struct model_file {
  plain<bool> is_open = true;  // read by each call with its number
  atomic<bool> is_shut{false};

  static inline model_file* all = nullptr;  // by number
};

inline void use_file(int number) { RL_ASSERT(model_file::all[number].is_open); }
inline void close_file(int number) noexcept {
  use_file(number);
  model_file::all[number].is_open = false;
}
inline void shut_down_file(int number) noexcept {
  use_file(number);
  model_file::all[number].is_shut.store(true, std::memory_order_relaxed);
}
inline int shut_down_writes_of(int number) noexcept {
  use_file(number);
  return 0;
}

}  // namespace weft::detail
