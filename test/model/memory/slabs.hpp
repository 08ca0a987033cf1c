// In the place of src/memory/slabs.hpp: small ones, which know who uses what is cut from them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>
#include <weft/detail/base/atomic.hpp>

#include "relacy.hpp"

namespace weft::detail {

struct heap;

inline long coarse_milliseconds() noexcept { return 1; }

struct slab {
  static constexpr std::size_t bytes = 8192, frame = 2048, frames = 3;

  heap* owner;
  plain<slab*> next;
  plain<std::byte*> top;
  std::size_t freed = 0;
  plain<std::size_t> drained = 0;
  plain<int> users[frames];  // of each frame: 0 or 1

  explicit slab(heap& of) : owner{&of} {}

  static slab* of(void* block) noexcept {
    return reinterpret_cast<slab*>(reinterpret_cast<std::uintptr_t>(block) & ~(bytes - 1));
  }
  std::byte* begin() noexcept { return reinterpret_cast<std::byte*>(this) + (bytes - frames * frame); }
  std::byte* end() noexcept { return reinterpret_cast<std::byte*>(this) + bytes; }
  std::size_t cut() noexcept { return static_cast<std::size_t>(top - begin()); }
  plain<int>& users_of(void* block) noexcept {
    return users[static_cast<std::size_t>(static_cast<std::byte*>(block) - begin()) / frame];
  }
};

class slab_source {
 public:
  static constexpr int most = 4;

  static slab_source& the_one() noexcept { return *now; }
  static inline slab_source* now = nullptr;

  slab* take(heap& of, bool) {
    for (int i = 0; i != most; ++i)
      if (!taken_[i]) {
        taken_[i] = true;
        return ::new (rooms[i]) slab{of};
      }
    RL_ASSERT(false);
    return nullptr;
  }
  void give_back(slab* one) noexcept {
    const auto index = static_cast<std::size_t>(reinterpret_cast<std::byte*>(one) - rooms[0]) / slab::bytes;
    RL_ASSERT(taken_[index]);
    for (const plain<int>& users : one->users) RL_ASSERT(users == 0);
    one->~slab();
    taken_[index] = false;
  }
  int in_use() const noexcept {
    int count = 0;
    for (const bool one : taken_) count += one;
    return count;
  }

 private:
  alignas(slab::bytes) static inline std::byte rooms[most][slab::bytes];
  bool taken_[most]{};
};

}  // namespace weft::detail
