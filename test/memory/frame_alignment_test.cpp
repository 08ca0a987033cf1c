// Objects of a coroutine that are aligned to more than 16, wherever its frame comes from: parameters, variables, captures,
// temporaries that live over an await, and results.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <memory_resource>
#include <utility>
#include <vector>
#include <weft/async_generator.hpp>
#include <weft/combine.hpp>
#include <weft/generator.hpp>
#include <weft/scope.hpp>
#include <weft/sync.hpp>
#include <weft/task.hpp>
#include <weft/with.hpp>

#include "support/weft_test.hpp"

namespace {

using weft::task;

#if defined(__clang__)
constexpr std::size_t most = 256;  // as much as there is to try: clang says what a frame needs
#else
constexpr std::size_t most = 64;
#endif

template <std::size_t A>
struct alignas(A) aligned {
  unsigned char bytes[A]{};
};

template <std::size_t A>
[[gnu::noinline]] bool is_aligned(const aligned<A>& one) {
  const void* at = &one;
  asm volatile("" : "+r"(at) : : "memory");  // so that no compiler knows the answer by the type
  return reinterpret_cast<std::uintptr_t>(at) % A == 0;
}

// Waits twice, so that what it has lies in its frame.
template <std::size_t A>
task<int> misplaced(std::allocator_arg_t, std::pmr::memory_resource*, aligned<A> parameter, weft::event& go) {
  aligned<A> first;
  char odd[A / 2 + 9];
  asm volatile("" : : "r"(odd) : "memory");
  int wrong = !is_aligned(parameter) + !is_aligned(first);
  co_await go.wait();
  wrong += !is_aligned(parameter) + !is_aligned(first);
  {
    aligned<A> second;
    wrong += !is_aligned(second);
    co_await go.wait();
    wrong += !is_aligned(second);
  }
  asm volatile("" : : "r"(odd) : "memory");
  co_return wrong;
}
// The same from where the work that runs has its memory.
template <std::size_t A>
task<int> misplaced(aligned<A> parameter, weft::event& go) {
  aligned<A> first;
  int wrong = !is_aligned(parameter) + !is_aligned(first);
  co_await go.wait();
  co_return wrong + !is_aligned(parameter) + !is_aligned(first);
}
// A frame of about that size between others, so that those lie at many places.
template <std::size_t N>
task<> other(weft::event& go) {
  char room[N];
  asm volatile("" : : "r"(room) : "memory");
  co_await go.wait();
  asm volatile("" : : "r"(room) : "memory");
}

template <std::size_t A>
task<int> many(weft::event& go) {
  int wrong = 0;
  auto body = [&](weft::scope& s) -> task<> {
    std::vector<weft::fork<int>> all;
    for (int i = 0; i != 5; ++i) {
      s.fork(other<8>(go));
      all.push_back(s.fork(misplaced(aligned<A>{}, go)));
      s.fork(other<56>(go));
      all.push_back(s.fork([&go, captured = aligned<A>{}]() -> task<int> {
        const int before = !is_aligned(captured);
        co_await go.wait();
        co_return before + !is_aligned(captured);
      }));
      s.fork(other<100>(go));
      all.push_back(s.fork(misplaced(aligned<A>{}, go)));
    }
    go.set();
    for (auto& one : all) wrong += co_await std::move(one);
  };
  co_await weft::with_scope(body);
  co_return wrong;
}

template <std::size_t A>
void each_place() {
  if constexpr (A <= most) {
    {
      weft::event go;
      EXPECT_EQ(weft::sync_wait(many<A>(go)), 0) << "the worker's heap, " << A;
    }
    std::pmr::monotonic_buffer_resource monotonic;
    std::pmr::unsynchronized_pool_resource blocks;
    const std::pair<std::pmr::memory_resource*, const char*> resources[]{
        {std::pmr::new_delete_resource(), "new"}, {&monotonic, "monotonic"}, {&blocks, "pool"}};
    for (const auto& [memory, name] : resources) {
      weft::event go;
      go.set();
      for (int i = 0; i != 5; ++i) {
        void* const odd = memory->allocate(24, 8);
        auto one = misplaced(std::allocator_arg, memory, aligned<A>{}, go);
        EXPECT_EQ(weft::sync_wait(std::move(one)), 0) << name << ", " << A;
        memory->deallocate(odd, 24, 8);
      }
      weft::event then;
      auto below = [&]() -> task<int> { return many<A>(then); };
      EXPECT_EQ(weft::sync_wait(weft::with_memory(memory, below)), 0) << "below " << name << ", " << A;
    }
  }
}

TEST(frame_alignment, of_32) { each_place<32>(); }
TEST(frame_alignment, of_64) { each_place<64>(); }
TEST(frame_alignment, of_128) { each_place<128>(); }
TEST(frame_alignment, of_256) { each_place<256>(); }

weft::generator<int> numbers(aligned<64> parameter) {
  aligned<64> mine;
  for (int i = 0; i != 3; ++i) co_yield !is_aligned(parameter) + !is_aligned(mine);
}
weft::async_generator<int> numbers_later(aligned<64> parameter) {
  aligned<64> mine;
  for (int i = 0; i != 3; ++i) co_yield !is_aligned(parameter) + !is_aligned(mine);
}

TEST(frame_alignment, of_generators) {
  for (int i = 0; i != 3; ++i) {
    for (const int wrong : numbers({})) EXPECT_EQ(wrong, 0);
    auto all = []() -> task<int> {
      int wrong = 0;
      auto some = numbers_later({});
      while (auto* one = co_await some.next()) wrong += *one;
      co_return wrong;
    };
    EXPECT_EQ(weft::sync_wait(all()), 0);
  }
}

task<aligned<64>> give() {
  aligned<64> one;
  co_await weft::yield();
  EXPECT_TRUE(is_aligned(one));
  co_return one;
}

TEST(frame_alignment, of_results) {
  auto all = []() -> task<> {
    auto kept = give();
    auto one = co_await std::move(kept);
    EXPECT_TRUE(is_aligned(one));
    auto [a, b] = co_await weft::when_all(give(), give());
    EXPECT_TRUE(is_aligned(a) && is_aligned(b));
    std::vector<task<aligned<64>>> some;
    for (int i = 0; i != 3; ++i) some.push_back(give());
    for (const auto& each : co_await weft::when_all(std::move(some))) EXPECT_TRUE(is_aligned(each));
  };
  weft::sync_wait(all());
}

}  // namespace
