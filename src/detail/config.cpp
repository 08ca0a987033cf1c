#include <weft/detail/config.hpp>

#include <cstdio>
#include <cstdlib>

#include "detail/last_words.hpp"

extern "C" const char WEFT_ABI_SYMBOL = 0;

namespace weft::detail {

void fail(const char* sentence) noexcept {
  if (const auto print = print_running_stack.load(std::memory_order_relaxed)) print();
  std::fprintf(stderr, "weft: %s\n", sentence);
  std::abort();
}

}  // namespace weft::detail
