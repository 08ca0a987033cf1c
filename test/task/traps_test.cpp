// What no type catches, and the address sanitizer does: the programs of docs/book/traps.md.
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include <weft/task.hpp>

#include "support/weft_test.hpp"

namespace {

using weft::sync_wait;
using weft::task;

task<std::string_view> first_word() {
  const std::string text = "word upon word, too many to lie in the string itself";
  co_return std::string_view{text}.substr(0, text.find(' '));
}
task<std::span<const int>> numbers() {
  const std::vector<int> all{1, 2, 3};
  co_return std::span{all};
}
task<const int*> number() {
  const int one = 1;
  co_return &one;
}

task<std::size_t> size_of(const std::string& text) { co_return text.size(); }
task<> awaits_later() {
  auto size = size_of(std::string(60, 'x'));
  EXPECT_EQ(co_await std::move(size), 60U);
}

task<> calls_a_closure() {
  auto size = [text = std::string(60, 'x')]() -> task<std::size_t> { co_return text.size(); }();
  EXPECT_EQ(co_await std::move(size), 60U);
}

class traps : public testing::Test {
 protected:
  traps() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};
constexpr char use_after[] = "AddressSanitizer: (stack-use-after-(scope|return)|heap-use-after-free)";

TEST_F(traps, a_view_of_what_ends_with_the_task) {
  EXPECT_DEATH(EXPECT_EQ(sync_wait(first_word())[0], 'w'), use_after);
  EXPECT_DEATH(EXPECT_EQ(sync_wait(numbers())[0], 1), use_after);
}
TEST_F(traps, a_pointer_to_a_variable_of_the_task) { EXPECT_DEATH(EXPECT_EQ(*sync_wait(number()), 1), use_after); }
TEST_F(traps, a_reference_to_what_was_given) { EXPECT_DEATH(sync_wait(awaits_later()), use_after); }
TEST_F(traps, a_closure_that_is_gone) { EXPECT_DEATH(sync_wait(calls_a_closure()), use_after); }

}  // namespace
