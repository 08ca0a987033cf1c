// Where stacks come from, what guards them, and what is said when one runs over.
#include <alloca.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <weft/coroutine.hpp>
#include <weft/fiber.hpp>
#include <weft/scope.hpp>
#include <weft/stack_pool.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory_resource>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "context/shadow_stack.hpp"
#include "stack/stack_guard.hpp"
#include "stack/stack_memory.hpp"
#include "support/weft_test.hpp"

#if !defined(__x86_64__)
// In front of the C library's: what the kernel says of shadow stacks.
namespace { bool has_shadow_stack = false; }
extern "C" int prctl(int option, ...) noexcept {
  va_list list;
  va_start(list, option);
  unsigned long arguments[4];
  for (unsigned long& one : arguments) one = va_arg(list, unsigned long);
  va_end(list);
  if (option == 74 && has_shadow_stack) return *reinterpret_cast<unsigned long*>(arguments[0]) = 1, 0;
  return static_cast<int>(::syscall(SYS_prctl, option, arguments[0], arguments[1], arguments[2], arguments[3]));
}
#endif

namespace {

using weft::coroutine;
using weft::stack_guard;
using weft::stack_pool;
using weft::detail::give_back_stack;
using weft::detail::stack_header;

std::vector<stack_header*> take(stack_pool& from, std::size_t count, std::size_t size = 4096) {
  std::vector<stack_header*> all;
  for (std::size_t i = 0; i != count; ++i) all.push_back(&from.take(size));
  return all;
}
void give_back(const std::vector<stack_header*>& all) {
  for (stack_header* one : all) give_back_stack(*one);
}

// Writes to all of it; where nothing guards it, to all but the lowest words, which say afterwards that it has not run over.
void fill(stack_header& one) {
  const std::size_t kept = one.guarded ? 0 : weft::detail::canary_bytes;
  std::memset(one.bottom + kept, 1, one.usable() - kept);
}

// ---- where they lie ---------------------------------------------------------------------------------------------------

TEST(stack_pool, gives_as_much_as_was_asked_for) {
  stack_pool pool;
  for (const std::size_t size : {1, 4095, 4096, 4097, 65536, 100'000, 1 << 20, 20 << 20}) {
    stack_header& one = pool.take(size);
    EXPECT_GE(one.usable() - (one.guarded ? 0 : weft::detail::canary_bytes), size);
    fill(one);
    give_back_stack(one);
  }
  EXPECT_THROW(pool.take(std::size_t{1} << 40), std::bad_alloc);
}

// On each kind of guard, forced.
class each_kind : public testing::TestWithParam<weft::stack_pool_options> {
 protected:
  void SetUp() override {
    if (!weft::detail::guard_works(GetParam().guard)) GTEST_SKIP() << "this kernel has no such guard";
  }
};
INSTANTIATE_TEST_SUITE_P(stack_pool, each_kind,
                         testing::Values(weft::stack_pool_options{.guard = stack_guard::madvise},
                                         weft::stack_pool_options{.guard = stack_guard::mprotect},
                                         weft::stack_pool_options{.guard = stack_guard::none},
                                         weft::stack_pool_options{.guard = stack_guard::none, .huge_pages = true}));

TEST_P(each_kind, the_last_one_given_back_is_the_next) {
  stack_pool pool{GetParam()};
  stack_header &a = pool.take(4096), &b = pool.take(4096), &other = pool.take(8192);
  EXPECT_NE(&a, &b);
  give_back_stack(a);
  give_back_stack(other);
  give_back_stack(b);
  EXPECT_EQ(&pool.take(4096), &b);
  EXPECT_EQ(&pool.take(4096), &a);
  EXPECT_EQ(&pool.take(8000), &other);
  give_back({&a, &b, &other});
  EXPECT_EQ(pool.stats().made, 3u);
  EXPECT_EQ(pool.stats().taken, 6u);
  EXPECT_EQ(pool.stats().idle, 3u);
}

// Neighbours differ in the sets of a cache that their tops go to, and their pages in those of a TLB.
TEST(stack_pool, neighbours_are_coloured) {
  stack_pool coloured, plain{{.coloured = false}};
  std::set<std::uintptr_t> lines, same, pages;
  const auto some = take(coloured, 23), others = take(plain, 23);
  for (stack_header* one : some) {
    lines.insert(reinterpret_cast<std::uintptr_t>(one) % 4096);
    pages.insert(reinterpret_cast<std::uintptr_t>(one) / 4096 % 16);
  }
  for (stack_header* one : others) same.insert(reinterpret_cast<std::uintptr_t>(one) % 4096);
  EXPECT_EQ(lines.size(), 23u);
  EXPECT_EQ(pages.size(), 16u);
  EXPECT_EQ(same.size(), 1u);
  give_back(some);
  give_back(others);
}

TEST(stack_pool, a_guard_of_no_size_is_refused_and_one_that_no_system_has_room_for) {
  for (const std::size_t size : {std::size_t{0}, ~std::size_t{0}}) {
    EXPECT_THROW((stack_pool{{.guard_size = size}}), weft::error);
    EXPECT_NO_THROW((stack_pool{{.guard = stack_guard::none, .guard_size = size}}));
  }
}

// Colours and pages don't go in step: where every 96th stack came back to the same sets of a second level of 2048 sets,
// eleven of a thousand were in each, and eight have room.
TEST(stack_pool, a_thousand_tops_spread_over_the_sets_of_a_cache) {
  stack_pool pool;
  const auto all = take(pool, 1000);
  std::map<std::uintptr_t, int> in_set;
  for (stack_header* one : all) ++in_set[reinterpret_cast<std::uintptr_t>(one) / 64 % 2048];
  int most = 0;
  for (const auto& [set, tops] : in_set) most = std::max(most, tops);
  EXPECT_LE(most, 4);
  give_back(all);
}

std::size_t resident(const stack_header& one) {
  const auto begin = (reinterpret_cast<std::uintptr_t>(one.bottom) + 4095) & ~std::uintptr_t{4095};
  const auto end = (reinterpret_cast<std::uintptr_t>(&one) + 4095) & ~std::uintptr_t{4095};
  std::vector<unsigned char> pages((end - begin) / 4096);
  EXPECT_EQ(::mincore(reinterpret_cast<void*>(begin), end - begin, pages.data()), 0);
  return static_cast<std::size_t>(std::ranges::count_if(pages, [](unsigned char page) { return (page & 1) != 0; }));
}

// With optimized code; an unoptimized one needs a little more.
TEST(stack_pool, a_small_coroutine_touches_a_page_or_two) {
  stack_pool pool;
  std::vector<coroutine<const void*()>> all;
  for (int i = 0; i != 23; ++i)  // each colour
    all.emplace_back(weft::stack_options{.pool = &pool}, [](auto& yield) {
      const int here = 0;
      yield(&here);
      return nullptr;
    });
#if !defined(WEFT_TEST_ASAN)  // where frames' variables lie elsewhere
  std::size_t pages = 0;
  for (auto& one : all) {
    const auto page = reinterpret_cast<std::uintptr_t>(one.resume()) & ~std::uintptr_t{4095};
    std::array<unsigned char, 8> seen{};
    ASSERT_EQ(::mincore(reinterpret_cast<void*>(page - 4 * 4096), 5 * 4096, seen.data()), 0);
    pages += static_cast<std::size_t>(std::count(seen.begin(), seen.end(), 1));
  }
  EXPECT_LE(pages, 46u);
#endif
}

// ---- giving back ------------------------------------------------------------------------------------------------------

TEST(stack_pool, trim_gives_back_what_is_idle) {
  stack_pool pool;
  const auto all = take(pool, 10, 65536);
  for (stack_header* one : all) fill(*one);
  std::vector<std::pair<stack_header*, std::size_t>> before;
  for (stack_header* one : all) before.emplace_back(one, resident(*one));
  for (std::size_t i = 1; i != all.size(); ++i) give_back_stack(*all[i]);
  EXPECT_EQ(pool.stats().idle, 9u);
  EXPECT_EQ(pool.trim(), 9u);
  EXPECT_EQ(pool.stats().idle, 0u);
  EXPECT_EQ(pool.stats().cold, 9u);
  EXPECT_EQ(all[0]->bottom[weft::detail::canary_bytes], std::byte{1});

  const auto again = take(pool, 9, 65536);  // the same ones, zero again, and guarded as before
  EXPECT_EQ(pool.stats().made, 10u);
  for (stack_header* one : again) {
    EXPECT_TRUE(std::ranges::find(all, one) != all.end());
    EXPECT_LE(resident(*one), 2u);
    EXPECT_EQ(one->bottom[weft::detail::canary_bytes], std::byte{0});
  }
  give_back(again);
  give_back_stack(*all[0]);
}

// What is readied ahead of its use is as much as is in use, and trim() has it, too.
TEST(stack_pool, trim_gives_back_what_is_ready) {
  stack_pool pool;
  const auto all = take(pool, 3);  // the third is cut together with the fourth
  const auto next = reinterpret_cast<std::uintptr_t>(all[0]) +
                    3 * (reinterpret_cast<std::uintptr_t>(all[1]) - reinterpret_cast<std::uintptr_t>(all[0]));
  EXPECT_EQ(pool.stats().made, 3u);
  EXPECT_EQ(pool.trim(), 0u);
  unsigned char seen = 1;
  ASSERT_EQ(::mincore(reinterpret_cast<void*>(next & ~std::uintptr_t{4095}), 4096, &seen), 0);
  EXPECT_EQ(seen & 1, 0);
  stack_header& fourth = pool.take(4096);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(&fourth), next);
  EXPECT_EQ(fourth.bottom[weft::detail::canary_bytes], std::byte{0});
  give_back_stack(fourth);
  give_back(all);
}

// A region does not begin with one again where the pool has given out many.
TEST(stack_pool, a_region_readies_as_many_as_the_one_before_it) {
  stack_pool pool;
  const auto page_of = [](std::uintptr_t at) { return at & ~std::uintptr_t{4095}; };
  const auto is_there = [](std::uintptr_t page) {
    unsigned char seen = 0;
    return ::mincore(reinterpret_cast<void*>(page), 4096, &seen) == 0 && (seen & 1) != 0;
  };
  const auto all = take(pool, 3, 65536);
  const std::uintptr_t first = page_of(reinterpret_cast<std::uintptr_t>(all[0])),
                       slot = page_of(reinterpret_cast<std::uintptr_t>(all[1])) - first;
  if (is_there(first + 3 * slot)) {  // Linux 6.15: pages are readied
    const auto rest = take(pool, 254, 65536);
    const std::uintptr_t next = page_of(reinterpret_cast<std::uintptr_t>(rest.back()));  // the first of its region
    std::size_t ready = 0;
    while (ready != 100 && is_there(next + ready * slot)) ++ready;
    EXPECT_EQ(ready, 64u);
    give_back(rest);
  }
  give_back(all);
}

// All of many go cold, and are used again: with several regions, each of which has room again.
TEST_P(each_kind, many_go_cold_and_come_back) {
  stack_pool pool{GetParam()};
  std::vector<stack_header*> all = take(pool, 1000);
  for (int again = 0; again != 3; ++again) {
    for (stack_header* one : all) one->bottom[1024] = std::byte{1};
    give_back(all);
    EXPECT_EQ(pool.trim(), 1000u);
    EXPECT_EQ(pool.stats().cold, 1000u);
    all = take(pool, 1000);
    EXPECT_TRUE(std::ranges::all_of(all, [](stack_header* one) { return one->bottom[1024] == std::byte{0}; }));
    EXPECT_EQ(std::set<stack_header*>(all.begin(), all.end()).size(), 1000u);
  }
  EXPECT_EQ(pool.stats().made, 1000u);
  EXPECT_EQ(pool.stats().cold, 0u);
  give_back(all);
}

// A stall of the machine within take() or give_back() makes the pool look idle, so this waits for a time without one.
TEST(stack_pool, what_nobody_needs_for_a_while_goes_back) {
  stack_pool pool{{.min_idle = 64, .idle_for = std::chrono::milliseconds{50}}};
  give_back(take(pool, 1000));
  test::until([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds{70});
    give_back(take(pool, 700));
    const std::size_t idle = pool.stats().idle;
    return 700 <= idle && idle <= 764;
  });
  EXPECT_EQ(pool.stats().made, 1000u);
}

