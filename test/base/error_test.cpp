#include <weft/error.hpp>

#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace {

using weft::errc;
using weft::error;
using weft::result;
using weft::stopped;

std::exception_ptr failure_of(const char* why) { return std::make_exception_ptr(std::runtime_error{why}); }

TEST(error, has_a_code_for_programs_and_a_sentence_for_people) {
  const error plain{errc::timed_out, "receive"};
  EXPECT_EQ(plain.code(), errc::timed_out);
  EXPECT_STREQ(plain.what(), "receive: timed out");
  const error system{std::make_error_code(std::errc::connection_refused), "connect", "10.0.0.7:443"};
  EXPECT_EQ(system.code(), std::errc::connection_refused);
  EXPECT_STREQ(system.what(), "connect 10.0.0.7:443: Connection refused");
}

TEST(error, every_code_has_a_message_of_its_own) {
  std::vector<std::string> messages;
  for (int code = 1; code <= static_cast<int>(errc::future_already_taken); ++code)
    messages.push_back(weft::weft_category().message(code));
  for (std::size_t i = 0; i < messages.size(); ++i)
    for (std::size_t j = 0; j < i; ++j) EXPECT_NE(messages[i], messages[j]);
  EXPECT_EQ(weft::weft_category().message(99), "unknown error 99");
  EXPECT_STREQ(weft::weft_category().name(), "weft");
}

TEST(error, stopped_is_no_standard_exception) { static_assert(!std::is_convertible_v<stopped*, std::exception*>); }

// ---- result -----------------------------------------------------------------------------------------------------------

template <class T>
class result_of : public testing::Test {};

struct aligned {
  alignas(64) int n = 1;
};
struct no_default {
  explicit no_default(int) {}
};
template <class T>
result<T> some() {
  if constexpr (std::is_void_v<T>)
    return result<T>{std::in_place};
  else if constexpr (std::is_reference_v<T>) {
    static std::remove_cvref_t<T> object{};
    return result<T>{std::in_place, object};
  } else if constexpr (std::is_same_v<T, std::unique_ptr<int>>)
    return result<T>{std::in_place, std::make_unique<int>(1)};
  else if constexpr (std::is_same_v<T, no_default>)
    return result<T>{std::in_place, 1};
  else
    return result<T>{std::in_place, T{}};
}
using kinds =
    testing::Types<void, int, std::string, std::unique_ptr<int>, int&, const std::string&, aligned, no_default>;
TYPED_TEST_SUITE(result_of, kinds);

TYPED_TEST(result_of, holds_one_of_three) {
  result<TypeParam> value = some<TypeParam>(), failure{failure_of("x")}, stop{stopped{}}, none;
  EXPECT_TRUE(value.has_value() && value && !value.is_stopped() && value.exception() == nullptr);
  EXPECT_TRUE(!failure && !failure.is_stopped() && failure.exception() != nullptr);
  EXPECT_TRUE(!stop && stop.is_stopped() && stop.exception() == nullptr);
  EXPECT_TRUE(none.is_stopped());
  EXPECT_NO_THROW(value.value());
  EXPECT_THROW(failure.value(), std::runtime_error);
  EXPECT_THROW(std::move(failure).value(), std::runtime_error);
  EXPECT_THROW(std::as_const(stop).value(), stopped);
}

TYPED_TEST(result_of, moves_and_is_assigned) {
  result<TypeParam> one = some<TypeParam>();
  result<TypeParam> other = std::move(one);
  EXPECT_TRUE(other.has_value());
  other = result<TypeParam>{failure_of("x")};
  EXPECT_TRUE(other.exception());
  other = some<TypeParam>();
  EXPECT_TRUE(other.has_value());
  other = result<TypeParam>{};
  EXPECT_TRUE(other.is_stopped());
}

static_assert(std::is_copy_constructible_v<result<int>> && std::is_copy_constructible_v<result<int&>>);
static_assert(!std::is_copy_constructible_v<result<std::unique_ptr<int>>>);
static_assert(std::is_same_v<decltype(std::declval<result<int&>>().value()), int&>);
static_assert(std::is_same_v<decltype(std::declval<result<int>&>().value()), int&>);
static_assert(std::is_same_v<decltype(std::declval<result<int>>().value()), int&&>);
static_assert(std::is_same_v<decltype(std::declval<const result<int>&>().value()), const int&>);
static_assert(std::is_void_v<decltype(std::declval<result<void>>().value())>);

TEST(result, gives_its_value_by_operators_and_alternatives) {
  result<std::string> text{std::in_place, "text"};
  EXPECT_EQ(*text, "text");
  EXPECT_EQ(text->size(), 4u);
  EXPECT_EQ(std::as_const(text)->size(), 4u);
  *text += "s";
  const result<std::string> copy = text;
  EXPECT_EQ(*copy, "texts");
  EXPECT_EQ(std::move(text).value_or("other"), "texts");
  EXPECT_EQ(result<std::string>{}.value_or("other"), "other");
  int n = 1, other = 2;
  EXPECT_EQ(&(result<int&>{std::in_place, n}.value_or(other)), &n);
  EXPECT_EQ(&(result<int&>{}.value_or(other)), &other);
}

TEST(result, gives_the_code_of_what_was_thrown) {
  EXPECT_EQ(result<int>{std::make_exception_ptr(error{errc::closed, "send"})}.error(), errc::closed);
  EXPECT_EQ(result<int>{failure_of("no code")}.error(), std::error_code{});
  EXPECT_EQ(result<int>{}.error(), std::error_code{});
}

TEST(result, is_stopped_after_an_assignment_that_throws) {
  struct fragile {
    fragile() = default;
    fragile(const fragile&) {}
    fragile(fragile&& from) : armed{from.armed} {
      if (armed && --*armed == 0) throw std::runtime_error{"moved"};
    }
    int* armed = nullptr;
  };
  int moves = 2;  // into the parameter, then out of it
  result<fragile> target{std::in_place}, source{std::in_place};
  source.value().armed = &moves;
  EXPECT_THROW(target = std::move(source), std::runtime_error);
  EXPECT_TRUE(target.is_stopped());
}

}  // namespace
