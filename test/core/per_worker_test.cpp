// Memory that one thread may use, for many.
#include <weft/combine.hpp>
#include <weft/executor.hpp>
#include <weft/scope.hpp>
#include <weft/with.hpp>

#include <array>
#include <atomic>
#include <cstring>
#include <memory_resource>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "support/weft_test.hpp"

namespace {

using weft::per_worker;
using weft::scope;
using weft::sync_wait;
using weft::task;
using weft::with_scope;

TEST(per_worker, blocks_are_used_again_and_all_goes_back) {
  test::counting_resource upstream;
  {
    per_worker memory{&upstream};
    std::pmr::memory_resource* const resource = memory;
    std::vector<std::pair<void*, std::size_t>> taken;
    for (int round = 0; round != 100; ++round) {
      for (std::size_t size = 1; size < 2000; size += 37) {
        void* const one = resource->allocate(size, 16);
        std::memset(one, round, size);
        taken.emplace_back(one, size);
      }
      for (const auto& [one, size] : taken) resource->deallocate(one, size, 16);
      taken.clear();
    }
    const std::size_t before = upstream.live_bytes;
    void* const aligned = resource->allocate(64, 256);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(aligned) % 256, 0U);
    resource->deallocate(aligned, 64, 256);
    EXPECT_EQ(upstream.live_bytes, before);
    EXPECT_LT(before, 200'000U);
  }
  EXPECT_EQ(upstream.live, 0U);
}

TEST(per_worker, a_resource_that_runs_dry) {
  test::counting_resource upstream;
  {
    per_worker memory{&upstream};
    std::pmr::memory_resource* const resource = memory;
    for (const std::size_t succeed : {0U, 1U}) {  // not even what this worker has, then no chunk
      upstream.fail_after = upstream.allocations + succeed;
      EXPECT_THROW(static_cast<void>(resource->allocate(100, 8)), std::bad_alloc);
    }
    upstream.fail_after = std::size_t(-1);
    void* const one = resource->allocate(100, 8);
    resource->deallocate(one, 100, 8);
  }
  EXPECT_EQ(upstream.live, 0U);
}

// One thread allocates, another one frees, and the second one's surplus comes back.
TEST(per_worker, what_another_thread_frees_is_not_lost) {
  test::counting_resource upstream;
  {
    per_worker memory{&upstream};
    std::pmr::memory_resource* const resource = memory;
    for (int round = 0; round != test::rounds(200); ++round) {
      std::vector<void*> made;
      for (int i = 0; i != 500; ++i) made.push_back(resource->allocate(100, 8));
      std::jthread{[&] {
        for (void* one : made) resource->deallocate(one, 100, 8);
      }}.join();
    }
    EXPECT_LT(upstream.live_bytes, 1'000'000U);
  }
  EXPECT_EQ(upstream.live, 0U);
}

task<int> deep(int depth) {
  if (depth == 0) co_return 0;
  co_return 1 + co_await deep(depth - 1);
}

// The resource itself is for one thread, and nobody said that it is shared.
TEST(per_worker, frames_of_several_threads_come_from_a_resource_for_one) {
  for (int round = 0; round != test::rounds(50); ++round) {
    test::counting_resource upstream;
    {
      weft::new_thread_executor threads;
      per_worker memory{&upstream};
      auto body = [&](scope& s) -> task<int> {
        std::vector<weft::fork<int>> all;
        for (int i = 0; i != 6; ++i) all.push_back(s.fork_on(threads, deep, 50));
        int sum = 0;
        for (auto& one : all) sum += co_await std::move(one);
        co_return sum;
      };
      EXPECT_EQ(sync_wait(with_scope({.memory = memory}, body)), 300);
      EXPECT_GT(upstream.allocations, 1U);
    }
    EXPECT_EQ(upstream.live, 0U);
  }
}

WEFT_TEST("per_worker: with_memory takes it for shared, too") {
  test::counting_resource upstream;
  {
    weft::new_thread_executor threads;
    per_worker memory{&upstream};
    auto hops = [&]() -> task<int> {
      EXPECT_TRUE(weft::current_env().memory_is_shared);
      co_await weft::resume_on(threads);
      co_return co_await deep(20);
    };
    EXPECT_EQ(co_await weft::with_memory(memory, hops), 20);
  }
  EXPECT_EQ(upstream.live, 0U);
}

TEST(per_worker, more_workers_than_it_has_caches_for) {
  test::counting_resource upstream;
  {
    per_worker memory{&upstream};
    std::pmr::memory_resource* const resource = memory;
    std::atomic<int> there{0};
    std::vector<std::jthread> threads;
    constexpr int count = 210;
    for (int i = 0; i != count; ++i)
      threads.emplace_back([&] {
        std::array<void*, 100> taken{};
        for (void*& one : taken) one = resource->allocate(48, 16);
        ++there;
        while (there != count) std::this_thread::yield();
        for (void* one : taken) resource->deallocate(one, 48, 16);
      });
  }
  EXPECT_EQ(upstream.live, 0U);
}

}  // namespace