TEST(stack_pool, has_no_more_than_it_may) {
  stack_pool pool{{.max_stacks = 2}};
  const auto all = take(pool, 2);
  try {
    pool.take(4096);
    ADD_FAILURE() << "a third one";
  } catch (const weft::error& refused) {
    EXPECT_EQ(refused.code(), std::errc::not_enough_memory);
    EXPECT_TRUE(std::string{refused.what()}.find("max_stacks, 2") != std::string::npos) << refused.what();
  }
  give_back_stack(*all[0]);
  EXPECT_EQ(&pool.take(4096), all[0]);
  give_back(all);
  EXPECT_EQ(pool.limits().most_stacks, 2u);
}

TEST_P(each_kind, many_threads_at_once) {
  stack_pool pool{GetParam()};
  std::atomic<int> alive = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t != 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i != test::rounds(5000); ++i) {
        // One that is destroyed half-way unwinds, which takes more than 4 KiB on AArch64.
        coroutine<int(int)> one{{.size = i % 3 == 0 ? std::size_t{8192} : std::size_t{16384}, .pool = &pool},
                                [counted = test::counted{alive}](auto& yield, int n) { return yield(n + 1); }};
        EXPECT_EQ(one.resume(1), 2);
        if (i % 2 == 0) {
          EXPECT_EQ(one.resume(5), 5);
        }
        if (i % 100 == 0) pool.trim();
      }
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(alive, 0);
  EXPECT_EQ(pool.stats().in_use, 0u);
}

