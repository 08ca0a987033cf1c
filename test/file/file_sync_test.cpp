// That what was written is on the disk when a program is told so: which calls are made, on which file, in which order.
#include <weft/file.hpp>

#include <sys/stat.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <ostream>
#include <string>
#include <vector>
#include <weft/runtime.hpp>
#include <weft/task.hpp>

#include "file/directories.hpp"
#include "support/file_calls.hpp"
#include "support/weft_test.hpp"

namespace test {
// NOLINTNEXTLINE(readability-identifier-naming): GoogleTest's name
inline void PrintTo(const noted_call& one, std::ostream* to) { *to << name_of(one.what) << " of " << one.inode; }
}  // namespace test

namespace {

using test::file_call;
using test::noted_call;
using test::noted_calls;
using weft::file;
using weft::io_backend;
using weft::task;

std::uint64_t inode_of(const std::string& path) {
  struct stat found{};
  EXPECT_EQ(::stat(path.c_str(), &found), 0) << path;
  return found.st_ino;
}

enum class place { thread, epoll, uring, two_rings };
class calls : public testing::TestWithParam<place> {
 protected:
  void SetUp() override {
    const place where = GetParam();
    if (where == place::thread) return;
    const bool has_rings = where == place::uring || where == place::two_rings;
    runtime_.emplace(weft::runtime_options{.threads = where == place::two_rings ? 2U : 1U,
                                           .io = has_rings ? io_backend::uring : io_backend::epoll});
    if (has_rings && runtime_->backend() != io_backend::uring) GTEST_SKIP() << "no rings here";
  }
  // Runs it twice: where a write may be done at once, and where it goes by a ring or a thread.
  template <class Body>
  void run(Body body) {
    for (const bool waits : {false, true}) {
      std::optional<test::nothing_at_once> not_at_once;
      if (waits) not_at_once.emplace();
      const std::size_t handed = test::handed_to_rings();
      if (runtime_)
        runtime_->run(body());
      else
        weft::sync_wait(body());
      EXPECT_EQ(test::handed_to_rings() != handed, GetParam() >= place::uring);
    }
  }

 private:
  std::optional<weft::runtime> runtime_;
};
std::string name_of(const testing::TestParamInfo<place>& one) {
  constexpr const char* names[] = {"on_a_thread", "by_epoll", "by_a_ring", "by_two_rings"};
  return names[static_cast<std::size_t>(one.param)];
}
INSTANTIATE_TEST_SUITE_P(, calls, testing::Values(place::thread, place::epoll, place::uring, place::two_rings),
                         name_of);

TEST_P(calls, of_a_sync_are_the_systems) {
  const test::own_directory in;
  run([&]() -> task<> {
    const file to = co_await file::open({.write = true, .create = true}, in.at("a"));
    const std::uint64_t its = inode_of(in.at("a"));
    const noted_calls noted;
    co_await to.write_at(0, "all");
    co_await to.sync();
    co_await to.write_at(0, "its data");
    co_await to.sync_data();
    EXPECT_EQ(
        noted.so_far(),
        (std::vector<noted_call>{
            {file_call::write, its}, {file_call::fsync, its}, {file_call::write, its}, {file_call::fdatasync, its}}));
  });
}

// A crash between any two of them leaves the old file or the new one, whole; one behind them, the new one.
TEST_P(calls, that_replace_a_file_sync_it_before_its_name_and_its_directory_behind) {
  const test::own_directory in;
  run([&]() -> task<> {
    const std::string path = in.at("a");
    for (int i = 0; i != 2; ++i) {  // there is none at first, then one
      const noted_calls noted;
      co_await weft::replace_file(path, "whole");
      const std::uint64_t its = inode_of(path);
      EXPECT_EQ(noted.so_far(), (std::vector<noted_call>{{file_call::write, its},
                                                         {file_call::fsync, its},
                                                         {file_call::rename, its},
                                                         {file_call::fsync, inode_of(in.path())}}));
    }
  });
}

}  // namespace
