// The parser: what it makes of a text, right or wrong; and without memory it ends. It does not wait, so no stop can come.
#include <gtest/gtest.h>
#include <weft/test.hpp>
#include <weft/weft.hpp>

#define main program
#include "../../examples/recipes/parser.cpp"
#undef main

namespace {

long value_of(std::string_view text) {
  parser of{text};
  const long value = of.sum();
  EXPECT_TRUE(of.at_end()) << text;
  return value;
}

TEST(parser, multiplies_before_it_adds) {
  EXPECT_EQ(value_of("7"), 7);
  EXPECT_EQ(value_of(" 2 * (3 + 14) + 8 "), 42);
  EXPECT_EQ(value_of("1+2*3+4"), 11);
  EXPECT_EQ(value_of("((((5))))*10"), 50);
}

TEST(parser, says_what_is_missing) {
  const auto complaint_of = [](std::string_view text) -> std::string {
    try {
      value_of(text);
    } catch (const std::runtime_error& e) {
      return e.what();
    }
    return "none";
  };
  EXPECT_EQ(complaint_of("(1 + 2"), "a ) is missing");
  EXPECT_EQ(complaint_of("1 +"), "a number is missing");
  EXPECT_EQ(complaint_of(""), "a number is missing");
  EXPECT_EQ(complaint_of("1 + x"), "this is no number");
}

TEST(parser, reads_no_further_than_it_must) {
  parser of{"1 + 2 ) + 3"};
  EXPECT_EQ(of.sum(), 3);
  EXPECT_FALSE(of.at_end());
}

struct has_no_memory {
  w::task<> run() {
    w::test::require(value_of("2 * (3 + 14) + 8") == 42, "it is wrong");
    co_return;
  }
};
TEST(parser, ends_without_memory) { w::test::allocation_sweep<has_no_memory>("parser"); }

}  // namespace
