// Coroutines by hand, on every kind of stack that there is.
#include <weft/coroutine.hpp>
#include <weft/fiber.hpp>
#include <weft/stack_pool.hpp>

#include <sys/mman.h>
#include <unwind.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cfenv>
#include <cstdint>
#include <cstring>
#include <exception>
#include <memory>
#include <memory_resource>
#include <optional>
#include <ostream>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "support/weft_test.hpp"

namespace {

using weft::coroutine;
using weft::stack_guard;
using weft::stack_pool;

struct kind {
  const char* name;
  weft::stack_pool_options options;
  bool own_memory = false;
};
// NOLINTNEXTLINE(readability-identifier-naming): GoogleTest's
void PrintTo(const kind& one, std::ostream* to) { *to << one.name; }

std::pmr::monotonic_buffer_resource& arena() {
  static std::pmr::monotonic_buffer_resource one;
  return one;
}

const std::vector<kind>& kinds() {
  static const std::vector<kind> all{
      {"madvise", {.guard = stack_guard::madvise}},
      {"mprotect", {.guard = stack_guard::mprotect}},
      {"unguarded", {.guard = stack_guard::none}},
      {"huge_pages", {.guard = stack_guard::none, .huge_pages = true}},
      {"uncoloured", {.coloured = false}},
      {"of_a_resource", {.memory = &arena()}},
      {"ones_own", {}, true},
  };
  return all;
}

bool works(const weft::stack_pool_options& options) {
  try {
    const stack_pool one{options};
    return true;
  } catch (const weft::error& refused) {
    EXPECT_EQ(refused.code(), std::errc::not_supported);
    return false;
  }
}

// A test on each kind of stack.
class on_stacks : public testing::TestWithParam<kind> {
 protected:
  void SetUp() override {
    if (!works(GetParam().options)) GTEST_SKIP() << "this kernel has no such guard";
    pool_.emplace(GetParam().options);
  }
  /// For the next coroutine.
  weft::stack_options stack() {
    if (!GetParam().own_memory) return {.pool = &*pool_};
    memories_.push_back(std::make_unique<memory>());
    return {.memory = *memories_.back()};
  }

