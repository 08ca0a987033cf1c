// All pools of the process, for whoever looks from outside.
#include "pool/pool_list.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>
#include <weft/pool.hpp>
#include <weft/runtime.hpp>

#include "pool/pool_core.hpp"
#include "support/weft_test.hpp"

namespace w = weft;

namespace {

std::vector<std::string> names() {
  std::vector<std::string> found;
  w::detail::visit_pools([](w::detail::pool_core& one,
                            void* with) { static_cast<std::vector<std::string>*>(with)->push_back(one.name()); },
                         &found);
  return found;
}

}  // namespace

TEST(pool_list, has_those_that_are_there_the_newest_first) {
  using list = std::vector<std::string>;
  EXPECT_EQ(names(), list{});
  auto first = std::make_unique<w::pool>(w::pool_options{.threads = 1, .name = "first"});
  auto second = std::make_unique<w::pool>(w::pool_options{.threads = 1, .name = "a name that is too long"});
  const w::runtime third{{.threads = 1}};
  EXPECT_EQ(names(), (list{"weft", "a name that is ", "first"}));
  second.reset();  // in the middle
  EXPECT_EQ(names(), (list{"weft", "first"}));
  const w::worker_group fourth{{.threads = 1, .name = "fourth"}};
  first.reset();  // at the end
  EXPECT_EQ(names(), (list{"fourth", "weft"}));
}

#ifndef WEFT_TEST_TSAN  // which starts no threads behind a fork
TEST(pool_list, a_forked_child_has_none_of_its_parents) {
  const w::pool parents{{.threads = 1}};
  const pid_t child = ::fork();
  if (child == 0) {
    if (!names().empty()) ::_exit(1);
    const w::pool own{{.threads = 1, .name = "own"}};
    ::_exit(names() == std::vector<std::string>{"own"} ? 0 : 2);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(names().size(), 1U);
}
#endif

TEST(pool_list, pools_may_come_and_go_while_it_is_visited) {
  std::atomic<bool> ends{false};
  std::thread visitor{[&] {
    while (!ends) static_cast<void>(names());
  }};
  for (int i = 0; i != 100; ++i) const w::pool one{{.threads = 1}};
  ends = true;
  visitor.join();
  EXPECT_TRUE(names().empty());
}
