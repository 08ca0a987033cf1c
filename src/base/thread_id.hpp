// Tells threads apart, in two instructions. For functions of the library, as worker_of_thread is.
#pragma once

#include <cstdint>

namespace weft::detail {

/// Not 0, and different for any two threads that are alive.
inline std::uintptr_t this_thread_id() noexcept {
  [[gnu::tls_model("initial-exec")]] static thread_local constinit char here = 0;  // its address
  return reinterpret_cast<std::uintptr_t>(&here);
}

}  // namespace weft::detail
