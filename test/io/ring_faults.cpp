// Rings whose calls fail: what is submitted late, polls that end, completions in another order; and systems that lack what weft
// needs of a ring, which each is told of, and then waits by epoll. See src/io/uring.hpp.
#include "support/weft_test.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <ostream>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>
#include <weft/combine.hpp>
#include <weft/file.hpp>
#include <weft/net.hpp>
#include <weft/pool.hpp>
#include <weft/runtime.hpp>
#include <weft/timed.hpp>

#include "io/small_runtime.hpp"
#include "support/ring_calls.hpp"

namespace {

using namespace std::chrono_literals;
using test::lacks;
using test::ring_fault;
using test::ring_injection;
using test::ring_lack;
using test::small_runtime;
using weft::task;
using weft::net::readiness;
using weft::net::stream;

struct two_ends {
  stream here, there;
};
two_ends made_ends() {
  int both[2];
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, both), 0);
  return {stream::adopt(both[0]), stream::adopt(both[1])};
}

task<std::string> some_of(const stream& from) {
  std::array<std::byte, 64> buffer;
  const std::size_t size = co_await from.read(buffer);
  co_return std::string{reinterpret_cast<const char*>(buffer.data()), size};
}

// Waits in both directions, one that is stopped, the end, and a descriptor that is used again.
task<> talk() {
  for (int i = 0; i != 2; ++i) {
    two_ends both = made_ends();
    const auto answers = [](const stream& end) -> task<> {
      for (;;) {
        const std::string got = co_await some_of(end);
        if (got.empty()) break;
        co_await end.write(got);
      }
      end.shutdown();
    };
    const auto asks = [](const stream& end) -> task<> {
      for (const std::string_view question : {"one", "two", "three"}) {
        co_await end.write(question);
        EXPECT_EQ(co_await some_of(end), question);
      }
      EXPECT_EQ((co_await weft::as_result(weft::timeout(50us, some_of(end)))).error(), weft::errc::timed_out);
      end.shutdown();
      EXPECT_EQ(co_await some_of(end), "");
    };
    co_await weft::when_all(asks(both.here), answers(both.there));
  }
}

// A pair without room, of which somebody waits for either readiness: each of its two polls may end.
task<> wait_for_room() {
  int both[2];
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, both), 0);
  std::array<char, 4096> block{};
  while (::send(both[0], block.data(), block.size(), MSG_NOSIGNAL) > 0) continue;
  const auto waits = [](int number) -> task<> {
    EXPECT_EQ(co_await weft::net::ready(number, readiness::either), readiness::writable);
  };
  const auto drains = [](int number) -> task<> {
    std::array<char, 4096> into;
    co_await weft::sleep_for(200us);
    while (::recv(number, into.data(), into.size(), 0) > 0) continue;
  };
  co_await weft::when_all(waits(both[0]), drains(both[1]));
  for (const int number : both) ::close(number);
}

// A hang is one after a minute.
task<> in_time(task<> body) { co_await weft::timeout(1min, std::move(body)); }

class faulty_ring : public testing::TestWithParam<ring_fault> {
 protected:
  // At each call in turn, until there is none that late; then at many.
  void sweep(small_runtime& rt, task<> (*body)()) {
    if (rt.is_refused()) GTEST_SKIP() << "no io_uring here";
    std::size_t all = 0;
    for (std::size_t before = 0, in_vain = 0; before != 60 && in_vain != 8; ++before) {
      const testing::ScopedTrace trace{__FILE__, __LINE__, "behind " + std::to_string(before) + " calls"};
      const ring_injection one{GetParam(), before};
      rt.run(in_time(body()));
      in_vain = one.struck() != 0 ? 0 : in_vain + 1;
      all += one.struck();
      if (HasFailure()) return;
    }
    for (const std::size_t every : {2U, 3U}) {
      const ring_injection one{GetParam(), 0, 1'000'000, every};
      for (int i = 0; i != 3; ++i) rt.run(in_time(body()));
      all += one.struck();
    }
    if (GetParam() != ring_fault::reversed) {
      EXPECT_GT(all, 0U);  // which needs two completions at once, that may not come here
    }
  }
};
std::string name_of_fault(const testing::TestParamInfo<ring_fault>& one) {
  constexpr const char* names[] = {"none",        "refused",  "late",         "oldest_ends",
                                   "newest_ends", "reversed", "loses_oldest", "loses_newest"};
  return names[static_cast<std::size_t>(one.param)];
}
INSTANTIATE_TEST_SUITE_P(by, faulty_ring,
                         testing::Values(ring_fault::refused, ring_fault::late, ring_fault::oldest_ends,
                                         ring_fault::newest_ends, ring_fault::reversed, ring_fault::loses_oldest,
                                         ring_fault::loses_newest),
                         name_of_fault);