// ---- guards -------------------------------------------------------------------------------------------------------------

TEST(stack_pool, says_what_guards_its_stacks) {
  for (const stack_guard kind : {stack_guard::madvise, stack_guard::mprotect, stack_guard::none}) {
    if (!weft::detail::guard_works(kind)) continue;
    const stack_pool pool{{.guard = kind}};
    const weft::stack_limits limits = pool.limits();
    EXPECT_EQ(limits.guard, kind);
    EXPECT_GT(limits.most_stacks, 1000u);
    const char* word = kind == stack_guard::madvise    ? "MADV_GUARD_INSTALL"
                       : kind == stack_guard::mprotect ? "vm.max_map_count"
                                                       : "not guarded";
    EXPECT_TRUE(limits.sentence.find(word) != std::string::npos) << limits.sentence;
  }
  EXPECT_EQ(stack_pool{}.limits().guard, weft::detail::best_guard());
}

TEST(stack_pool, huge_pages_are_not_guarded) {
  EXPECT_THROW(stack_pool{{.huge_pages = true}}, weft::error);
  stack_pool pool{{.guard = stack_guard::none, .huge_pages = true}};
  give_back(take(pool, 3));
}

// They are asked for, and not counted on: where the system gives none, all is as it is, and limits() says so.
TEST(stack_pool, says_where_there_are_no_huge_pages) {
  const auto none = [](bool huge_pages) {
    const stack_pool pool{{.guard = stack_guard::none, .huge_pages = huge_pages}};
    return pool.limits().sentence.find("the system gives this process none") != std::string::npos;
  };
  EXPECT_FALSE(none(false));
  const bool before = ::prctl(PR_GET_THP_DISABLE, 0, 0, 0, 0) == 1;
  const bool at_first = none(true);
  EXPECT_TRUE(!before || at_first);
  if (before || ::prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0) != 0) return;
  EXPECT_TRUE(none(true));
  ::prctl(PR_SET_THP_DISABLE, 0, 0, 0, 0);
  EXPECT_EQ(none(true), at_first);
}

