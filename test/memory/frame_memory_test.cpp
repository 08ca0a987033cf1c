#include <weft/detail/memory/frame_memory.hpp>

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <barrier>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <latch>
#include <memory>
#include <random>
#include <thread>
#include <utility>
#include <vector>
#include <weft/clock.hpp>
#include <weft/frame_memory.hpp>
#include <weft/pool.hpp>
#include <weft/scope.hpp>
#include <weft/sync.hpp>
#include <weft/with.hpp>

#include "support/weft_test.hpp"

namespace {

using weft::frame_memory_now;
using weft::trim_frame_memory;
using weft::detail::allocate_frame;
using weft::detail::free_frame;

struct block {
  void* at;
  std::size_t size;
};
block take(std::size_t size) { return {allocate_frame(size), size}; }
void give(block one) { free_frame(one.at, one.size); }

constexpr std::size_t slab = std::size_t{256} << 10;

// What is cached or kept is only seen where frames are not taken from malloc, as under the address sanitizer.
class frame_memory : public testing::Test {
 protected:
  frame_memory() { trim_frame_memory(); }
};
#if defined(WEFT_TEST_ASAN)
#define SKIP_UNDER_ASAN() GTEST_SKIP() << "frames come from malloc here"
#else
#define SKIP_UNDER_ASAN() static_cast<void>(0)
#endif

// ---- what it gives --------------------------------------------------------------------------------------------------

TEST_F(frame_memory, blocks_of_any_size_are_aligned_writable_and_apart) {
  std::vector<block> all;
  for (std::size_t size = 1; size < 300'000; size += 1 + size / 7)
    for (int i = 0; i < 3; ++i) {
      const block one = take(size);
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(one.at) % 16, 0u);
      std::memset(one.at, static_cast<int>(all.size() % 251), size);
      all.push_back(one);
    }
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto* bytes = static_cast<unsigned char*>(all[i].at);
    EXPECT_EQ(bytes[0], i % 251);
    EXPECT_EQ(bytes[all[i].size - 1], i % 251);
  }
  for (const block& one : all) give(one);
}

TEST_F(frame_memory, each_class_gives_back_what_it_took) {
  for (std::size_t size = 1; size <= 70'000; ++size) {
    const block below = take(size), above = take(size);
    static_cast<char*>(below.at)[size - 1] = 1;
    give(below);  // to a list, since `above` lies over it
    const block again = take(size);
    static_cast<char*>(again.at)[size - 1] = 1;
    give(above);
    give(again);
  }
}

TEST_F(frame_memory, last_in_first_out_runs_on_the_same_lines) {
  SKIP_UNDER_ASAN();
  const block first = take(100);
  give(first);
  for (int i = 0; i < 10; ++i) {
    const block same = take(100), next = take(200);
    EXPECT_EQ(same.at, first.at);
    give(next);
    give(same);
  }
}