TEST_P(faulty_ring, loses_nothing_that_is_sent) {
  for (const unsigned threads : {1U, 2U}) {
    small_runtime rt{threads, {.submissions = 8, .completions = 16}};
    sweep(rt, talk);
    EXPECT_EQ(rt.stats().watched, 0U);
  }
}

TEST_P(faulty_ring, tells_of_either_readiness) {
  small_runtime rt{1, {.submissions = 8, .completions = 16}};
  sweep(rt, wait_for_room);
  EXPECT_EQ(rt.stats().watched, 0U);
}

// Many wait, and all are told of at once.
TEST(ring, tells_of_many_in_any_order) {
  small_runtime rt{1, {.submissions = 8, .completions = 256}};
  if (rt.is_refused()) GTEST_SKIP() << "no io_uring here";
  const ring_injection one{ring_fault::reversed, 0, 1'000'000};
  const auto body = []() -> task<> {
    std::vector<two_ends> those;
    for (int i = 0; i != 40; ++i) those.push_back(made_ends());
    for (int round = 0; round != 3; ++round) {
      std::vector<task<std::string>> reads;
      for (const two_ends& each : those) reads.push_back(some_of(each.here));
      const auto sends = [&]() -> task<> {
        co_await weft::sleep_for(1ms);  // all wait
        for (std::size_t i = 0; i != those.size(); ++i)
          EXPECT_EQ(::send(those[i].there.native_handle(), &"0123456789"[i % 10], 1, MSG_NOSIGNAL), 1);
      };
      const auto [texts, none] = co_await weft::when_all(weft::when_all(std::move(reads)), sends());
      for (std::size_t i = 0; i != texts.size(); ++i)
        EXPECT_EQ(texts[i], std::string_view("0123456789").substr(i % 10, 1));
    }
  };
  rt.run(body());
  EXPECT_GT(one.struck(), 0U);
}

// Many more wait than there is room for completions, so each loss has hundreds of polls looked for and armed anew.
TEST(ring, that_loses_completions_has_all_armed_anew) {
  for (const unsigned threads : {1U, 2U}) {
    small_runtime rt{threads, {.submissions = 8, .completions = 16}};
    if (rt.is_refused()) GTEST_SKIP() << "no io_uring here";
    const ring_injection one{ring_fault::loses_newest, 0, 1'000'000, 3};
    const auto body = []() -> task<> {
      std::vector<two_ends> those;
      for (int i = 0; i != 300; ++i) those.push_back(made_ends());
      for (int round = 0; round != 3; ++round) {
        std::vector<task<std::string>> reads;
        for (const two_ends& each : those) reads.push_back(some_of(each.here));
        const auto sends = [&]() -> task<> {
          co_await weft::sleep_for(1ms);
          for (const two_ends& each : those) EXPECT_EQ(::send(each.there.native_handle(), "x", 1, MSG_NOSIGNAL), 1);
        };
        const auto [texts, none] = co_await weft::when_all(weft::when_all(std::move(reads)), sends());
        for (const std::string& text : texts) EXPECT_EQ(text, "x");
      }
    };
    rt.run(in_time(body()));
    EXPECT_GT(one.struck(), 0U);
    EXPECT_EQ(rt.stats().watched, 0U);
  }
}

// A call is done once more, or fails, as nobody knows what has become of it; and a number is closed.
TEST(ring, that_loses_completions_leaves_no_call_under_way) {
  small_runtime rt{1, {.submissions = 8, .completions = 16}};
  if (rt.is_refused()) GTEST_SKIP() << "no io_uring here";
  std::size_t all = 0;
  for (std::size_t before = 0; before != 12; ++before) {
    const ring_injection one{ring_fault::loses_calls, before, 1'000'000, 2};
    const auto body = []() -> task<> {
      const auto opens = []() -> task<> {
        for (int i = 0; i != 4; ++i) {
          auto opening = weft::file::open("/proc/self/status");
          auto opened = co_await weft::as_result(std::move(opening));
          if (!opened.has_value()) {
            EXPECT_EQ(opened.error(), std::errc::io_error);
            continue;
          }
          const weft::file one_file = std::move(opened).value();
          std::array<std::byte, 4> start;
          EXPECT_EQ(co_await one_file.read_at(0, start), 4U);
        }
      };
      co_await weft::when_all(opens(), opens(), opens());
    };
    rt.run(in_time(body()));
    all += one.struck();
    if (HasFailure()) return;
  }
  EXPECT_GT(all, 0U);
}

