// Rings that are too small for all that comes: completions find no room, so the kernel ends polls, and submissions fill their
// queue. See src/io/uring.hpp.
#include "support/weft_test.hpp"

#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>
#include <weft/combine.hpp>
#include <weft/net.hpp>
#include <weft/scope.hpp>
#include <weft/timed.hpp>

#include "io/small_runtime.hpp"

namespace {

using namespace std::chrono_literals;
using test::small_runtime;
using weft::scope;
using weft::task;
using weft::net::stream;

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

TEST(uring, thousands_of_silent_reads_time_out_together_on_a_ring_with_room_for_one) {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
  const std::size_t most = std::min<std::size_t>(3000, (limit.rlim_cur - 100) / 2);
  small_runtime rt{2, {.submissions = 1, .completions = 2}};
  if (rt.is_refused()) GTEST_SKIP() << "no io_uring here";
  for (const std::size_t count : {most, most / 10, most / 10}) {
    const auto body = [count]() -> task<> {
      std::vector<connection> those;
      for (std::size_t i = 0; i != count; ++i) those.push_back(connected());
      std::vector<task<std::string>> reads;
      for (const connection& one : those) reads.push_back(read_some(one.here));
      EXPECT_EQ((co_await weft::as_result(weft::timeout(2ms, weft::when_all(std::move(reads))))).error(),
                weft::errc::timed_out);
      for (const connection& one : those) EXPECT_EQ(::send(one.there, "late", 4, MSG_NOSIGNAL), 4);
      for (const connection& one : those) {
        EXPECT_EQ(co_await read_some(one.here), "late");
        ::close(one.there);
      }
    };
    rt.run(body());
  }
  EXPECT_EQ(rt.stats().watched, 0u);
}

// A read ends before an urgent byte. Each change is told of alone, and none says that it was an urgent one; nobody reads between.
void is_read_to_its_end(bool by_tcp) {
  small_runtime rt{1, {}};
  if (rt.is_refused()) GTEST_SKIP() << "no io_uring here";
  const auto body = [by_tcp]() -> task<> {
    stream here, there;
    if (by_tcp) {
      const auto at = co_await weft::net::listen(weft::net::endpoint{"127.0.0.1", 0});
      there = co_await weft::net::connect(at.local());
      here = co_await at.accept();
    } else {
      connection both = connected();
      here = std::move(both.here);
      there = stream::adopt(both.there);
    }
    const auto sends = [&](std::string_view text, int flags) -> task<bool> {
      const bool is_sent = ::send(there.native_handle(), text.data(), text.size(), flags | MSG_NOSIGNAL) > 0;
      co_await weft::sleep_for(2ms);  // the worker sleeps in its ring
      co_return is_sent;
    };
    EXPECT_FALSE((co_await weft::as_result(weft::timeout(1ms, read_some(here)))).has_value());  // it is armed
    for (int i = 0; i != 3; ++i) {
      EXPECT_TRUE(co_await sends("abc", 0));
      if (!co_await sends("!", MSG_OOB)) co_return;  // this system's Unix sockets have none
      EXPECT_TRUE(co_await sends("defg", 0));
      std::string text;
      while (text.size() != 7) text += co_await weft::timeout(30s, read_some(here));
      EXPECT_EQ(text, "abcdefg");
    }
  };
  rt.run(body());
}
TEST(uring, what_is_behind_an_urgent_byte_is_read_from_a_unix_socket) { is_read_to_its_end(false); }
TEST(uring, what_is_behind_an_urgent_byte_is_read_by_tcp) { is_read_to_its_end(true); }

}  // namespace
