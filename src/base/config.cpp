#include <weft/detail/base/config.hpp>

#include <cstdio>
#include <cstdlib>
#include <exception>

#include "base/last_words.hpp"

extern "C" const char WEFT_ABI_SYMBOL = 0;

namespace weft::detail {

void fail(const char* sentence) noexcept {
  if (const auto print = print_running_stack.load(std::memory_order_relaxed)) print();
  std::fprintf(stderr, "weft: %s\n", sentence);
  std::abort();
}

void fail_thrown(const char* sentence) noexcept {
  char all[512];
  try {
    throw;
  } catch (const std::exception& thrown) {
    std::snprintf(all, sizeof all, "%s: %s", sentence, thrown.what());
  } catch (...) {
    std::snprintf(all, sizeof all, "%s, and no std::exception", sentence);
  }
  fail(all);
}

}  // namespace weft::detail
