#include "stack/stack_memory.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstdint>

#include "stack/stack_guard.hpp"

namespace weft::detail {
namespace {

constexpr std::uint64_t canary = 0x5eed'0f'c0ffee'5eed;
constexpr std::size_t canary_words = canary_bytes / sizeof canary;

}  // namespace

void set_canary(stack_header& one) noexcept {
  std::fill_n(reinterpret_cast<std::uint64_t*>(one.bottom), canary_words, canary);
}

bool canary_lives(const stack_header& one) noexcept {
  const auto* words = reinterpret_cast<const std::uint64_t*>(one.bottom);
  return std::all_of(words, words + canary_words, [](std::uint64_t word) { return word == canary; });
}

// Not in brackets, in which clang 19 does not know the attribute.
__attribute__((no_sanitize("address", "thread"))) std::byte* lowest_written(std::byte* bottom,
                                                                            std::byte* top) noexcept {
  unsigned char resident[64];
  auto* at = reinterpret_cast<std::byte*>(reinterpret_cast<std::uintptr_t>(bottom) & ~(page_bytes - 1));
  while (at < top) {
    const std::size_t bytes = std::min<std::size_t>(static_cast<std::size_t>(top - at), sizeof resident * page_bytes);
    if (::mincore(at, bytes, resident) != 0) return top;
    const std::size_t pages = (bytes + page_bytes - 1) / page_bytes;
    for (std::size_t page = 0; page != pages; ++page, at += page_bytes) {
      if ((resident[page] & 1) == 0) continue;
      const auto* const end = reinterpret_cast<std::uint64_t*>(std::min(at + page_bytes, top));
      for (auto* word = reinterpret_cast<volatile std::uint64_t*>(std::max(at, bottom)); word != end; ++word)
        if (*word != 0) return reinterpret_cast<std::byte*>(const_cast<std::uint64_t*>(word));
    }
  }
  return top;
}

}  // namespace weft::detail
