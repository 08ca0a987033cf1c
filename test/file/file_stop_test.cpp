// Calls on files that hang, as on a server that is gone: which of them a stop leaves to their threads, and for which it waits.
#include <weft/file.hpp>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>
#include <weft/blocking.hpp>
#include <weft/combine.hpp>
#include <weft/directory.hpp>
#include <weft/runtime.hpp>
#include <weft/scope.hpp>
#include <weft/stop.hpp>
#include <weft/timer.hpp>
#include <weft/with.hpp>

#include "file/directories.hpp"
#include "net/open_descriptors.hpp"
#include "support/file_calls.hpp"
#include "support/weft_test.hpp"

namespace {

using namespace std::chrono_literals;
using test::file_call;
using test::file_injection;
using test::own_directory;
using weft::as_result;
using weft::file;
using weft::io_backend;
using weft::process_blocking_stats;
using weft::task;

template <class Done>
bool comes(Done done) {
  const auto limit = std::chrono::steady_clock::now() + 60s;
  while (!done()) {
    if (std::chrono::steady_clock::now() > limit) return false;
    std::this_thread::sleep_for(1ms);
  }
  return true;
}

task<bool> comes_meanwhile(std::function<bool()> done) {
  for (const auto limit = std::chrono::steady_clock::now() + 60s; !done();) {
    if (std::chrono::steady_clock::now() > limit) co_return false;
    co_await weft::sleep_for(1ms);
  }
  co_return true;
}
struct counts_at_end {
  explicit counts_at_end(std::atomic<unsigned>& in) : count{in} {}
  counts_at_end(const counts_at_end&) = delete;
  ~counts_at_end() { ++count; }
  std::atomic<unsigned>& count;
};

// One by the pool's threads, since it has several workers.
class hanging : public testing::Test {
 protected:
  // No call of another test is left.
  void SetUp() override {
    EXPECT_TRUE(comes([] { return process_blocking_stats().busy == 0; }));
  }
  weft::runtime runtime_{{.threads = 2, .io = io_backend::epoll}};
  own_directory in_;
};

// A pipe with a name, which can't be opened before somebody has its other end; at the latest in a minute.
class pipe_with_a_name {
 public:
  explicit pipe_with_a_name(std::string path) : path_{std::move(path)} {
    EXPECT_EQ(::mkfifo(path_.c_str(), 0600), 0);
    at_last_ = std::jthread{[this](const std::stop_token& stop) {
      std::unique_lock guard{lock_};
      std::condition_variable_any().wait_for(guard, stop, 60s, [] { return false; });
      both_ends_ = ::open(path_.c_str(), O_RDWR | O_CLOEXEC);
    }};
  }
  pipe_with_a_name(const pipe_with_a_name&) = delete;
  ~pipe_with_a_name() {
    if (at_last_.joinable()) give_other_end();
    ::close(both_ends_);
  }
  const std::string& path() const { return path_; }
  void give_other_end() {
    at_last_.request_stop();
    at_last_.join();
  }