TEST_F(frame_memory, a_million_frames_in_random_order) {
  std::minstd_rand random{1};
  std::vector<block> live;
  for (int i = 0; i < 1'000'000; ++i) {
    if (live.empty() || random() % 100 < 51) {
      const std::size_t size = 32 + random() % (random() % 50 == 0 ? 20'000 : 600);
      live.push_back(take(size));
      *static_cast<std::size_t*>(live.back().at) = size;
    } else {
      std::swap(live[random() % live.size()], live.back());
      EXPECT_EQ(*static_cast<std::size_t*>(live.back().at), live.back().size);
      give(live.back());
      live.pop_back();
    }
  }
  for (const block& one : live) give(one);
}

// ---- that it is bounded -----------------------------------------------------------------------------------------------

TEST_F(frame_memory, gives_a_peak_back) {
  SKIP_UNDER_ASAN();
  const auto before = frame_memory_now();
  std::vector<block> peak;
  for (int i = 0; i < 400'000; ++i) peak.push_back(take(500));
  const auto at_peak = frame_memory_now();
  EXPECT_GE(at_peak.slabs, before.slabs + 400'000 * 500);
  for (const block& one : peak) give(one);
  EXPECT_LE(frame_memory_now().cached, std::size_t{128} << 20) << "without being told";
  trim_frame_memory();
  EXPECT_LE(frame_memory_now().slabs, before.slabs + (std::size_t{4} << 20)) << "a few slabs stay warm";
  EXPECT_EQ(frame_memory_now().cached, 0u);
}

// The current slab goes first and leaves an older one at the front: that one goes, too, once it is empty.
TEST_F(frame_memory, gives_back_each_slab_in_any_order) {
  SKIP_UNDER_ASAN();
  std::thread{[] {  // a heap of known state, and what it gave back to others' warm slabs does not hide the figure
    trim_frame_memory();
    std::vector<block> warm;  // fills what may stay warm
    for (int round = 0; round < 40; ++round) {
      std::vector<block> older, current;
      for (std::size_t bytes = 0; bytes + 1024 <= slab - 1024; bytes += 1024) older.push_back(take(1024));
      for (std::size_t bytes = 0; bytes + 1024 <= slab - 1024; bytes += 1024) current.push_back(take(1024));
      for (const block& one : current) give(one);
      trim_frame_memory();
      for (const block& one : older) give(one);
      trim_frame_memory();
      EXPECT_EQ(frame_memory_now().cached, 0u) << "in round " << round;
    }
  }}
      .join();
}

// A call chain of any depth: each frame is on top when it is freed, in its slab or in the one before.
TEST_F(frame_memory, last_in_first_out_over_many_slabs_uses_no_list) {
  SKIP_UNDER_ASAN();
  std::thread{[] {  // a heap with nothing in it
    trim_frame_memory();
    std::vector<block> chain;
    for (int round = 0; round < 3; ++round) {
      for (std::size_t i = 0; i < 20'000; ++i) chain.push_back(take(32 + i % 1'000));
      for (; !chain.empty(); chain.pop_back()) give(chain.back());
      EXPECT_LE(frame_memory_now().cached, std::size_t{1024}) << "in round " << round;
    }
    // From the middle, too, where other frames were made meanwhile.
    for (int i = 0; i < 5'000; ++i) chain.push_back(take(500));
    for (int round = 0; round < 100; ++round) {
      for (int i = 0; i < 2'000; ++i, chain.pop_back()) give(chain.back());
      for (int i = 0; i < 2'000; ++i) chain.push_back(take(500));
    }
    for (; !chain.empty(); chain.pop_back()) give(chain.back());
    EXPECT_LE(frame_memory_now().cached, std::size_t{1024});
  }}
      .join();
}

// A little less: the clock by which frame memory ages goes by milliseconds.
bool took_less_than_a_second(auto f) {
  const auto begin = std::chrono::steady_clock::now();
  f();
  return std::chrono::steady_clock::now() - begin < std::chrono::milliseconds{900};
}

// What a peak used stays warm for the next one, but not for long. The thread that waits gives it back.
TEST_F(frame_memory, a_thread_that_sleeps_gives_back_what_nobody_needs) {
  SKIP_UNDER_ASAN();
  const auto before = frame_memory_now();
  {
    std::vector<block> chain;
    for (int i = 0; i < 200'000; ++i) chain.push_back(take(500));
    const bool was_fast = took_less_than_a_second([&] {
      for (; !chain.empty(); chain.pop_back()) give(chain.back());
    });
    if (was_fast) {
      EXPECT_GE(frame_memory_now().slabs, before.slabs + (std::size_t{90} << 20)) << "still warm";
    }
  }
  test::gate door;
  std::jthread watch{[&] {
    test::until([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds{10});
      return frame_memory_now().slabs <= before.slabs + (std::size_t{33} << 20);
    });
    door.open();
  }};
  weft::sync_wait(door.pass());
}

// Blocks of a peak that were freed in an order which leaves them in lists.
TEST_F(frame_memory, a_thread_that_sleeps_sweeps_what_nobody_needs) {
  SKIP_UNDER_ASAN();
  std::thread{[] {  // a heap of its own
    trim_frame_memory();
    std::vector<block> peak;
    for (int i = 0; i < 150'000; ++i) peak.push_back(take(500));
    const bool was_fast = took_less_than_a_second([&] {
      for (const block& one : peak) give(one);
    });
    if (was_fast) {
      EXPECT_GE(frame_memory_now().cached, std::size_t{70} << 20) << "kept, since a peak often comes again";
    }
    auto wait = []() -> weft::task<> {
      while (frame_memory_now().cached > std::size_t{32} << 20)
        co_await weft::sleep_for(std::chrono::milliseconds{300});
    };
    weft::sync_wait(wait());
  }}
      .join();
}

// Each worker looks at its own before it sleeps, and once a second while it has many slabs: some of its frames are freed by
// the others, which it does not see.
TEST_F(frame_memory, a_pool_that_sleeps_gives_back_what_nobody_needs) {
  SKIP_UNDER_ASAN();
  const auto before = frame_memory_now();
  const weft::pool workers{{.threads = 2}};
  weft::event never;
  auto wait = [](weft::event& e) -> weft::task<> {
    char room[2900];
    asm volatile("" : : "r"(room) : "memory");
    co_await e.wait();
    asm volatile("" : : "r"(room) : "memory");
  };
  auto make_and_stop = [&](weft::scope& s) -> weft::task<> {
    for (int i = 0; i != 50'000; ++i) s.fork(wait(never));
    EXPECT_GE(frame_memory_now().slabs, before.slabs + (std::size_t{120} << 20));
    s.request_stop();
    co_return;
  };
  auto peak = [&]() -> weft::task<> {
    EXPECT_TRUE((co_await weft::as_result(weft::with_scope(make_and_stop))).has_value());
  };
  weft::sync_wait(weft::start_on(workers.executor(), peak()));
  test::until([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds{10});
    return frame_memory_now().slabs <= before.slabs + (std::size_t{100} << 20);
  });
}

// A chain of a thousand calls that clang elides is one such frame.
TEST_F(frame_memory, keeps_frames_of_up_to_64_kib) {
  SKIP_UNDER_ASAN();
  for (const std::size_t size : {std::size_t{64'100}, std::size_t{64} << 10}) {
    const auto before = frame_memory_now();
    const block below = take(size), above = take(size);
    give(below);
    EXPECT_EQ(frame_memory_now().cached, before.cached + (std::size_t{64} << 10));
    const block again = take(size);
    EXPECT_EQ(again.at, below.at);
    give(above);
    give(again);
  }
}

TEST_F(frame_memory, large_frames_go_back_at_once) {
  const auto before = frame_memory_now();
  for (int i = 0; i < 100; ++i) give(take(1'000'000));
  EXPECT_EQ(frame_memory_now().slabs, before.slabs);
}

// ---- across threads -----------------------------------------------------------------------------------------------------

TEST_F(frame_memory, a_frame_freed_elsewhere_comes_home) {
  SKIP_UNDER_ASAN();
  const auto before = frame_memory_now();
  for (int round = 0; round < 50; ++round) {  // without a way home, each round would keep 4 MB
    std::vector<block> mine;
    for (int i = 0; i < 8'000; ++i) mine.push_back(take(512));
    std::jthread{[&] {
      for (const block& one : mine) give(one);
    }}.join();
  }
  EXPECT_LE(frame_memory_now().slabs, before.slabs + (std::size_t{16} << 20));
  trim_frame_memory();
  EXPECT_LE(frame_memory_now().slabs, before.slabs + (std::size_t{4} << 20));
}

// Some go home together; those of a thread that sleeps do not wait for others.
TEST_F(frame_memory, few_that_were_freed_elsewhere_come_home_before_that_thread_sleeps) {
  SKIP_UNDER_ASAN();
  const auto wait_for_home = [](const block& keeper, std::size_t cached) {
    test::until([&] {
      trim_frame_memory();
      return frame_memory_now().cached >= cached;
    });
    give(keeper);
  };
  for (const bool on_pool : {false, true}) {
    std::vector<block> mine;
    trim_frame_memory();
    const std::size_t before = frame_memory_now().cached;
    for (int i = 0; i != 3; ++i) mine.push_back(take(3000));
    const block keeper = take(3000);  // of the same slab, which so stays
    test::gate door;
    const auto free_and_wait = [&]() -> weft::task<> {
      for (const block& one : mine) give(one);
      co_await door.pass();
    };
    if (on_pool) {
      const weft::pool workers{{.threads = 2}};
      std::jthread other{[&] { weft::sync_wait(weft::start_on(workers.executor(), free_and_wait())); }};
      wait_for_home(keeper, before + 3 * 3000);
      door.open();
    } else {
      std::jthread other{[&] { weft::sync_wait(free_and_wait()); }};
      wait_for_home(keeper, before + 3 * 3000);
      door.open();
    }
  }
}

// One thread makes frames, another frees them, for ever.
TEST_F(frame_memory, frames_that_are_always_freed_elsewhere_are_bounded) {
  SKIP_UNDER_ASAN();
  const auto before = frame_memory_now();
  constexpr std::size_t batch = 1'000;
  std::array<std::vector<block>, 2> handed;
  std::barrier turn{2};
  std::jthread frees{[&] {
    for (int round = 0; round < 200; ++round) {
      turn.arrive_and_wait();
      for (const block& one : handed[static_cast<std::size_t>(round) % 2]) give(one);
    }
  }};
  for (std::size_t round = 0; round < 200; ++round) {
    auto& mine = handed[round % 2];
    mine.clear();
    for (std::size_t i = 0; i < batch; ++i) mine.push_back(take(64 + (round * batch + i) % 1'000));
    turn.arrive_and_wait();
  }
  frees.join();
  EXPECT_LE(frame_memory_now().slabs, before.slabs + (std::size_t{8} << 20)) << "100 MiB went through";
}

// Its owner does nothing, so whoever frees gives the slabs back.
TEST_F(frame_memory, what_others_free_goes_back_while_its_owner_sleeps) {
  SKIP_UNDER_ASAN();
  const auto before = frame_memory_now();
  std::vector<block> theirs;
  std::latch made{1}, over{1};
  std::jthread owner{[&] {
    for (int i = 0; i < 400'000; ++i) theirs.push_back(take(500));
    made.count_down();
    over.wait();
    // It goes on as if nothing had been.
    std::vector<block> again;
    for (int i = 0; i < 10'000; ++i) again.push_back(take(500));
    for (const block& one : again) give(one);
  }};
  made.wait();
  EXPECT_GE(frame_memory_now().slabs, before.slabs + (std::size_t{190} << 20));
  for (const block& one : theirs) give(one);
  trim_frame_memory();  // what is warm, and belongs to nobody
  EXPECT_LE(frame_memory_now().slabs, before.slabs + (std::size_t{48} << 20));
  over.count_down();
}

// Some of their frames live on, so those slabs stay, and are found again when the rest goes.
TEST_F(frame_memory, what_others_free_in_two_halves_goes_back) {
  SKIP_UNDER_ASAN();
  const auto before = frame_memory_now();
  std::vector<block> theirs;
  std::latch made{1}, over{1};
  std::jthread owner{[&] {
    for (int i = 0; i < 400'000; ++i) theirs.push_back(take(500));
    made.count_down();
    over.wait();
  }};
  made.wait();
  for (const std::size_t odd : {1u, 0u})
    for (std::size_t i = odd; i < theirs.size(); i += 2) give(theirs[i]);
  trim_frame_memory();
  EXPECT_LE(frame_memory_now().slabs, before.slabs + (std::size_t{150} << 20)) << "some of it waits";
  over.count_down();
  owner.join();
  trim_frame_memory();
  EXPECT_LE(frame_memory_now().slabs, before.slabs + (std::size_t{4} << 20)) << "the rest went when its owner ended";
}

TEST_F(frame_memory, what_others_free_of_a_thread_that_ended_goes_back) {
  SKIP_UNDER_ASAN();
  const auto before = frame_memory_now();
  std::vector<block> theirs;
  std::thread{[&] {
    for (int i = 0; i < 100'000; ++i) theirs.push_back(take(500));
  }}.join();
  for (const block& one : theirs) give(one);
  trim_frame_memory();
  EXPECT_LE(frame_memory_now().slabs, before.slabs + (std::size_t{4} << 20));
}

TEST_F(frame_memory, several_free_what_one_made_while_it_goes_on) {
  std::array<std::atomic<void*>, 256> slots{};
  std::atomic<bool> over = false;
  {
    std::vector<std::jthread> free;
    for (int t = 0; t < 2; ++t)
      free.emplace_back([&] {
        std::minstd_rand random{7};
        while (!over)
          if (void* one = slots[random() % slots.size()].exchange(nullptr)) free_frame(one, 30'000);
      });
    std::minstd_rand random{1};
    for (int i = 0; i < test::rounds(100'000); ++i) {  // 30,000 bytes each: many drains
      void* mine = allocate_frame(30'000);
      *static_cast<int*>(mine) = i;
      if (void* old = slots[random() % slots.size()].exchange(mine)) free_frame(old, 30'000);
    }
    over = true;
  }
  for (auto& slot : slots)
    if (void* last = slot.exchange(nullptr)) free_frame(last, 30'000);
}

TEST_F(frame_memory, frames_handed_round_among_threads_are_never_shared) {
  constexpr int threads = 4;
  std::array<std::atomic<void*>, 64> slots{};
  {
    std::vector<std::jthread> all;
    for (unsigned t = 0; t < threads; ++t)
      all.emplace_back([&, t] {
        std::minstd_rand random{t + 1};
        for (int i = 0; i < test::rounds(200'000); ++i) {
          void* mine = allocate_frame(256);
          std::memset(mine, static_cast<int>(t), 256);
          void* other = slots[random() % slots.size()].exchange(mine);
          if (other != nullptr) {
            const auto* bytes = static_cast<unsigned char*>(other);
            EXPECT_EQ(bytes[0], bytes[255]);
            free_frame(other, 256);
          }
        }
      });
  }
  for (auto& slot : slots)
    if (void* last = slot.exchange(nullptr)) free_frame(last, 256);
}

TEST_F(frame_memory, the_next_thread_takes_over_the_heap_of_one_that_ended) {
  SKIP_UNDER_ASAN();
  const auto before = frame_memory_now();
  std::vector<block> kept;
  for (int i = 0; i < 200; ++i)  // 200 heaps would be 200 slabs of 256 KiB
    std::jthread{[&] {
      kept.push_back(take(64));
      for (int j = 0; j < 10; ++j) give(take(1'000));
    }}.join();
  EXPECT_LE(frame_memory_now().slabs, before.slabs + 4 * slab);
  for (const block& one : kept) give(one);  // their heap belongs to no thread now
}

// Thread-local objects made before the thread's first frame are destroyed after its heap was handed over.
TEST_F(frame_memory, a_frame_in_the_destructor_of_an_older_thread_local) {
  SKIP_UNDER_ASAN();
  struct late {
    ~late() { give(take(64)); }
    void touch() {}
  };
  const auto before = frame_memory_now();
  for (int i = 0; i < 200; ++i)
    std::jthread{[] {
      thread_local late older;
      older.touch();
      give(take(64));
    }}.join();
  EXPECT_LE(frame_memory_now().slabs, before.slabs + 4 * slab);
}

// ---- that an end is seen ------------------------------------------------------------------------------------------------

#if WEFT_FILLS_FRAMES
TEST_F(frame_memory, a_frame_that_has_ended_is_filled) {
  for (const std::size_t size : {48, 1'000, 30'000}) {
    const block below = take(size), above = take(size);
    std::memset(below.at, 1, size);
    std::memset(above.at, 1, size);
    give(above);
    give(below);
#if !defined(WEFT_TEST_ASAN)
    for (const block& one : {above, below})
      for (std::size_t i = sizeof(weft::detail::free_block); i != size; ++i)
        ASSERT_EQ(static_cast<unsigned char*>(one.at)[i], 0xdd) << "byte " << i << " of " << size;
#endif
  }
}
#endif

#if defined(WEFT_TEST_ASAN)
class frame_that_ended : public frame_memory {
 protected:
  frame_that_ended() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }

  // Reads a variable of a coroutine that has ended, after others of its size have been there.
  static void read_it(std::pmr::memory_resource* memory) {
    const int* gone = nullptr;
    auto body = [&]() -> weft::task<> {
      auto look = [&gone]() -> weft::task<> {
        int mine = 1;
        gone = &mine;
        co_await weft::yield();
        EXPECT_EQ(mine, 1);
      };
      auto kept = look();
      co_await std::move(kept);
    };
    if (memory != nullptr)
      weft::sync_wait(weft::with_memory(memory, body));
    else
      weft::sync_wait(body());
    std::_Exit(*gone == 1 ? 0 : 1);
  }
};

TEST_F(frame_that_ended, is_reported_by_the_address_sanitizer) {
  EXPECT_DEATH(read_it(nullptr), "AddressSanitizer: heap-use-after-free");
}
// To which it goes back at once.
TEST_F(frame_that_ended, is_reported_where_it_is_of_a_source) {
  const auto kept = [] {
    test::counting_resource memory;
    weft::detail::frame_source source{&memory, false};
    const weft::detail::ambient_memory chosen{&source};
    auto* const gone = static_cast<volatile char*>(allocate_frame(100));
    *gone = 1;
    free_frame(const_cast<char*>(gone), 100);
    static_cast<void>(*gone);
  };
  EXPECT_DEATH(kept(), "AddressSanitizer: heap-use-after-free");
}
TEST_F(frame_that_ended, is_reported_where_a_worker_keeps_it_of_a_resource) {
  const auto kept = [] {
    weft::per_worker mine{std::pmr::new_delete_resource()};
    std::pmr::memory_resource& memory = *static_cast<std::pmr::memory_resource*>(mine);
    auto* const gone = static_cast<volatile char*>(allocate_frame(100, memory));
    *gone = 1;
    free_frame(const_cast<char*>(gone), 100);
    static_cast<void>(*gone);
  };
  EXPECT_DEATH(kept(), "AddressSanitizer: use-after-poison");
}
#endif

// ---- from a resource ------------------------------------------------------------------------------------------------------

TEST_F(frame_memory, a_frame_from_a_resource_goes_back_there_from_any_thread) {
  test::counting_resource memory;
  for (std::size_t size : {1, 16, 100, 1'000, 100'000}) {
    void* frame = allocate_frame(size, static_cast<std::pmr::memory_resource&>(memory));
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(frame) % 16, 0u);
    EXPECT_EQ(memory.live, 1u);
    std::memset(frame, 1, size);
    std::jthread{[&] { free_frame(frame, size); }}.join();
    EXPECT_EQ(memory.live, 0u);
    EXPECT_EQ(memory.live_bytes, 0u);
  }
}

TEST_F(frame_memory, comes_from_the_source_of_the_block_it_is_allocated_in) {
  test::counting_resource outer, inner;
  weft::detail::frame_source of_outer{&outer, false}, of_inner{&inner, true};
  void* in_inner;
  {
    const weft::detail::ambient_memory chosen{&of_outer};
    void* in_outer = allocate_frame(100);
    {
      const weft::detail::ambient_memory nearer{&of_inner};
      in_inner = allocate_frame(100);
      const weft::detail::ambient_memory none{nullptr};
      free_frame(allocate_frame(100), 100);
    }
    free_frame(allocate_frame(100), 100);
    EXPECT_EQ(outer.allocations, 2u);
    EXPECT_EQ(of_outer.live(), 1u);
    free_frame(in_outer, 100);
  }
  EXPECT_EQ(inner.allocations, 1u);
  EXPECT_EQ(of_inner.live(), 1u);
  std::jthread{[&] { free_frame(in_inner, 100); }}.join();  // it knows where it came from
  EXPECT_EQ(of_inner.live(), 0u);
  of_outer.trim();
  EXPECT_EQ(inner.live + outer.live, 0u);
  inner.fail_after = 1;
  const weft::detail::ambient_memory dry{&of_inner};
  EXPECT_THROW(static_cast<void>(allocate_frame(100)), std::bad_alloc);
  EXPECT_EQ(of_inner.live(), 0u);
}

TEST_F(frame_memory, a_source_keeps_one_freed_block_of_each_small_size) {
  constexpr std::size_t kept_when_built_so = WEFT_ASAN ? 0 : 1;
  for (std::size_t size : {16, 48, 100, 496, 497, 10'000}) {
    const std::size_t kept = size < 496 ? kept_when_built_so : 0;
    test::counting_resource memory;
    {
      weft::detail::frame_source source{&memory, false};
      const weft::detail::ambient_memory chosen{&source};
      void* first = allocate_frame(size);
      void* second = allocate_frame(size);
      free_frame(second, size);
      free_frame(first, size);
      EXPECT_EQ(memory.live, kept) << size;
      const std::size_t before = memory.allocations;
      void* again = allocate_frame(size);
      EXPECT_EQ(memory.allocations, before + 1 - kept) << size;
      EXPECT_EQ(source.live(), 1U);
      std::memset(again, 1, size);
      free_frame(again, size);
      source.trim();
      EXPECT_EQ(memory.live_bytes, 0U);
      free_frame(allocate_frame(size), size);
      EXPECT_EQ(memory.live, kept) << size;
    }
    EXPECT_EQ(memory.live_bytes, 0U);  // given back at the end
  }
}

TEST_F(frame_memory, a_source_gives_back_what_it_keeps_where_its_resource_has_no_more) {
  class has_one_block final : public std::pmr::memory_resource {
    std::byte room_[1'000];
    bool taken_ = false;
    void* do_allocate(std::size_t bytes, std::size_t alignment) override {
      void* at = room_;
      std::size_t space = sizeof room_;
      if (std::exchange(taken_, true) || std::align(alignment, bytes, at, space) == nullptr) throw std::bad_alloc{};
      return at;
    }
    void do_deallocate(void*, std::size_t, std::size_t) override { taken_ = false; }
    bool do_is_equal(const memory_resource& other) const noexcept override { return this == &other; }
  } memory;
  weft::detail::frame_source source{&memory, false};
  const weft::detail::ambient_memory chosen{&source};
  free_frame(allocate_frame(48), 48);
  void* const larger = allocate_frame(200);
  EXPECT_THROW(static_cast<void>(allocate_frame(48)), std::bad_alloc);
  EXPECT_EQ(source.live(), 1U);
  free_frame(larger, 200);
}

TEST_F(frame_memory, a_shared_source_keeps_nothing) {
  test::counting_resource memory;
  weft::detail::frame_source source{&memory, true};
  const weft::detail::ambient_memory chosen{&source};
  free_frame(allocate_frame(48), 48);
  EXPECT_EQ(memory.live, 0U);
}

TEST_F(frame_memory, a_pool_resource_gets_its_frames_back) {
  for (std::size_t size = 16; size < 3'000; size += 8) {
    test::counting_resource memory;
    std::pmr::unsynchronized_pool_resource pool{&memory};
    weft::detail::frame_source source{&pool, false};
    const weft::detail::ambient_memory chosen{&source};
    void* some[5];
    for (void*& one : some) one = allocate_frame(size);
    EXPECT_EQ(source.live(), 5u);
    for (void* one : some) free_frame(one, size);
    EXPECT_EQ(source.live(), 0u);
  }
}

}  // namespace
