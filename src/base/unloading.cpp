#include "base/unloading.hpp"

#include <cstdlib>

namespace weft::detail {
namespace {

constinit bool destructors_run = false;
constinit bool unloaded = false;

[[gnu::destructor]] void note_that_destructors_run() noexcept { destructors_run = true; }

}  // namespace

bool at_end(void (*f)()) noexcept { return std::atexit(f) == 0; }

bool is_unloading() noexcept { return destructors_run; }

void note_that_something_stays() noexcept {
  static const bool once = at_end([] { unloaded = is_unloading(); });
  static_cast<void>(once);
}

bool is_unloaded() noexcept { return unloaded; }

}  // namespace weft::detail