 private:
  using memory = std::array<std::byte, std::size_t{64} << 10>;
  std::optional<stack_pool> pool_;
  std::vector<std::unique_ptr<memory>> memories_;
};

INSTANTIATE_TEST_SUITE_P(kinds, on_stacks, testing::ValuesIn(kinds()),
                         [](const auto& one) { return std::string{one.param.name}; });

TEST_P(on_stacks, values_pass_both_ways) {
  coroutine<int(int)> sum{stack(), [](auto& yield, int next) {
                            int all = 0;
                            while (next != 0) next = yield(all += next);
                            return -all;
                          }};
  EXPECT_FALSE(sum.done());
  EXPECT_EQ(sum.resume(1), 1);
  EXPECT_EQ(sum.resume(2), 3);
  EXPECT_FALSE(sum.done());
  EXPECT_EQ(sum.resume(0), -3);
  EXPECT_TRUE(sum.done());
}

TEST_P(on_stacks, what_it_throws_is_thrown_by_resume) {
  coroutine<void()> fails{stack(), [](auto& yield) {
                            yield();
                            throw std::runtime_error{"in there"};
                          }};
  fails.resume();
  try {
    fails.resume();
    ADD_FAILURE() << "nothing was thrown";
  } catch (const std::runtime_error& thrown) {
    EXPECT_STREQ(thrown.what(), "in there");
  }
  EXPECT_TRUE(fails.done());
}

TEST_P(on_stacks, one_that_is_destroyed_half_way_unwinds) {
  std::atomic<int> alive = 0;
  {
    coroutine<void()> half{stack(), [one = test::counted{alive}](auto& yield) {
                             const test::counted other = one;
                             yield();
                             ADD_FAILURE() << "it went on";
                           }};
    EXPECT_EQ(alive, 1);
    half.resume();
    EXPECT_EQ(alive, 2);
  }
  EXPECT_EQ(alive, 0);
}

TEST_P(on_stacks, many_at_once_and_again) {
  for (int again = 0; again != 3; ++again) {
    std::vector<coroutine<int()>> all;
    for (int i = 0; i != 100; ++i)
      all.emplace_back(stack(), [i](auto& yield) {
        for (int turn = 0; turn != 3; ++turn) yield(i + turn);
        return -1;
      });
    for (int turn = 0; turn != 3; ++turn)
      for (int i = 0; i != 100; ++i) EXPECT_EQ(all[static_cast<std::size_t>(i)].resume(), i + turn);
    for (auto& one : all) EXPECT_EQ(one.resume(), -1);
  }
}

int depth_of(int n) {
  volatile char room[256];
  room[0] = static_cast<char>(n);
  return n == 0 ? room[0] : 1 + depth_of(n - 1);
}

TEST_P(on_stacks, there_is_as_much_as_was_asked_for) {
  coroutine<int()> deep{stack(), [](auto&) {
                          volatile char room[std::size_t{56} << 10];
                          for (std::size_t i = 0; i < sizeof room; i += 1024) room[i] = 1;
                          return static_cast<int>(room[1024]);
                        }};
  EXPECT_EQ(deep.resume(), 1);
}

// Destroyed half-way, the first of them as the first thing that is thrown in this process, if it runs alone.
TEST_P(on_stacks, the_smallest_has_room_to_unwind) {
#if defined(WEFT_TEST_ASAN) || defined(WEFT_TEST_TSAN)
  GTEST_SKIP()
      << "frames have red zones here, and what the sanitizer does when something is thrown runs on the stack, too";
#endif
  std::vector<std::byte> memory(weft::least_stack_size);
  weft::stack_options smallest = stack();
  if (smallest.memory.empty())
    smallest.size = 1;
  else
    smallest.memory = memory;
  std::atomic<int> alive = 0;
  for (int i = 0; i != 3; ++i) {
    coroutine<void()> one{smallest, [&](auto& yield) {
                            const test::counted here{alive};
                            try {
                              throw std::runtime_error{"caught there"};
                            } catch (const std::runtime_error&) {
                              yield();
                            }
                          }};
    one.resume();
    EXPECT_EQ(alive, 1);
  }
  EXPECT_EQ(alive, 0);
}

// ---- what passes ------------------------------------------------------------------------------------------------------

TEST(coroutine, passes_objects_that_only_move) {
  using box = std::unique_ptr<int>;
  coroutine<box(box)> doubles{[](auto& yield, box in) {
    for (int i = 0; i != 2; ++i) in = yield(std::make_unique<int>(2 * *in));
    return in;
  }};
  EXPECT_EQ(*doubles.resume(std::make_unique<int>(4)), 8);
  EXPECT_EQ(*doubles.resume(std::make_unique<int>(5)), 10);
  EXPECT_EQ(*doubles.resume(std::make_unique<int>(6)), 6);
}

TEST(coroutine, passes_references) {
  int mine = 1, other = 5;
  coroutine<int&(int&)> passes{[&](auto& yield, int& in) -> int& {
    in += 10;
    int& again = yield(other);
    return again;
  }};
  EXPECT_EQ(&passes.resume(mine), &other);
  EXPECT_EQ(mine, 11);
  EXPECT_EQ(&passes.resume(mine), &mine);

  coroutine<std::string && (std::string&&)> passes_on{[](auto& yield, std::string&& in) -> std::string&& {
    std::string&& again = yield(std::move(in));
    return std::move(again);
  }};
  std::string first = "first", second = "second";
  EXPECT_EQ(std::string{passes_on.resume(std::move(first))}, "first");
  EXPECT_TRUE(first.empty());  // NOLINT(bugprone-use-after-move): that is what is asked
  EXPECT_EQ(std::string{passes_on.resume(std::move(second))}, "second");
  EXPECT_TRUE(passes_on.done());
}

TEST(coroutine, copies_and_destroys_no_value_more_than_it_must) {
  std::atomic<int> alive = 0;
  {
    coroutine<test::counted(test::counted)> passes{[](auto& yield, test::counted in) {
      test::counted next = yield(std::move(in));
      return next;
    }};
    {
      const auto out = passes.resume(test::counted{alive});
    }
    {
      const auto out = passes.resume(test::counted{alive});
    }
    EXPECT_TRUE(passes.done());
  }
  EXPECT_EQ(alive, 0);
}

void count_to(coroutine<int(int)>::yielder& yield, int& last) {
  for (int i = 1; i != 4; ++i) last = yield(i);
}

TEST(coroutine, yields_from_any_depth_and_takes_plain_functions) {
  int seen = 0;
  coroutine<int(int)> counts{[&](auto& yield, int first) {
    seen = first;
    count_to(yield, seen);
    return 0;
  }};
  EXPECT_EQ(counts.resume(7), 1);
  EXPECT_EQ(seen, 7);
  EXPECT_EQ(counts.resume(8), 2);
  EXPECT_EQ(seen, 8);
  EXPECT_EQ(counts.resume(9), 3);
  EXPECT_EQ(seen, 9);

  coroutine<int(int)> plain{+[](coroutine<int(int)>::yielder&, int n) { return n + 1; }};
  EXPECT_EQ(plain.resume(1), 2);
}

TEST(coroutine, one_resumes_another) {
  coroutine<int()> inner{[](auto& yield) {
    yield(1);
    yield(2);
    return 3;
  }};
  coroutine<int()> outer{[&](auto& yield) {
    while (true) {
      const int n = inner.resume();
      if (inner.done()) return 10 * n;
      yield(10 * n);
    }
  }};
  EXPECT_EQ(outer.resume(), 10);
  EXPECT_EQ(outer.resume(), 20);
  EXPECT_EQ(outer.resume(), 30);
  EXPECT_TRUE(outer.done());
}

TEST(coroutine, moves_and_swaps) {
  coroutine<int()> empty;
  EXPECT_TRUE(empty.done());
  EXPECT_FALSE(empty);
  coroutine<int()> one{[](auto& yield) {
    yield(1);
    return 2;
  }};
  EXPECT_EQ(one.resume(), 1);
  empty = std::move(one);
  EXPECT_FALSE(one);  // NOLINT(bugprone-use-after-move): that is what is asked
  EXPECT_EQ(empty.resume(), 2);

  std::atomic<int> alive = 0;
  coroutine<int()> waits{[&](auto& yield) {
    const test::counted here{alive};
    yield(1);
    return 2;
  }};
  waits.resume();
  EXPECT_EQ(alive, 1);
  coroutine<int()> other{[](auto&) { return 7; }};
  waits = std::move(other);  // what it was is destroyed half-way
  EXPECT_EQ(alive, 0);
  EXPECT_TRUE(other.done());  // NOLINT(bugprone-use-after-move): that is what is asked
  auto& itself = waits;
  waits = std::move(itself);
  EXPECT_EQ(waits.resume(), 7);
}

struct alignas(256) wide {
  std::array<char, 512> room{};
};

TEST(coroutine, a_function_may_be_large_and_aligned) {
  wide big;
  big.room[7] = 'x';
  coroutine<char()> reads{{.size = 4096}, [big](auto&) {
                            EXPECT_EQ(reinterpret_cast<std::uintptr_t>(&big) % 256, 0u);
                            return big.room[7];
                          }};
  EXPECT_EQ(reads.resume(), 'x');
}

// ---- exceptions -----------------------------------------------------------------------------------------------------------

TEST(coroutine, what_is_thrown_in_is_thrown_by_yield) {
  coroutine<std::string()> listens{[](auto& yield) {
    for (;;) {
      try {
        yield("fine");
      } catch (const std::runtime_error& thrown) {
        if (std::string{thrown.what()} == "last") return std::string{"done"};
        yield(thrown.what());
      }
    }
  }};
  EXPECT_EQ(listens.resume(), "fine");
  EXPECT_EQ(listens.resume_throwing(std::make_exception_ptr(std::runtime_error{"first"})), "first");
  EXPECT_EQ(listens.resume(), "fine");
  EXPECT_EQ(listens.resume_throwing(std::make_exception_ptr(std::runtime_error{"last"})), "done");
  EXPECT_TRUE(listens.done());
}

TEST(coroutine, what_is_thrown_in_and_not_caught_comes_out) {
  coroutine<void()> lets_pass{[](auto& yield) { yield(); }};
  lets_pass.resume();
  EXPECT_THROW(lets_pass.resume_throwing(std::make_exception_ptr(7)), int);
  EXPECT_TRUE(lets_pass.done());

  bool ran = false;
  coroutine<void()> new_one{[&](auto&) { ran = true; }};
  EXPECT_THROW(new_one.resume_throwing(std::make_exception_ptr(7)), int);
  EXPECT_FALSE(ran);
}

TEST(coroutine, its_own_stopped_comes_out) {
  coroutine<void()> stops{[](auto&) { throw weft::stopped{}; }};
  EXPECT_THROW(stops.resume(), weft::stopped);
}

TEST(coroutine, a_stop_that_is_swallowed_is_thrown_again) {
  int swallowed = 0;
  {
    coroutine<void()> stubborn{[&](auto& yield) {
      for (int i = 0; i != 3; ++i) {
        try {
          yield();
        } catch (...) {
          ++swallowed;
        }
      }
    }};
    stubborn.resume();
  }
  EXPECT_EQ(swallowed, 3);
}

TEST(coroutine, one_that_never_began_destroys_its_function) {
  std::atomic<int> alive = 0;
  {
    const coroutine<void()> unused{[one = test::counted{alive}](auto&) { FAIL(); }};
  }
  EXPECT_EQ(alive, 0);
}

int lost = 0;

TEST(coroutine, what_its_unwinding_throws_is_lost_but_not_silently) {
  lost = 0;
  const auto before = weft::set_lost_error_handler([](const char*, const std::exception_ptr&) noexcept { ++lost; });
  {
    coroutine<void()> fails{[](auto& yield) {
      try {
        yield();
      } catch (const weft::stopped&) {
        throw std::runtime_error{"on the way out"};
      }
    }};
    fails.resume();
  }
  weft::set_lost_error_handler(before);
  EXPECT_EQ(lost, 1);
}

// Each side handles an exception of its own while the other one runs, throws and catches.
TEST(coroutine, an_exception_that_is_handled_stays_its_sides_own) {
  coroutine<std::string()> handles{[](auto& yield) {
    try {
      throw std::runtime_error{"inner"};
    } catch (...) {
      yield("handling");
      try {
        throw;
      } catch (const std::runtime_error& still) {
        yield(still.what());
      }
      yield(std::uncaught_exceptions() == 0 ? "none on its way" : "one on its way");
    }
    return std::string{std::current_exception() ? "left over" : "none"};
  }};
  try {
    throw std::logic_error{"outer"};
  } catch (...) {
    EXPECT_EQ(handles.resume(), "handling");
    try {
      throw 5;
    } catch (int) {
      EXPECT_EQ(handles.resume(), "inner");
    }
    try {
      throw;
    } catch (const std::logic_error& still) {
      EXPECT_STREQ(still.what(), "outer");
    }
  }
  EXPECT_FALSE(std::current_exception());
  EXPECT_EQ(handles.resume(), "none on its way");
  EXPECT_EQ(handles.resume(), "none");
}

struct resumes_when_destroyed {
  coroutine<int()>& other;
  ~resumes_when_destroyed() {
    EXPECT_EQ(std::uncaught_exceptions(), 1);
    EXPECT_EQ(other.resume(), 0);
    EXPECT_EQ(std::uncaught_exceptions(), 1);
  }
};

TEST(coroutine, can_be_resumed_while_an_exception_is_on_its_way) {
  coroutine<int()> counts{[](auto& yield) {
    for (;;) yield(std::uncaught_exceptions());
    return 0;
  }};
  EXPECT_EQ(counts.resume(), 0);
  try {
    const resumes_when_destroyed last{counts};
    throw 1;
  } catch (int) {
    EXPECT_EQ(counts.resume(), 0);
  }
}

// ---- what else a switch keeps ---------------------------------------------------------------------------------------

double third(double by) {
  volatile double one = 1, three = by;
  return one / three;
}

// Both ways that x86-64 has of keeping mxcsr, whatever the processor.
class control_words : public testing::TestWithParam<bool> {
#if defined(__x86_64__)
  void SetUp() override { weft::detail::loads_mxcsr = GetParam(); }
  void TearDown() override { weft::detail::loads_mxcsr = before_; }
  const bool before_ = weft::detail::loads_mxcsr;
#endif
};
INSTANTIATE_TEST_SUITE_P(coroutine, control_words, testing::Bool(),
                         [](const auto& info) { return info.param ? "always_loaded" : "loaded_where_they_differ"; });

TEST_P(control_words, each_side_rounds_in_its_own_way) {
  const double nearest = third(3);
  coroutine<double()> rounds{[](auto& yield) {
    std::fesetround(FE_UPWARD);
    for (;;) yield(third(3));
    return 0.0;
  }};
  const double up = rounds.resume();
  EXPECT_EQ(std::fegetround(), FE_TONEAREST);
  EXPECT_EQ(third(3), nearest);
  EXPECT_GT(up, nearest);
  EXPECT_EQ(rounds.resume(), up);
  EXPECT_EQ(std::fegetround(), FE_TONEAREST);

  std::fesetround(FE_DOWNWARD);
  coroutine<int()> inherits{[](auto& yield) {
    yield(std::fegetround());
    return std::fegetround();
  }};
  EXPECT_EQ(inherits.resume(), FE_DOWNWARD);
  std::fesetround(FE_TONEAREST);
  EXPECT_EQ(inherits.resume(), FE_DOWNWARD);
  EXPECT_EQ(std::fegetround(), FE_TONEAREST);
}

#if defined(__x86_64__)
TEST_P(control_words, of_the_x87_alone) {
  const auto word = [] {
    std::uint16_t now;
    asm volatile("fnstcw %0" : "=m"(now));
    return now;
  };
  const std::uint16_t before = word();
  coroutine<int()> imprecise{[&](auto& yield) {
    const std::uint16_t single = before & static_cast<std::uint16_t>(~0x300);
    asm volatile("fldcw %0" : : "m"(single));
    yield(0);
    return static_cast<int>(word());
  }};
  imprecise.resume();
  EXPECT_EQ(word(), before);
  EXPECT_EQ(imprecise.resume(), before & ~0x300);
  EXPECT_EQ(word(), before);
}
#endif

// Values that a compiler would like to keep in registers over the switch, of each kind.
template <class T>
T through_switches(coroutine<void()>& other, T a, T b, T c, T d) {
  T all = a;
  for (int i = 0; i != 4; ++i) {
    all = all * b + c;
    other.resume();
    all = all - d;
  }
  return all;
}

TEST(coroutine, registers_survive) {
  coroutine<void()> other{[](auto& yield) {
    double x = 1.5, y = 2.5;
    long i = 1, j = 2, k = 3;
    for (;;) {
      yield();
      x = y / 2 + 1, y = x / 3 + 1, i += j, j ^= k, k += i;
      EXPECT_GT(x, y);
    }
  }};
  EXPECT_EQ(through_switches<long>(other, 3, 5, 7, 9), 3 * 625 + (7 - 9) * (125 + 25 + 5 + 1));
  EXPECT_EQ(through_switches<double>(other, 3, 5, 7, 9), 3 * 625 + (7 - 9) * (125 + 25 + 5 + 1));
  EXPECT_EQ(through_switches<long double>(other, 3, 5, 7, 9), 3 * 625 + (7 - 9) * (125 + 25 + 5 + 1));
}

// Called, so that no compiler takes it for the same in a function that has yielded meanwhile.
[[gnu::noinline]] std::thread::id this_thread() {
  asm volatile("");
  return std::this_thread::get_id();
}

TEST(coroutine, may_be_resumed_by_one_thread_after_the_other) {
  coroutine<std::thread::id()> where{[](auto& yield) {
    for (;;) {
      try {
        throw 1;
      } catch (int) {  // whose handling goes on on another thread
        yield(this_thread());
        EXPECT_NE(std::current_exception(), nullptr);
      }
      EXPECT_EQ(std::current_exception(), nullptr);
    }
    return std::thread::id{};
  }};
  for (int i = 0; i != 20; ++i) {
    std::thread{[&] { EXPECT_EQ(where.resume(), std::this_thread::get_id()); }}.join();
    EXPECT_EQ(where.resume(), std::this_thread::get_id());
  }
}

[[gnu::noinline]] std::vector<const void*> callers() {
  std::vector<const void*> all;
  _Unwind_Backtrace(
      [](_Unwind_Context* at, void* to) {
        static_cast<std::vector<const void*>*>(to)->push_back(
            _Unwind_FindEnclosingFunction(reinterpret_cast<void*>(_Unwind_GetIP(at) - 1)));
        return _URC_NO_REASON;
      },
      &all);
  return all;
}

[[gnu::noinline]] void resume_it(coroutine<void()>& which) {
  which.resume();
  asm volatile("");  // not the last call
}

// So do debuggers and profilers, which read the same tables.
TEST(coroutine, its_stack_goes_on_in_who_resumed_it) {
  std::vector<const void*> seen;
  coroutine<void()> looks{[&](auto& yield) {
    for (;;) {
      seen = callers();
      yield();
    }
  }};
  resume_it(looks);
  const auto begins = [](auto* function) { return reinterpret_cast<const void*>(function); };
  EXPECT_NE(std::ranges::find(seen, begins(&resume_it)), seen.end());
  coroutine<void()> between{[&](auto&) { looks.resume(); }};
  resume_it(between);
  EXPECT_NE(std::ranges::find(seen, begins(&resume_it)), seen.end());
}

// ---- branch tracking ----------------------------------------------------------------------------------------------------

#if (defined(__x86_64__) || defined(__aarch64__)) && !defined(WEFT_TEST_ASAN) && !defined(WEFT_TEST_TSAN)

// Where a processor that tracks branches lets an indirect jump land: endbr64, bti j.
bool is_landing(const void* code) {
#if defined(__x86_64__)
  constexpr std::uint32_t expected = 0xfa1e0ff3;
#else
  constexpr std::uint32_t expected = 0xd503249f;
#endif
  std::uint32_t word;
  std::memcpy(&word, code, sizeof word);
  return word == expected;
}

// The switch by itself: what a coroutine jumps to, at its first turn and at others, on both sides. On AArch64 the processor
// is told to check the pages of that code; user programs on x86-64 are not checked by Linux yet.
TEST(context, lands_where_branch_tracking_allows_it) {
  struct both_sides {
    weft::detail::context here;
    std::vector<const void*> resumers;
  } both;
  alignas(64) static std::array<std::byte, std::size_t{64} << 10> stack;
  weft::detail::prepare_context(
      both.here, stack.data() + stack.size(),
      [](void* argument, void*) {
        auto& mine = *static_cast<both_sides*>(argument);
        for (;;) {
          mine.resumers.push_back(mine.here.resume_at);
          weft::detail::jump(mine.here, nullptr);
        }
      },
      &both);
  both.resumers.reserve(3);
  EXPECT_EQ(both.here.resume_at, weft::detail::outermost_code().begin);
  for (int turn = 0; turn != 3; ++turn) {
    EXPECT_TRUE(is_landing(both.here.resume_at)) << turn;
#if defined(__aarch64__) && defined(__ARM_FEATURE_BTI_DEFAULT)
    constexpr int checked = 0x10;  // PROT_BTI
    const auto page = reinterpret_cast<std::uintptr_t>(both.here.resume_at) & ~std::uintptr_t{4095};
    EXPECT_EQ(::mprotect(reinterpret_cast<void*>(page), 4096, PROT_READ | PROT_EXEC | checked), 0);
#endif
    weft::detail::jump(both.here, nullptr);
  }
  EXPECT_EQ(both.resumers.size(), 3U);
  for (const void* resumer : both.resumers) EXPECT_TRUE(is_landing(resumer));
}

#endif

// ---- without memory -------------------------------------------------------------------------------------------------------

TEST(coroutine, without_a_stack_nothing_has_begun) {
  for (std::size_t nth = 0; nth != 2; ++nth) {
    test::counting_resource resource;
    resource.fail_after = nth;
    std::atomic<int> alive = 0;
    {
      stack_pool pool{{.memory = &resource}};
      std::vector<coroutine<int()>> made;
      const auto make = [&](std::size_t size) {
        made.emplace_back(weft::stack_options{.size = size, .pool = &pool},
                          [one = test::counted{alive}](auto&) { return 1; });
      };
      if (nth == 1) make(4096);
      EXPECT_THROW(make(1 << 20), std::bad_alloc);
      EXPECT_EQ(alive, static_cast<int>(nth));
      for (auto& one : made) EXPECT_EQ(one.resume(), 1);
      EXPECT_EQ(pool.stats().in_use, 0u);
    }
    EXPECT_EQ(alive, 0);
    EXPECT_EQ(resource.live, 0u);
  }
}

TEST(coroutine, a_size_that_no_stack_has_is_refused) {
  for (const std::size_t size : {~std::size_t{0}, std::size_t{1} << 40}) {
    const auto small = [](auto&) { return 1; };
    EXPECT_THROW((coroutine<int()>{{.size = size}, small}), std::bad_alloc);
    const auto large = [room = std::array<char, 4096>{}](auto&) { return int{room[0]}; };
    EXPECT_THROW((coroutine<int()>{{.size = size}, large}), std::bad_alloc);
  }
}

// A switch to the one below looks as a frame of its size would to valgrind, unless that is told of both stacks.
TEST(coroutine, two_side_by_side_in_memory_of_ones_own) {
  constexpr std::size_t size = std::size_t{32} << 10;
  std::vector<std::byte> memory(2 * size);
  for (int again = 0; again != 2; ++again) {
    coroutine<int(int)> lower{{.memory = std::span{memory}.first(size)}, [](auto& yield, int next) {
                                int all = 0;
                                while (next != 0) next = yield(all += next);
                                return all;
                              }};
    coroutine<int(int)> upper{{.memory = std::span{memory}.last(size)}, [&lower](auto& yield, int next) {
                                int all = 0;
                                while (next != 0) next = yield(all += lower.resume(next));
                                return all + lower.resume(0);
                              }};
    EXPECT_EQ(upper.resume(1), 1);
    EXPECT_EQ(upper.resume(2), 4);
    EXPECT_EQ(upper.resume(3), 10);
    EXPECT_EQ(upper.resume(0), 16);
  }
}

TEST(coroutine, a_function_that_cannot_be_moved_in_costs_no_stack) {
  struct throws_when_moved {
    throws_when_moved() = default;
    throws_when_moved(const throws_when_moved&) { throw std::runtime_error{"not this one"}; }
    void operator()(coroutine<void()>::yielder&) const {}
  } const function;
  stack_pool pool;
  EXPECT_THROW((coroutine<void()>{{.pool = &pool}, function}), std::runtime_error);
  EXPECT_EQ(pool.stats().in_use, 0u);
}

TEST(coroutine, a_million_of_them_need_one_stack) {
  stack_pool pool;
  int all = 0;
  for (int i = 0; i != test::rounds(1'000'000); ++i) {
    coroutine<int()> one{{.pool = &pool}, [](auto& yield) {
                           yield(1);
                           return 0;
                         }};
    all += one.resume();
    if (i % 16 != 0) one.resume();  // unwinding takes a hundred times as long
  }
  EXPECT_EQ(all, test::rounds(1'000'000));
  EXPECT_EQ(pool.stats().made, 1u);
}

// ---- call_on_stack ----------------------------------------------------------------------------------------------------

TEST(call_on_stack, gives_and_throws_what_its_function_does) {
  EXPECT_EQ(weft::call_on_stack(std::size_t{8} << 20, [] { return depth_of(20'000); }), 20'000);
  int here = 0;
  EXPECT_EQ(&weft::call_on_stack(4096, [&]() -> int& { return here; }), &here);
  EXPECT_EQ(*weft::call_on_stack(std::size_t{64} << 10, [] { return std::make_unique<int>(3); }), 3);
  weft::call_on_stack(std::size_t{64} << 10, [&] { here = 4; });
  EXPECT_EQ(here, 4);
  std::atomic<int> alive = 0;
  try {
    weft::call_on_stack(std::size_t{64} << 10, [&] {
      const test::counted one{alive};
      throw std::runtime_error{"from there"};
    });
    ADD_FAILURE() << "nothing was thrown";
  } catch (const std::runtime_error& thrown) {
    EXPECT_STREQ(thrown.what(), "from there");
  }
  EXPECT_EQ(alive, 0);
}

TEST(call_on_stack, inside_a_coroutine_that_yields_from_there) {
  coroutine<int()> yields{{.size = 8192}, [](auto& yield) {
                            weft::call_on_stack(std::size_t{1} << 20, [&] {
                              yield(depth_of(1000));
                              weft::call_on_stack(std::size_t{1} << 20, [&] { yield(depth_of(1001)); });
                            });
                            return 0;
                          }};
  EXPECT_EQ(yields.resume(), 1000);
  EXPECT_EQ(yields.resume(), 1001);
  EXPECT_EQ(yields.resume(), 0);
}

}  // namespace
