// Rings that are too small for all that comes: completions find no room, so the kernel ends polls, and submissions fill their
// queue. See src/io/uring.hpp.
#include "support/weft_test.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <string>
#include <thread>
#include <vector>
#include <weft/combine.hpp>
#include <weft/net.hpp>
#include <weft/scope.hpp>

#include "io/uring.hpp"
#include "pool/pool_core.hpp"

namespace {

using namespace std::chrono_literals;
using weft::scope;
using weft::task;
using weft::net::stream;

// What a runtime is, with rings of this size.
class small_runtime {
 public:
  explicit small_runtime(unsigned threads, weft::detail::ring_size size) : rings_{threads, size} {
    refused_ = rings_.make_rings();
    if (refused_ != 0) return;
    core_ = weft::detail::pool_core::make({.threads = threads},
                                          {.of = [](unsigned worker, void* its) -> weft::detail::parker& {
                                             return static_cast<small_runtime*>(its)->rings_.worker(worker);
                                           },
                                           .with = this,
                                           .io = &rings_});
    rings_.begin(*core_);
  }
  small_runtime(const small_runtime&) = delete;
  ~small_runtime() {
    if (core_ == nullptr) return;
    core_->shut_down(weft::pool_shutdown::drain);
    rings_.end();
    core_->release();
  }

  bool is_refused() const { return refused_ != 0; }
  void run(task<> body) { weft::sync_wait(weft::start_on(*core_, std::move(body))); }
  weft::io_stats stats() const { return rings_.stats(); }

 private:
  weft::detail::uring rings_;
  int refused_ = 0;
  weft::detail::pool_core* core_ = nullptr;
};

struct connection {
  stream here;
  int there = -1;
};
connection connected() {
  int both[2];
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, both), 0);
  return {stream::adopt(both[0]), both[1]};
}

task<std::string> read_some(const stream& from) {
  std::array<std::byte, 64> buffer;
  const std::size_t size = co_await from.read(buffer);
  co_return std::string{reinterpret_cast<const char*>(buffer.data()), size};
}

// Each waits again and again, and meanwhile all get something at once.
task<> rounds_of(std::size_t count, int rounds) {
  std::vector<connection> those;
  for (std::size_t i = 0; i != count; ++i) those.push_back(connected());
  for (int round = 0; round != rounds; ++round) {
    std::size_t right = 0;
    std::atomic<bool> goes{false};
    std::jthread peer{[&] {
      while (!goes) std::this_thread::yield();
      for (const connection& one : those) EXPECT_EQ(::send(one.there, "now", 3, MSG_NOSIGNAL), 3);
    }};
    std::vector<task<std::string>> reads;
    for (const connection& one : those) reads.push_back(read_some(one.here));
    std::vector<std::string> texts;
    const auto body = [&](scope& inside) -> task<> {
      inside.fork([](std::atomic<bool>& now, std::jthread& until) -> task<> {
        co_await weft::sleep_for(2ms);  // all wait
        now = true;
        until.join();  // blocks this worker meanwhile
      }(goes, peer));
      texts = co_await weft::when_all(std::move(reads));
    };
    co_await weft::with_scope(body);
    for (const std::string& text : texts) right += text == "now" ? 1 : 0;
    EXPECT_EQ(right, count);
  }
  for (const connection& one : those) ::close(one.there);
}

TEST(uring, completions_that_find_no_room_are_lost_by_nobody) {
  for (const unsigned threads : {1u, 2u}) {
    small_runtime rt{threads, {.submissions = 1, .completions = 2}};
    if (rt.is_refused()) GTEST_SKIP() << "no io_uring here";
    rt.run(rounds_of(300, test::rounds(20)));
    EXPECT_EQ(rt.stats().watched, 0u);
    EXPECT_GE(rt.stats().changes, 300u);
  }
}

TEST(uring, thousands_of_descriptors_are_cancelled_by_a_ring_with_room_for_one) {
  small_runtime rt{2, {.submissions = 1, .completions = 2}};
  if (rt.is_refused()) GTEST_SKIP() << "no io_uring here";
  const auto body = []() -> task<> {
    for (int round = 0; round != 3; ++round) {
      std::vector<connection> those;
      for (std::size_t i = 0; i != 500; ++i) those.push_back(connected());
      std::vector<task<std::string>> reads;
      for (const connection& one : those) reads.push_back(read_some(one.here));
      EXPECT_EQ((co_await weft::as_result(weft::timeout(2ms, weft::when_all(std::move(reads))))).error(),
                weft::errc::timed_out);
      for (const connection& one : those) ::close(one.there);
    }
  };
  rt.run(body());
  EXPECT_EQ(rt.stats().watched, 0u);
}

}  // namespace
