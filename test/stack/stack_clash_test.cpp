// Frames that are larger than the guard of their stack, in code that is built with -fstack-clash-protection, as this file
// is: such a frame is touched page by page as it grows, so it meets the guard and can't jump over it.
#include <alloca.h>
#include <weft/fiber.hpp>
#include <weft/scope.hpp>
#include <weft/stack_pool.hpp>

#include <cstddef>

#include "stack/stack_guard.hpp"
#include "support/weft_test.hpp"

namespace {

using weft::stack_guard;

constexpr std::size_t mebibyte = std::size_t{1} << 20;

// Only the lowest byte is written, 15 guards below the stack's end.
[[gnu::noinline]] void has_a_frame_of_a_mebibyte() {
  const volatile std::size_t lowest = 0;
  volatile char room[mebibyte];
  room[lowest] = 1;
  static_cast<void>(room[lowest]);  // g++ holds it for unused else
}

[[gnu::noinline]] void has_an_alloca_of_a_mebibyte() {
  const volatile std::size_t bytes = mebibyte;
  auto* room = static_cast<volatile char*>(alloca(bytes));
  room[0] = 1;
}

class stack_clash : public testing::TestWithParam<stack_guard> {
 protected:
  stack_clash() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
  void SetUp() override {
    if (!weft::detail::guard_works(GetParam())) GTEST_SKIP() << "this kernel has no such guard";
  }

  static void run(void (*function)(), std::size_t size) {
    weft::stack_pool pool{{.guard = GetParam()}};
    const auto body = [&](weft::scope& s) -> weft::task<> {
      s.go({.size = size, .pool = &pool, .name = "the indexer"}, function);
      co_return;
    };
    weft::sync_wait(weft::with_scope(body));
  }
};
INSTANTIATE_TEST_SUITE_P(guards, stack_clash, testing::Values(stack_guard::madvise, stack_guard::mprotect),
                         [](const auto& one) { return one.param == stack_guard::madvise ? "madvise" : "mprotect"; });

// What is said to be needed is what was asked for when the guard was met, which is less than all of the frame.
TEST_P(stack_clash, a_large_frame_meets_the_guard) {
  run(has_a_frame_of_a_mebibyte, 2 * mebibyte);
  EXPECT_DEATH(
      run(has_a_frame_of_a_mebibyte, std::size_t{64} << 10),
      "weft: a stack ran over: 'the indexer', which runs .*has_a_frame_of_a_mebibyte.* has 6[0-9] KiB of stack "
      "and needed (6[4-9]|[7-9][0-9]|1[0-9][0-9]) KiB or more: give it a larger size");
}

TEST_P(stack_clash, a_large_alloca_meets_the_guard) {
  run(has_an_alloca_of_a_mebibyte, 2 * mebibyte);
  EXPECT_DEATH(
      run(has_an_alloca_of_a_mebibyte, std::size_t{64} << 10),
      "weft: a stack ran over: 'the indexer', which runs .*has_an_alloca_of_a_mebibyte.* has 6[0-9] KiB of stack "
      "and needed (6[4-9]|[7-9][0-9]|1[0-9][0-9]) KiB or more: give it a larger size");
}

}  // namespace
