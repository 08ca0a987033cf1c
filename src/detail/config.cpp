#include <weft/detail/config.hpp>

#include <cstdio>
#include <cstdlib>

extern "C" const char WEFT_ABI_SYMBOL = 0;

namespace weft::detail {

void fail(const char* sentence) noexcept {
  std::fprintf(stderr, "weft: %s\n", sentence);
  std::abort();
}

}  // namespace weft::detail