// Whatever time passes: the first look that begins behind the data finds it, and there is no second one.
TEST(ring, of_a_worker_that_computes_is_served_by_the_first_look_behind_the_data) {
  ::unsetenv("WEFT_IO");
  if (weft::runtime{{.threads = 1}}.backend() == weft::io_backend::epoll) GTEST_SKIP() << "no io_uring here";
  weft::runtime rt{{.threads = 2, .io = weft::io_backend::uring}};
  weft::executor& one_worker = rt.workers().worker(0);
  two_ends both;
  const auto arms = [&]() -> task<> {
    both = made_ends();
    EXPECT_EQ((co_await weft::as_result(weft::timeout(1ms, some_of(both.here)))).error(), weft::errc::timed_out);
  };
  const auto ends = [&]() -> task<> {
    both = {};
    co_return;
  };
  for (int i = 0; i != 3; ++i) {
    weft::sync_wait(weft::start_on(one_worker, arms()));  // in its ring
    std::atomic<bool> computes{false}, served{false};
    const auto computing = [&]() -> task<> {
      computes = true;
      while (!served) std::this_thread::yield();
      co_return;
    };
    std::jthread computer{[&] { weft::sync_wait(weft::start_on(one_worker, computing())); }};
    while (!computes) std::this_thread::yield();
    const int there = both.there.native_handle();
    test::looks made;
    const auto reads = [&]() -> task<> {
      EXPECT_EQ(co_await some_of(both.here), "data");
      EXPECT_GE(made.all(), 1U);
      EXPECT_LE(made.behind(), 1U);  // 0: it began in the moment before
      EXPECT_EQ(made.in_vain(), 0U);
      served = true;
    };
    std::jthread reader{[&] { weft::sync_wait(weft::start_on(rt, reads())); }};
    EXPECT_EQ(::send(there, "data", 4, MSG_NOSIGNAL), 4);
    made.begins_here();
    reader.join();
    computer.join();
    weft::sync_wait(weft::start_on(one_worker, ends()));
  }
}

// ---- what a system may lack -----------------------------------------------------------------------------------------------------

struct lack_and_reason {
  ring_lack lack;
  const char* name;
  const char* reason;
};
std::ostream& operator<<(std::ostream& to, const lack_and_reason& one) { return to << one.name; }

class lacking_system : public testing::TestWithParam<lack_and_reason> {
 protected:
  void SetUp() override {
    ::unsetenv("WEFT_IO");
    if (weft::runtime{{.threads = 1}}.backend() == weft::io_backend::epoll) GTEST_SKIP() << "no io_uring here anyway";
  }
};

TEST_P(lacking_system, is_told_of_and_waits_by_epoll) {
  const lacks these{GetParam().lack};
  for (int i = 0; i != 2; ++i) {  // started again at once
    weft::runtime rt{{.threads = 1}};
    EXPECT_EQ(rt.backend(), weft::io_backend::epoll);
    EXPECT_NE(rt.explain().find(std::string{"epoll, not by io_uring: "} + GetParam().reason), std::string::npos)
        << rt.explain();
    rt.run(talk());
  }
  EXPECT_THROW((weft::runtime{{.threads = 1, .io = weft::io_backend::uring}}), weft::error);
}

constexpr const char* lacks_a_part = "the kernel, or what emulates one, has no io_uring, or lacks a part of it";
INSTANTIATE_TEST_SUITE_P(
    of, lacking_system,
    testing::Values(lack_and_reason{ring_lack::forbidden, "permission", "the system forbids it"},
                    lack_and_reason{ring_lack::not_there, "io_uring", lacks_a_part},
                    lack_and_reason{ring_lack::unknown_flags, "flags", lacks_a_part},
                    lack_and_reason{ring_lack::no_memory, "memory", "the memory that this process may lock"},
                    lack_and_reason{ring_lack::no_numbers, "numbers", "the system refused a ring: "},
                    lack_and_reason{ring_lack::no_nodrop, "nodrop", lacks_a_part},
                    lack_and_reason{ring_lack::no_ext_arg, "ext_arg", lacks_a_part},
                    lack_and_reason{ring_lack::no_cqe_skip, "cqe_skip", lacks_a_part},
                    lack_and_reason{ring_lack::no_submit_stable, "submit_stable", lacks_a_part},
                    lack_and_reason{ring_lack::not_enabled, "enabling", lacks_a_part},
                    lack_and_reason{ring_lack::no_multishot, "multishot", lacks_a_part},
                    lack_and_reason{ring_lack::old_kernel, "age", "Linux 5.15 is older than 6.1"}),
    [](const testing::TestParamInfo<lack_and_reason>& one) { return std::string{one.param.name}; });

}  // namespace
