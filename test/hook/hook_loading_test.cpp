// Hooks while the program and its libraries are loaded.
#include "support/weft_test.hpp"

#include <dlfcn.h>

#include <functional>
#include <weft/hook.hpp>

#include "hook/places.hpp"

namespace {

// By a thread for which a library's constructor waits: a call must not need the loader's lock. If one did, the test would hang.
TEST(hook_loading, a_library_loads_whose_constructor_waits_for_calls) {
  void* const library = ::dlopen(WEFT_LOADED, RTLD_NOW);
  ASSERT_NE(library, nullptr) << ::dlerror();
  const auto* const calls = static_cast<const int*>(::dlsym(library, "calls_as_loaded"));
  ASSERT_NE(calls, nullptr);
  EXPECT_EQ(*calls, 5);
  test::run_hooked([] {});  // so that there are hooks
}

}  // namespace