// Each guard with mprotect is a mapping; there are some 65,000.
TEST(stack_pool, with_mprotect_the_limit_is_met_with_a_sentence) {
#if defined(WEFT_TEST_ASAN) || defined(WEFT_TEST_TSAN)
  GTEST_SKIP() << "the sanitizer needs mappings, too";
#endif
  if (!weft::detail::guard_works(stack_guard::mprotect) || weft::detail::most_mappings() > 100'000) GTEST_SKIP();
  stack_pool pool{{.guard = stack_guard::mprotect, .guard_size = 4096, .min_idle = 0}};
  std::vector<stack_header*> all;
  try {
    for (;;) all.push_back(&pool.take(4096));
  } catch (const weft::error& refused) {
    EXPECT_TRUE(std::string{refused.what()}.find("vm.max_map_count") != std::string::npos) << refused.what();
  }
  EXPECT_GT(all.size(), pool.limits().most_stacks - 1000);
  EXPECT_LE(all.size(), pool.limits().most_stacks);
  EXPECT_EQ(pool.stats().in_use, all.size());
  give_back(all);
}

TEST(stack_pool, with_advice_there_are_more_than_mappings) {
  if (!weft::detail::guard_works(stack_guard::madvise)) GTEST_SKIP();
  stack_pool pool{{.guard = stack_guard::madvise, .guard_size = 4096}};
  const auto all = take(pool, static_cast<std::size_t>(test::rounds(70'000)));
  give_back(all);
}

// ---- high-water marks ---------------------------------------------------------------------------------------------------

struct small_one {
  void operator()(coroutine<void()>::yielder&) const {}
};
struct large_one {
  void operator()(coroutine<void()>::yielder&) const {
    volatile char room[20'000];
    for (std::size_t i = 0; i < sizeof room; ++i) room[i] = 1;
  }
};

TEST_P(each_kind, measures_what_each_function_needs) {
  weft::stack_pool_options options = GetParam();
  options.measure_all = true;
  stack_pool pool{options};
  for (int i = 0; i != 5; ++i) {
    coroutine<void()> small{{.pool = &pool}, small_one{}};
    small.resume();
    coroutine<void()> large{{.pool = &pool}, large_one{}};
    large.resume();
  }
  const auto uses = pool.high_water();
  ASSERT_EQ(uses.size(), 2u);
  EXPECT_TRUE(uses[0].function.find("large_one") != std::string::npos) << uses[0].function;
  EXPECT_TRUE(uses[1].function.find("small_one") != std::string::npos) << uses[1].function;
  EXPECT_EQ(uses[0].measured, 5u);
  EXPECT_GE(uses[0].high_water, 20'000u);
  EXPECT_EQ(uses[0].suggested, uses[0].high_water > 32'768 ? 131'072u : 65'536u);
  EXPECT_LE(uses[1].high_water, uses[0].high_water / 2);
  EXPECT_EQ(pool.stats().made, 1u);
}

void named_function(coroutine<void()>::yielder&) {}

TEST(stack_pool, measures_the_first_use_of_each_stack) {
  stack_pool pool;
  for (int i = 0; i != 3; ++i) {
    coroutine<void()> one{{.pool = &pool}, named_function};
    one.resume();
  }
  const auto uses = pool.high_water();
  ASSERT_EQ(uses.size(), 1u);
  EXPECT_TRUE(uses[0].function.find("named_function") != std::string::npos) << uses[0].function;
  EXPECT_EQ(uses[0].measured, 1u);
}

// A mark is taken when another function gets the stack, or when it goes cold; each once.
TEST_P(each_kind, measures_a_stack_when_it_changes_hands) {
  stack_pool pool{GetParam()};
  const auto run = [&](auto function) {
    coroutine<void()> one{{.pool = &pool}, function};
    one.resume();
  };
  run(small_one{});
  run(large_one{});  // on the same stack: only its first user is measured
  EXPECT_EQ(pool.high_water().size(), 1u);
  EXPECT_EQ(pool.trim(), 1u);
  run(large_one{});
  EXPECT_EQ(pool.trim(), 1u);
  const auto uses = pool.high_water();
  ASSERT_EQ(uses.size(), 2u);
  EXPECT_TRUE(uses[0].function.find("large_one") != std::string::npos) << uses[0].function;
  EXPECT_GE(uses[0].high_water, 20'000u);
  EXPECT_EQ(uses[0].measured, 1u);
  EXPECT_EQ(uses[1].measured, 1u);
}

// In a process of its own, started anew, but not where it is emulated: the system could not start it.
void start_anew() {
  GTEST_FLAG_SET(death_test_style, std::getenv("WEFT_TEST_EMULATED") != nullptr ? "fast" : "threadsafe");
}

// ---- overflow -----------------------------------------------------------------------------------------------------------

class overflow : public testing::TestWithParam<stack_guard> {
 protected:
  overflow() { start_anew(); }
  void SetUp() override {
    if (!weft::detail::guard_works(GetParam())) GTEST_SKIP() << "this kernel has no such guard";
  }
};
INSTANTIATE_TEST_SUITE_P(guards, overflow, testing::Values(stack_guard::madvise, stack_guard::mprotect));

[[gnu::noinline]] int endless(volatile int* deeper) {  // NOLINT(misc-no-recursion): until there is no stack left
  volatile int here[64]{};
  here[0] = *deeper;
  return here[0] == 0 ? 0 : endless(deeper) + here[0];
}

void recurses(coroutine<void()>::yielder&) {
  volatile int deeper = 1;
  endless(&deeper);
}

TEST_P(overflow, of_a_recursion) {
  const auto run = [] {
    stack_pool pool{{.guard = GetParam()}};
    coroutine<void()> one{{.size = std::size_t{32} << 10, .pool = &pool, .name = "the parser"}, recurses};
    one.resume();
  };
  EXPECT_DEATH(run(),
               "weft: a stack ran over: 'the parser', which runs .*recurses.* has 32 KiB of stack and needed "
               "3[2-9] KiB or more: give it a larger size");
}

// One frame, larger than all of the stack, written from its lowest byte on.
void has_a_large_frame(coroutine<void()>::yielder&) {
  volatile char room[std::size_t{90} << 10];
  for (std::size_t i = 0; i != sizeof room; i += 64) room[i] = 1;
}

TEST_P(overflow, of_a_frame_that_is_larger_than_the_stack) {
  const auto run = [] {
    stack_pool pool{{.guard = GetParam()}};
    coroutine<void()> one{{.size = std::size_t{32} << 10, .pool = &pool}, has_a_large_frame};
    one.resume();
  };
  EXPECT_DEATH(run(), "weft: a stack ran over: .*has_a_large_frame.* has 32 KiB of stack and needed 9[0-9] KiB");
}

TEST_P(overflow, of_alloca) {
  const auto run = [] {
    stack_pool pool{{.guard = GetParam()}};
    coroutine<void(std::size_t)> one{{.size = std::size_t{32} << 10, .pool = &pool}, [](auto&, std::size_t bytes) {
                                       auto* room = static_cast<volatile char*>(alloca(bytes));
                                       for (std::size_t i = 0; i < bytes; i += 64) room[i] = 1;
                                     }};
    one.resume(std::size_t{50} << 10);
  };
  EXPECT_DEATH(run(), "weft: a stack ran over: .* and needed [56][0-9] KiB");
}

// Without -fstack-clash-protection, a guard that is larger than the frame is what it meets.
[[gnu::noinline]] void has_a_frame_of_a_mebibyte(coroutine<void()>::yielder&) {
  const volatile std::size_t lowest = 0;
  volatile char room[std::size_t{1} << 20];
  room[lowest] = 1;
  static_cast<void>(room[lowest]);  // g++ holds it for unused else
}

TEST_P(overflow, of_a_large_frame_where_the_guard_is_larger) {
  const auto run = [] {
    stack_pool pool{{.guard = GetParam(), .guard_size = std::size_t{2} << 20}};
    coroutine<void()> one{{.pool = &pool, .name = "the indexer"}, has_a_frame_of_a_mebibyte};
    one.resume();
  };
  EXPECT_DEATH(run(),
               "weft: a stack ran over: 'the indexer', which runs .*has_a_frame_of_a_mebibyte.* has 64 KiB of stack "
               "and needed 10[2-9][0-9] KiB or more");
}

TEST_P(overflow, on_another_thread_and_in_call_on_stack) {
  const auto run = [] {
    stack_pool pool{{.guard = GetParam()}};
    std::thread{[&] {
      coroutine<void()> one{{.pool = &pool}, [](auto&) {
                              weft::call_on_stack(std::size_t{16} << 10, [] {
                                volatile int deeper = 1;
                                endless(&deeper);
                              });
                            }};
      one.resume();
    }}.join();
  };
  EXPECT_DEATH(run(), "weft: a stack ran over: .*lambda.* has 16 KiB of stack");
}

class overflow_seen : public testing::Test {
 protected:
  overflow_seen() { start_anew(); }
};

// Where nothing faults, it is seen when the stack comes back.
TEST_F(overflow_seen, without_a_guard_when_it_is_given_back) {
  alignas(16) static std::array<std::byte, std::size_t{32} << 10> memory;
  const auto run = [](const weft::stack_options& options, std::byte* lowest) {
    coroutine<void()> one{options,
                          [lowest](auto&) { std::memset(lowest, 0, 8); }};  // as a frame would that is too large
    one.resume();
  };
  EXPECT_DEATH(run({.memory = memory}, memory.data()), "weft: a stack ran over: .*lambda");
  EXPECT_DEATH(
      {
        stack_pool pool{{.guard = stack_guard::none}};
        stack_header& lowest = pool.take(weft::least_stack_size);
        std::byte* const bottom = lowest.bottom;
        give_back_stack(lowest);
        run({.size = weft::least_stack_size, .pool = &pool, .name = "who ran over"}, bottom);
      },
      "weft: a stack ran over: 'who ran over', which runs .*lambda");
}

TEST_F(overflow_seen, not_where_a_pointer_is_just_wrong) {
  const auto run = [](auto at) {
    stack_pool pool{{.guard = weft::detail::best_guard()}};
    coroutine<void()> one{{.pool = &pool}, [&](auto&) { *at(pool) = 1; }};
    one.resume();
  };
  static volatile int* volatile nowhere = nullptr;  // or g++ sees that the write is undefined, and leaves it out
  const auto null = [](stack_pool&) { return nowhere; };
  // Above the uppermost stack that was ever used lies the guard of one that is ready.
  [[maybe_unused]] const auto above = [](stack_pool& pool) {
    take(pool, 1, std::size_t{64} << 10);
    stack_header& last = pool.take(std::size_t{64} << 10);
    return reinterpret_cast<volatile int*>((reinterpret_cast<std::uintptr_t>(&last) | 4095) + 4096);
  };
#if defined(WEFT_TEST_ASAN) || defined(WEFT_TEST_TSAN)
  EXPECT_DEATH(run(null), "SEGV|null pointer");
#else
  EXPECT_EXIT(run(null), testing::KilledBySignal(SIGSEGV), "");
  if (weft::detail::best_guard() == stack_guard::none) GTEST_SKIP() << "nothing guards stacks here";
  EXPECT_EXIT(run(above), testing::KilledBySignal(SIGSEGV), "^(weft: chaos, with seed [0-9]+\n)?(qemu: .*)?$");
#endif
}

TEST_F(overflow_seen, memory_of_ones_own_that_is_too_small) {
  static std::array<std::byte, weft::least_stack_size> memory;
  const std::span too_small = std::span{memory}.first(weft::least_stack_size - 1);
  EXPECT_DEATH((coroutine<void()>{{.memory = too_small}, [](auto&) {}}), "weft: a stack in memory of one's own needs");
  coroutine<void()> large_enough{{.memory = memory}, [](auto&) {}};
  large_enough.resume();
}

TEST_F(overflow_seen, a_pool_that_dies_before_its_coroutines) {
  const auto run = [] {
    stack_pool pool;
    pool.take(4096);
  };
  EXPECT_DEATH(run(), "weft: a stack_pool was destroyed while something runs on its stacks");
}

TEST_F(overflow_seen, shadow_stacks) {
  weft::detail::refuse_shadow_stacks();
  weft::detail::expect_no_shadow_stack(0);
  weft::detail::expect_no_shadow_stack(6);  // what may be done with one that is not on
#if defined(__x86_64__)
  const char* advice = "GLIBC_TUNABLES=glibc.cpu.x86_shstk=off";
#elif defined(__aarch64__)
  const char* advice = "GLIBC_TUNABLES=glibc.cpu.aarch64_gcs=0";
#else
  const char* advice = "build the program without -fcf-protection=return";
#endif
  const std::string sentence = std::string{"weft: stacks can't be switched while the kernel checks .*"} + advice;
  EXPECT_DEATH(weft::detail::expect_no_shadow_stack(1), sentence);
#if !defined(__x86_64__)
  has_shadow_stack = true;
  EXPECT_DEATH(stack_pool{}, sentence);
  has_shadow_stack = false;
#endif
}

// ---- the process's pool -------------------------------------------------------------------------------------------------

class process_wide : public testing::Test {
 protected:
  void SetUp() override {
    if (std::getenv("WEFT_TEST_EMULATED") != nullptr) GTEST_SKIP() << "no process starts anew here";
    start_anew();
  }
};

TEST_F(process_wide, has_the_options_that_it_is_given) {
  const auto starts = [] {
    std::pmr::monotonic_buffer_resource memory;
    stack_pool& pool =
        stack_pool::configure_process_wide({.guard = stack_guard::none, .min_idle = 0, .memory = &memory});
    coroutine<int()> one{[](auto&) { return 7; }};
    int called = one.resume();
    weft::call_on_stack(std::size_t{16} << 10, [&] { ++called; });
    const auto body = [&](weft::scope& in) -> weft::task<> {
      in.go([&] { ++called; });
      co_return;
    };
    weft::sync_wait(weft::with_scope(body));
    const weft::stack_pool_stats stats = stack_pool::process_wide().stats();
    std::fputs(pool.limits().sentence.c_str(), stderr);
    std::_Exit(called == 9 && stats.taken == 3 && &pool == &stack_pool::process_wide() ? 0 : 1);
  };
  EXPECT_EXIT(starts(), testing::ExitedWithCode(0), "(^|\n)stacks are not guarded, as was asked for");
}

TEST_F(process_wide, can_be_asked_for_less_when_it_was_too_much) {
  const auto starts = [] {
    try {
      stack_pool::configure_process_wide({.huge_pages = true});
    } catch (const weft::error& refused) {
      std::fputs(refused.what(), stderr);
    }
    const stack_pool& pool = stack_pool::configure_process_wide({.max_stacks = 3});
    std::_Exit(static_cast<int>(pool.limits().most_stacks));
  };
  EXPECT_EXIT(starts(), testing::ExitedWithCode(3), "huge pages and guards: a guard splits the page");
}

TEST_F(process_wide, can_only_be_configured_before_its_use) {
  const auto used = [] {
    const coroutine<void()> one{[](auto&) {}};
    stack_pool::configure_process_wide({});
  };
  EXPECT_DEATH(used(),
               "weft: stack_pool::configure_process_wide was called when the process had that pool: call it once");
  const auto twice = [] {
    stack_pool::configure_process_wide({.max_stacks = 3});
    stack_pool::configure_process_wide({.max_stacks = 3});
  };
  EXPECT_DEATH(twice(),
               "weft: stack_pool::configure_process_wide was called when the process had that pool: call it once");
}

// ---- misuse of coroutines -------------------------------------------------------------------------------------------------

TEST_F(overflow_seen, coroutines_misused) {
  const auto ended = [] {
    coroutine<void()> one{[](auto&) {}};
    one.resume();
    one.resume();
  };
  EXPECT_DEATH(ended(), "weft: a coroutine was resumed that has ended, or is empty");
  const auto inside = [] {
    coroutine<void()> one;
    one = coroutine<void()>{[&](auto&) { one.resume(); }};
    one.resume();
  };
  EXPECT_DEATH(inside(), "weft: a coroutine was resumed while it runs");
  const auto destroys_itself = [] {
    coroutine<void()> one;
    one = coroutine<void()>{[&](auto&) { one = {}; }};
    one.resume();
  };
  EXPECT_DEATH(destroys_itself(), "weft: a coroutine was destroyed while it runs");

  const auto moves_itself = [] {
    std::vector<coroutine<void()>> all;
    all.emplace_back([&](auto&) {
      for (int i = 0; i != 10; ++i) all.emplace_back([](auto&) {});  // the first one, too
    });
    all.front().resume();
  };
  EXPECT_DEATH(moves_itself(), "weft: a coroutine was moved while it runs");

  const auto has_no_room = [] {
    std::vector<std::byte> memory(weft::least_stack_size);
    const auto large = [room = std::array<char, 4096>{}](auto&) { static_cast<void>(room); };
    coroutine<void()> one{{.memory = memory}, large};
  };
  EXPECT_DEATH(has_no_room(), "weft: a coroutine's function has no room in the memory that its stack is to lie in");

  const auto throws_nothing = [] {
    coroutine<void()> one{[](auto& yield) { yield(); }};
    one.resume();
    one.resume_throwing(nullptr);
  };
  EXPECT_DEATH(throws_nothing(), "weft: resume_throwing was given no exception");
  const auto foreign_yield = [] {
    coroutine<void()>::yielder* kept = nullptr;
    coroutine<void()> one{[&](auto& yield) {
      kept = &yield;
      yield();
    }};
    one.resume();
    (*kept)();
  };
  EXPECT_DEATH(foreign_yield(), "weft: yield was called by something else than the coroutine");
}

}  // namespace
