// Who watches sockets, and makes calls on files, in a run of the test kit.
#include <weft/test.hpp>

#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <thread>
#include <utility>
#include <weft/combine.hpp>
#include <weft/error.hpp>
#include <weft/file.hpp>
#include <weft/net.hpp>
#include <weft/runtime.hpp>
#include <weft/timed.hpp>

#include "file/directories.hpp"
#include "io/io_service.hpp"
#include "support/weft_test.hpp"

namespace {

using namespace std::chrono_literals;
using weft::io_backend;
using weft::task;
using weft::net::stream;

bool has_rings() {
  ::unsetenv("WEFT_IO");
  return weft::runtime{{.threads = 1}}.backend() == io_backend::uring;
}

// Sets WEFT_IO while it lives.
class environment_says {
 public:
  explicit environment_says(const char* name) { ::setenv("WEFT_IO", name, 1); }
  environment_says(const environment_says&) = delete;
  ~environment_says() { ::unsetenv("WEFT_IO"); }
};

stream adopted(int number) {
  try {
    return stream::adopt(number);
  } catch (...) {
    ::close(number);
    throw;
  }
}

// Two ends of a connection.
std::pair<stream, stream> connected() {
  int both[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, both) != 0) std::abort();
  stream here;
  try {
    here = adopted(both[0]);
  } catch (...) {
    ::close(both[1]);
    throw;
  }
  return {std::move(here), adopted(both[1])};
}

task<> passes_a_byte(const stream& from, const stream& to) {
  std::array<std::byte, 1> got{};
  co_await weft::when_all(to.read(got), from.write("x"));
  EXPECT_EQ(got[0], std::byte{'x'});
}

// Threads, of the kernel's or of a test, may be held up for long.
const weft::test::run_options by_ring{.io = io_backend::uring, .patience = 2min};

task<bool> has_a_ring() {
  auto [here, there] = connected();
  co_await passes_a_byte(here, there);
  co_return weft::detail::io_service_here().ring_here() != nullptr;
}

TEST(kit_io, a_run_has_the_back_end_that_it_asks_for) {
  if (!has_rings()) GTEST_SKIP() << "no rings here";
  EXPECT_FALSE(weft::test::run(has_a_ring));
  EXPECT_TRUE(weft::test::run(by_ring, has_a_ring));
  EXPECT_FALSE(weft::test::run({.io = io_backend::epoll}, has_a_ring));
  const environment_says uring{"uring"};
  EXPECT_TRUE(weft::test::run(has_a_ring));
  EXPECT_FALSE(weft::test::run({.io = io_backend::epoll}, has_a_ring));
}

TEST(kit_io, an_unknown_back_end_is_refused) {
  const environment_says nonsense{"kqueue"};
  EXPECT_THROW(weft::test::run(has_a_ring), weft::error);
}

TEST(kit_io, each_thread_has_a_ring_of_its_own) {
  if (!has_rings()) GTEST_SKIP() << "no rings here";
  for (int i = 0; i != 3; ++i) std::jthread{[] { EXPECT_TRUE(weft::test::run(by_ring, has_a_ring)); }};
}

TEST(kit_io, a_plain_thread_may_read_what_a_ring_watches) {
  if (!has_rings()) GTEST_SKIP() << "no rings here";
  weft::test::run(by_ring, []() -> task<> {
    auto [here, there] = connected();
    test::gate door;
    std::jthread reader{[&] {
      std::array<std::byte, 1> got{};
      EXPECT_EQ(weft::sync_wait(there.read(got)), 1U);
      door.open();
    }};
    co_await here.write("x");
    co_await door;
  });
}

// An open is made by a thread of the kernel's, so it has not ended when nothing else can run.
TEST(kit_io, a_call_that_a_ring_makes_takes_no_time_of_the_clock) {
  if (!has_rings()) GTEST_SKIP() << "no rings here";
  const test::own_directory in{test::places_for_files().back()};
  weft::test::run(by_ring, [&]() -> task<> {
    const weft::file_options to_make{.write = true, .create = true};
    for (int i = 0; i != 100; ++i) {
      auto opening = weft::timeout(1ms, weft::file::open(to_make, in.at("a")));
      const weft::file one = co_await std::move(opening);
      EXPECT_TRUE(one.is_open());
    }
    EXPECT_EQ(weft::test::elapsed(), 0ms);
  });
}

// Its connection is closed after a run, and the ring's last word on that must not come into the next one.
struct passes_and_writes {
  std::pair<stream, stream> ends = connected();
  task<> run() {
    static const test::own_directory in{test::places_for_files().back()};
    const weft::file_options to_make{.write = true, .create = true};
    const weft::file one = co_await weft::file::open(to_make, in.at("a"));
    co_await passes_a_byte(ends.first, ends.second);
    co_await one.sync();
  }
};

TEST(kit_io, sweeps_of_what_rings_do_are_repeatable) {
  if (!has_rings()) GTEST_SKIP() << "no rings here";
  constexpr weft::test::sweep_options swept{.io = io_backend::uring, .patience = 2min, .inline_completion = false};
  const auto first = weft::test::cancellation_sweep<passes_and_writes>(swept, "both");
  EXPECT_GE(first.awaits, 4U);
  for (int i = 0; i != 5; ++i) {
    const auto next = weft::test::cancellation_sweep<passes_and_writes>(swept, "both");
    EXPECT_EQ(next.awaits, first.awaits);
    EXPECT_EQ(next.runs, first.runs);
  }
  const std::size_t allocations = weft::test::allocation_sweep<passes_and_writes>(swept, "both");
  EXPECT_EQ(weft::test::allocation_sweep<passes_and_writes>(swept, "both"), allocations);
}

}  // namespace
