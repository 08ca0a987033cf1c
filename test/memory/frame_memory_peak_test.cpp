// How much frame memory stays after a peak, whatever its shape: 32 MiB in the lists of each worker that had it, and 32 MiB
// of warm slabs. Time is given to what ages the memory, so nothing here sleeps.
#include <weft/detail/memory/frame_memory.hpp>

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <latch>
#include <new>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>
#include <weft/frame_memory.hpp>

#include "support/weft_test.hpp"

#if !defined(WEFT_TEST_ASAN)  // where frames come from malloc

namespace {

using weft::frame_memory_now;
using weft::trim_frame_memory;
using weft::detail::allocate_frame;
using weft::detail::free_frame;

constexpr std::size_t mib = std::size_t{1} << 20, slab = std::size_t{256} << 10;

struct block {
  void* at;
  std::size_t size;
};
using blocks = std::vector<block>;

block take(std::size_t size) { return {allocate_frame(size), size}; }
void give(const blocks& all) {
  for (const block& one : all) free_frame(one.at, one.size);
}
blocks make(std::size_t bytes, std::size_t size) {
  blocks all;
  all.reserve(bytes / size);
  while (all.size() != bytes / size) all.push_back(take(size));
  return all;
}

// What a thread does that sleeps in weft for some seconds.
void sleep_in_weft() {
  static long now = 0;  // of all threads, one after the other
  const auto real = std::chrono::steady_clock::now().time_since_epoch();
  now = std::max(now, static_cast<long>(std::chrono::ceil<std::chrono::milliseconds>(real).count()));
  for (int i = 0; i != 8; ++i) weft::detail::age_frame_memory(now += 2000);
}

enum class order { oldest_first, newest_first, random, one_of_each_slab_last };
constexpr order orders[]{order::oldest_first, order::newest_first, order::random, order::one_of_each_slab_last};

void arrange(blocks& all, order by) {
  if (by == order::newest_first) std::ranges::reverse(all);
  if (by == order::random) std::ranges::shuffle(all, std::minstd_rand{1});
  if (by == order::one_of_each_slab_last)
    std::ranges::partition(all, [](const block& one) {
      return reinterpret_cast<std::uintptr_t>(one.at) % slab >= 64 + one.size;  // it is not the first one there
    });
}

// Each tenth of `all`, which keeps the rest.
blocks tenth_of(blocks& all) {
  blocks tenth, rest;
  for (std::size_t i = 0; i != all.size(); ++i) (i % 10 == 3 ? tenth : rest).push_back(all[i]);
  all = std::move(rest);
  return tenth;
}

void expect_few(std::size_t before, const std::string& when) {
  EXPECT_LE(frame_memory_now().cached, 32 * mib) << when;
  EXPECT_LE(frame_memory_now().slabs, before + 68 * mib) << when;
}

class a_peak : public testing::Test {
 protected:
  // Runs `body(before, size, order, text)` for each size of frame and each order in which they end.
  template <class Body>
  static void of_each_shape(Body body) {
    for (const std::size_t size : sizes())
      for (const order by : orders) {
        std::thread{[=] {  // a heap of its own
          trim_frame_memory();
          body(frame_memory_now().slabs, size, by,
               std::to_string(size) + " bytes, order " + std::to_string(static_cast<int>(by)));
        }}
            .join();
        trim_frame_memory();
      }
  }
  static std::vector<std::size_t> sizes() {
    if (test::rounds(10) != 10) return {3'000};
    return {400, 3'000, 20'000};
  }
};

TEST_F(a_peak, of_one_thread) {
  of_each_shape([](std::size_t before, std::size_t size, order by, const std::string& shape) {
    blocks all = make(160 * mib, size);
    arrange(all, by);
    give(all);
    sleep_in_weft();
    expect_few(before, shape);
  });
}

// While some of its frames are alive its slabs stay; then they go as well, however few bytes those were.
TEST_F(a_peak, that_ends_in_two_halves) {
  of_each_shape([](std::size_t before, std::size_t size, order by, const std::string& shape) {
    blocks all = make(160 * mib, size);
    arrange(all, by);
    const auto middle = all.end() - static_cast<std::ptrdiff_t>(all.size() / 20);
    give({all.begin(), middle});
    sleep_in_weft();
    give({middle, all.end()});
    sleep_in_weft();
    expect_few(before, shape);
  });
}

TEST_F(a_peak, that_others_free) {
  of_each_shape([](std::size_t before, std::size_t size, order by, const std::string& shape) {
    blocks all = make(160 * mib, size);
    arrange(all, by);
    std::thread{[&] {
      give(all);
      sleep_in_weft();
      if (by != order::random) return;
      EXPECT_LE(frame_memory_now().slabs, before + 100 * mib)
          << "what waits is seen to by those that sent it, " << shape;
    }}.join();
    sleep_in_weft();
    expect_few(before, shape);
  });
}

// So no slab is whole either in the lists or in what waits.
TEST_F(a_peak, that_its_thread_and_others_free) {
  of_each_shape([](std::size_t before, std::size_t size, order by, const std::string& shape) {
    blocks all = make(160 * mib, size);
    give(tenth_of(all));
    sleep_in_weft();
    arrange(all, by);
    std::thread{[&] {
      give(all);
      sleep_in_weft();
    }}.join();
    EXPECT_TRUE(weft::detail::age_frame_memory(0)) << "with so many slabs it looks again, " << shape;
    sleep_in_weft();
    expect_few(before, shape);
  });
}

TEST_F(a_peak, of_a_thread_that_has_ended) {
  of_each_shape([](std::size_t before, std::size_t size, order by, const std::string& shape) {
    blocks all;
    std::thread{[&] {
      all = make(160 * mib, size);
      give(tenth_of(all));
    }}.join();
    arrange(all, by);
    give(all);
    sleep_in_weft();
    expect_few(before, shape);
  });
}

TEST_F(a_peak, that_a_thread_frees_which_ends) {
  of_each_shape([](std::size_t before, std::size_t size, order by, const std::string& shape) {
    blocks all;
    std::latch begun{1}, made{1};
    std::thread frees{[&] {
      give({take(size)});  // so its heap is another one than that of the thread that ends
      begun.count_down();
      made.wait();
      give(all);
    }};
    begun.wait();
    std::thread{[&] {
      all = make(160 * mib, size);
      give(tenth_of(all));
    }}.join();
    arrange(all, by);
    made.count_down();
    frees.join();
    sleep_in_weft();
    expect_few(before, shape);
  });
}

TEST_F(a_peak, of_many_sizes) {
  std::thread{[] {
    trim_frame_memory();
    const std::size_t before = frame_memory_now().slabs;
    std::minstd_rand random{1};
    for (const order by : orders) {
      blocks all;
      for (std::size_t bytes = 0; bytes < 160 * mib; bytes += all.back().size)
        all.push_back(take(32 + random() % (random() % 20 == 0 ? 60'000 : 2'000)));
      arrange(all, by);
      give(all);
      sleep_in_weft();
      expect_few(before, "order " + std::to_string(static_cast<int>(by)));
    }
  }}.join();
}

// ---- where there is no more -------------------------------------------------------------------------------------------

#if !defined(WEFT_TEST_TSAN)  // which needs all addresses

// How many bytes there are in frames of that size.
std::size_t fill(blocks& all, std::size_t size) {
  try {
    for (;;) all.push_back(take(size));
  } catch (const std::bad_alloc&) {
  }
  return all.size() * size;
}

enum class frees { its_own_thread, another_thread };

// In a process of its own, with 200 MiB more than it has: fills them, frees all, and fills them with frames of another
// size, which have as much room.
void expect_as_much_room_again(frees by, std::size_t size) {
  std::FILE* const file = std::fopen("/proc/self/statm", "r");
  long pages = 0;
  if (file == nullptr || std::fscanf(file, "%ld", &pages) != 1) std::_Exit(2);
  blocks peak, then;
  peak.reserve(1'000'000);
  then.reserve(1'000'000);
  std::size_t before = 0, after = 0;
  std::latch made{1};
  const auto rest = [&] {
    made.wait();
    arrange(peak, by == frees::its_own_thread ? order::one_of_each_slab_last : order::random);
    give(peak);
    after = fill(then, size);
  };
  std::thread other;
  if (by == frees::another_thread) other = std::thread{rest};
  const auto most = static_cast<rlim_t>(pages) * 4096 + 300 * mib;
  const rlimit limit{most, most};
  ::setrlimit(RLIMIT_AS, &limit);
  before = fill(peak, 3'000);
  made.count_down();
  if (other.joinable())
    other.join();
  else
    rest();
  if (before > 100 * mib && after > before / 10 * 9) std::_Exit(0);
  std::fprintf(stderr, "%zu KiB before, %zu KiB after\n", before / 1024, after / 1024);
  std::_Exit(1);
}

class without_memory : public testing::TestWithParam<std::size_t> {
 protected:
  without_memory() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

TEST_P(without_memory, frames_of_another_size_get_what_is_cached) {
  EXPECT_EXIT(expect_as_much_room_again(frees::its_own_thread, GetParam()), testing::ExitedWithCode(0), "");
}
TEST_P(without_memory, frames_of_another_size_get_what_waits_for_another_thread) {
  EXPECT_EXIT(expect_as_much_room_again(frees::another_thread, GetParam()), testing::ExitedWithCode(0), "");
}
INSTANTIATE_TEST_SUITE_P(sizes, without_memory, testing::Values(1'000u, 10'000u, 100'000u));
#endif

}  // namespace
#endif
