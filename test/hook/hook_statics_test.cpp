// The initializers of static variables in a program that has no other functions for them than the hooks: one whose C++ library
// is linked statically, as which dlsym() lets this one seem.
#include "support/weft_test.hpp"

#include <dlfcn.h>
#include <unistd.h>

#include <atomic>
#include <stdexcept>
#include <string_view>
#include <thread>
#include <vector>

#include "hook/places.hpp"

namespace { std::atomic<bool> was_asked{false}; }  // namespace

// NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming): the linker's names
extern "C" {
void* __real_dlsym(void* in, const char* name);
void* __wrap_dlsym(void* in, const char* name) {
  if (!std::string_view{name}.starts_with("__cxa_guard_")) return __real_dlsym(in, name);
  was_asked = true;
  return nullptr;
}
}
// NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming)

namespace {

std::atomic<int> begun{0};

int answer(int after_failures) {
  if (begun++ < after_failures) throw std::runtime_error{"the next one tries again"};
  return 42;
}

TEST(hook_statics, are_initialized_once) {
  begun = 0;
  const auto one = [] {
    static const int made = [] {
      ::usleep(1000);
      return answer(0);
    }();
    return made;
  };
  std::vector<std::thread> those;
  for (int i = 0; i != 4; ++i) those.emplace_back([&] { EXPECT_EQ(one(), 42); });
  for (std::thread& each : those) each.join();
  EXPECT_LE(begun, 1) << "more than once";
}

TEST(hook_statics, are_tried_again_behind_an_exception) {
  begun = 0;
  const auto one = [] {
    static const int made = answer(2);
    return made;
  };
  EXPECT_THROW(one(), std::runtime_error);
  EXPECT_THROW(one(), std::runtime_error);
  EXPECT_EQ(one(), 42);
  EXPECT_EQ(one(), 42);
  EXPECT_EQ(begun, 3);
}

TEST(hook_statics, of_which_the_initializer_waits_block_the_thread) {
  begun = 0;
  const auto one = [] {
    static const int made = [] {
      ::usleep(1000);
      return answer(0);
    }();
    EXPECT_EQ(made, 42);
  };
  test::run_at_once({one, one});
  EXPECT_TRUE(was_asked);
}

}  // namespace
