// Which thread closes a file: one that was written may take long to close, and so may one without a name, which is freed then.
#include <weft/file.hpp>

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>
#include <weft/runtime.hpp>
#include <weft/task.hpp>

#include "file/directories.hpp"
#include "net/open_descriptors.hpp"
#include "support/weft_test.hpp"

namespace {
std::atomic<int> watched{-1};      // the number whose close is looked at
std::atomic<int> closes{0};        // of that
std::atomic<bool> is_held{false};  // its close waits for that to end
std::atomic<std::thread::id> closed_by{};
std::atomic<bool> has_no_threads{false};
}  // namespace

// NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming): the linker's names
extern "C" {
int __real_close(int number);
int __wrap_close(int number) {
  int expected = number;
  if (number >= 0 && watched.compare_exchange_strong(expected, -1)) {
    closed_by = std::this_thread::get_id();
    while (is_held) std::this_thread::yield();
    const int result = __real_close(number);
    ++closes;
    return result;
  }
  return __real_close(number);
}
int __real_pthread_create(pthread_t* thread, const pthread_attr_t* how, void* (*begin)(void*), void* with);
int __wrap_pthread_create(pthread_t* thread, const pthread_attr_t* how, void* (*begin)(void*), void* with) {
  return has_no_threads ? EAGAIN : __real_pthread_create(thread, how, begin, with);
}
}  // extern "C"
// NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming)

namespace {

using weft::file;
using weft::io_backend;
using weft::task;

void watch(const file& one) {
  closes = 0;
  closed_by = std::thread::id{};
  watched = one.native_handle();
}
void wait_for_close() {
  while (closes == 0) std::this_thread::sleep_for(std::chrono::milliseconds{1});
}
bool was_closed_here() { return closes == 1 && closed_by.load() == std::this_thread::get_id(); }

std::vector<io_backend> back_ends() {
  std::vector<io_backend> all{io_backend::epoll};
  if (weft::runtime{{.threads = 1}}.backend() == io_backend::uring) all.push_back(io_backend::uring);
  return all;
}
class file_close : public testing::TestWithParam<io_backend> {
 protected:
  weft::runtime_options options() const { return {.threads = 1, .io = GetParam()}; }
};
INSTANTIATE_TEST_SUITE_P(on, file_close, testing::ValuesIn(back_ends()), [](const auto& one) {
  return std::string{one.param == io_backend::epoll ? "epoll" : "uring"};
});

TEST_P(file_close, of_one_without_a_name_is_left_to_the_pool) {
  weft::runtime rt{options()};
  const std::size_t open = test::open_descriptors();
  for (int i = 0; i != 20; ++i) {
    rt.run([]() -> task<> {
      const auto worker = std::this_thread::get_id();
      {
        const file one = co_await file::temporary();
        co_await one.append("a line\n");
        watch(one);
      }
      wait_for_close();
      EXPECT_EQ(closes, 1);
      EXPECT_NE(closed_by.load(), worker);
    }());
    EXPECT_EQ(test::open_descriptors(), open);
  }
}

// As of a table that a reader still has open when it becomes obsolete.
TEST_P(file_close, of_one_whose_name_was_removed_holds_up_no_worker) {
  const test::own_directory in;
  weft::runtime rt{options()};
  rt.run([](const test::own_directory* where) -> task<> {
    const auto worker = std::this_thread::get_id();
    for (const bool is_awaited : {false, true}) {
      co_await weft::write_file(where->at("a"), "a line\n");
      std::optional<file> one = co_await file::open(where->at("a"));
      EXPECT_EQ(::unlink(where->at("a").c_str()), 0);
      watch(*one);
      if (is_awaited) co_await one->close();
      one.reset();
      wait_for_close();
      EXPECT_NE(closed_by.load(), worker);
    }
  }(&in));
}

TEST_P(file_close, that_the_pool_is_at_outlives_the_runtime) {
  const std::size_t open = test::open_descriptors();
  {
    weft::runtime rt{options()};
    is_held = true;
    rt.run([]() -> task<> {
      const file one = co_await file::temporary();
      watch(one);
    }());
  }
  EXPECT_EQ(closes, 0);
  is_held = false;
  wait_for_close();
  EXPECT_EQ(test::open_descriptors(), open);
}

TEST_P(file_close, of_one_with_a_name_is_done_when_its_destructor_returns) {
  const test::own_directory in;
  weft::runtime rt{options()};
  rt.run([](const test::own_directory* where) -> task<> {
    std::optional<file> one = co_await file::open({.write = true, .create = true}, where->at("a"));
    co_await one->append("a line\n");
    watch(*one);
    one.reset();
    EXPECT_TRUE(was_closed_here());
  }(&in));
}

TEST_P(file_close, that_is_awaited_holds_up_no_worker_where_it_was_written) {
  const test::own_directory in;
  weft::runtime rt{options()};
  rt.run([](const test::own_directory* where) -> task<> {
    const auto worker = std::this_thread::get_id();
    for (const bool has_name : {false, true}) {
      file one = co_await file::temporary(where->path());
      if (has_name) one = co_await file::open({.write = true, .create = true}, where->at("a"));
      watch(one);
      co_await one.close();
      EXPECT_EQ(closes, 1);
      EXPECT_NE(closed_by.load(), worker);
    }
    file one = co_await file::open(where->at("a"));
    watch(one);
    co_await one.close();
    EXPECT_NE(closed_by.load(), worker);  // by a ring, which calls no close(), or by a thread
    watched = -1;
  }(&in));
}

TEST_P(file_close, in_a_forked_child_is_done_at_once) {
  weft::runtime rt{options()};
  rt.run([]() -> task<> {
    std::optional<file> one = co_await file::temporary();
    const pid_t child = ::fork();
    if (child == 0) {
      watch(*one);
      one.reset();
      ::_exit(was_closed_here() ? 0 : 1);
    }
    int how = -1;
    EXPECT_EQ(::waitpid(child, &how, 0), child);
    EXPECT_EQ(how, 0);
  }());
}

TEST(file_close, without_a_runtime_is_done_on_the_thread_itself) {
  weft::sync_wait([]() -> task<> {
    std::optional<file> one = co_await file::temporary();
    watch(*one);
    one.reset();
    EXPECT_TRUE(was_closed_here());
  }());
}

// In a process of its own, whose pool has no thread yet: a ring opens the file.
int close_without_threads() {
  weft::runtime rt{{.threads = 1, .io = io_backend::uring}};
  bool here = false;
  rt.run([](bool* into) -> task<> {
    std::optional<file> one = co_await file::temporary();
    watch(*one);
    has_no_threads = true;
    one.reset();
    *into = was_closed_here();
    has_no_threads = false;
  }(&here));
  return here ? 0 : 1;
}
TEST(file_close_DeathTest, that_no_thread_can_be_had_for_is_done_here) {
  if (back_ends().size() == 1) GTEST_SKIP() << "no rings here";
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(std::exit(close_without_threads()), testing::ExitedWithCode(0), "");
}

}  // namespace