 private:
  std::string path_;
  std::mutex lock_;
  int both_ends_ = -1;
  std::jthread at_last_;
};

// Stops what awaits `call` once `all` of the pool's threads are at something, and then awaits `then`.
template <class Call, class Then>
task<> stop_when_busy(unsigned all, Call call, Then then) {
  const auto body = [&](weft::scope& inside) -> task<> {
    weft::stop_source stops;
    std::vector<weft::fork<weft::result<void>>> calls;
    for (unsigned i = 0; i != all; ++i)
      calls.push_back(inside.fork(
          [&]() -> task<weft::result<void>> { co_return co_await as_result(weft::with_stop(stops.token(), call)); }));
    EXPECT_TRUE(co_await comes_meanwhile([&] { return process_blocking_stats().busy == all; }));
    stops.request_stop();
    co_await then();
    for (auto& one : calls) static_cast<void>(co_await std::move(one));
  };
  co_await weft::with_scope(body);
}

TEST_F(hanging, an_open_that_is_stopped_is_left_to_its_thread_and_what_it_opens_is_closed) {
  for (const bool writes : {false, true}) {
    pipe_with_a_name pipe{in_.at(writes ? "in" : "out")};
    const std::size_t open = test::open_descriptors();
    std::atomic<unsigned> ended{0};
    const auto opens = [&]() -> task<> {
      const counts_at_end ends{ended};
      const weft::file_options how{.read = !writes, .write = writes};
      const file one = co_await file::open(how, pipe.path());
      ADD_FAILURE() << "it was opened";
    };
    runtime_.run(stop_when_busy(1, opens, [&]() -> task<> {
      EXPECT_TRUE(co_await comes_meanwhile([&] { return ended == 1; }));
      EXPECT_EQ(process_blocking_stats().abandoned, 1U);
      EXPECT_EQ(test::open_descriptors(), open);
      pipe.give_other_end();
    }));
    EXPECT_TRUE(comes([] { return process_blocking_stats().busy == 0; }));
    EXPECT_EQ(test::open_descriptors(), open + 1) << "the test's own";
  }
}

TEST_F(hanging, no_more_opens_are_left_than_a_pool_allows_and_others_go_on) {
  pipe_with_a_name pipe{in_.at("pipe")};
  const unsigned most = weft::blocking_options{}.max_abandoned;
  test::put(in_.at("a"), "all");
  std::atomic<unsigned> opened{0}, ended{0};
  const auto opens = [&]() -> task<> {
    const counts_at_end ends{ended};
    const file one = co_await file::open(pipe.path());
    ++opened;
  };
  runtime_.run(stop_when_busy(2 * most, opens, [&]() -> task<> {
    EXPECT_TRUE(co_await comes_meanwhile([&] { return ended == most; }));
    EXPECT_EQ(process_blocking_stats().abandoned, most);
    EXPECT_EQ(co_await weft::read_file(in_.at("a")), "all");
    pipe.give_other_end();
  }));
  EXPECT_EQ(ended, 2 * most);
  EXPECT_EQ(opened, most) << "the others have waited, and tell what was done";
  EXPECT_TRUE(comes([] { return process_blocking_stats().busy == 0; }));
}

// Holds a call of the system's until it is let go; at the latest in a minute.
class held {
 public:
  explicit held(file_call what) : injected_{{what, {test::meanwhile}}, 0, [this] { hold(); }} {}
  held(const held&) = delete;
  ~held() { let_go(); }
  bool has_begun() const { return begun_; }
  void let_go() {
    const std::lock_guard guard{lock_};
    goes_on_ = true;
    changed_.notify_all();
  }

 private:
  void hold() {
    begun_ = true;
    std::unique_lock guard{lock_};
    changed_.wait_for(guard, 60s, [this] { return goes_on_; });
  }
  std::mutex lock_;
  std::condition_variable changed_;
  bool goes_on_ = false;
  std::atomic<bool> begun_{false};
  file_injection injected_;
};

// Has `call` stopped while its thread is held. Whether the stop has ended it before that went on.
template <class Call>
task<bool> is_left(file_call what, Call call) {
  held one{what};
  bool was_left = false;
  const auto body = [&](weft::scope& inside) -> task<> {
    auto going = inside.fork(as_result(call()));
    EXPECT_TRUE(co_await comes_meanwhile([&] { return one.has_begun(); }));
    going.request_stop();
    was_left = process_blocking_stats().abandoned == 1;
    one.let_go();
    const auto how = co_await std::move(going);
    EXPECT_EQ(how.is_stopped(), was_left);
  };
  co_await weft::with_scope(body);
  EXPECT_TRUE(co_await comes_meanwhile([] { return process_blocking_stats().busy == 0; }));
  co_return was_left;
}

TEST_F(hanging, a_question_that_is_stopped_is_left_to_its_thread) {
  test::put(in_.at("a"), "all");
  runtime_.run([&]() -> task<> {
    const std::string path = in_.at("a");
    EXPECT_TRUE(co_await is_left(file_call::statx, [&] { return weft::fs::status(path); }));
    EXPECT_TRUE(co_await is_left(file_call::statx, [&] { return weft::fs::symlink_status(path); }));
    EXPECT_TRUE(co_await is_left(file_call::statx, [&] { return weft::fs::exists(path); }));
    EXPECT_TRUE(co_await is_left(file_call::openat, [&] { return file::open(path); }));
  }());
}

// Else it would change something when whoever was stopped has gone on, and perhaps done the same anew.
TEST_F(hanging, a_call_that_changes_something_ends_before_its_stop_does) {
  test::put(in_.at("old"), "all");
  runtime_.run([&]() -> task<> {
    const std::string made = in_.at("made"), old = in_.at("old");
    const auto makes = [&] { return file::open({.write = true, .create = true}, made); };
    const auto empties = [&] { return file::open({.write = true, .truncate = true}, old); };
    const auto renames = [&] { return weft::fs::rename(made, in_.at("renamed")); };
    EXPECT_FALSE(co_await is_left(file_call::openat, makes));
    EXPECT_TRUE(std::filesystem::exists(made));
    EXPECT_FALSE(co_await is_left(file_call::openat, empties));
    EXPECT_EQ(test::text_in(old), "");
    EXPECT_FALSE(co_await is_left(file_call::rename, renames));
    EXPECT_TRUE(std::filesystem::exists(in_.at("renamed")));
  }());
}

}  // namespace
