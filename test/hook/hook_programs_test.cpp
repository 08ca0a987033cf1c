// Small programs in C, run as they are and with hooks, several of each at once on one worker: what they write is the same.
//
// With WEFT_TEST_IN_RUNTIME=epoll or =uring in the environment the worker is one of a runtime that waits by that.
#include "support/weft_test.hpp"

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "hook/places.hpp"
#include "hook/programs/programs.h"

namespace {

using weft::task;

std::string output_of(void (*program)(FILE*)) {
  char* text = nullptr;
  std::size_t size = 0;
  FILE* const out = ::open_memstream(&text, &size);
  program(out);
  static_cast<void>(std::fclose(out));
  std::string all{text, size};
  std::free(text);
  return all;
}

struct program {
  const char* name;
  void (*run)(FILE*);
};
#define WEFT_LIST(NAME) {#NAME, program_##NAME},
constexpr program programs[] = {WEFT_EACH_PROGRAM(WEFT_LIST)};
#undef WEFT_LIST

// As they are: all of them before there is any worker, since rings that go interrupt calls of the thread that has made them.
const std::string& plain_output_of(std::size_t which) {
  static const std::vector<std::string> all = [] {
    std::vector<std::string> each;
    for (const program& one : programs) each.push_back(output_of(one.run));
    return each;
  }();
  return all[which];
}

class hook_programs : public testing::TestWithParam<std::size_t> {};

TEST_P(hook_programs, do_the_same_with_hooks) {
  const auto run = programs[GetParam()].run;
  const std::string& plain = plain_output_of(GetParam());
  EXPECT_NE(plain, "");
  std::vector<std::string> hooked(3);
  std::vector<std::function<void()>> those;
  for (std::string& one : hooked) those.emplace_back([&one, run] { one = output_of(run); });
  test::run_at_once(std::move(those));
  for (const std::string& one : hooked) EXPECT_EQ(one, plain);
}
INSTANTIATE_TEST_SUITE_P(each, hook_programs, testing::Range(std::size_t{0}, std::size(programs)),
                         [](const auto& one) { return programs[one.param].name; });

// All of them on one worker, while each waits for the others' turns.
TEST(hook_programs_together, do_the_same) {
  plain_output_of(0);
  std::vector<std::string> hooked(std::size(programs));
  std::vector<std::function<void()>> those;
  for (std::size_t i = 0; i != std::size(programs); ++i)
    those.emplace_back([&, i] { hooked[i] = output_of(programs[i].run); });
  test::run_at_once(std::move(those));
  for (std::size_t i = 0; i != std::size(programs); ++i) EXPECT_EQ(hooked[i], plain_output_of(i)) << programs[i].name;
}

}  // namespace
