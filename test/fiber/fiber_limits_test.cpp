// Fibers at their limits: each call that gives them memory fails once, and then very many of them are made and ended.
//
// WEFT_SOAK=10000000 makes so many (./dev soak).
#include <weft/fiber.hpp>

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <new>
#include <string>
#include <system_error>
#include <utility>
#include <vector>
#include <weft/coroutine.hpp>
#include <weft/scope.hpp>
#include <weft/stack_pool.hpp>
#include <weft/sync.hpp>

#include "support/weft_test.hpp"

// ---- a system that has no memory ----------------------------------------------------------------------------------------

#if !defined(WEFT_TEST_ASAN) && !defined(WEFT_TEST_TSAN)  // which have functions of their own there

namespace {

long fails_at = -1;  // that call fails, counted from 0; -1: none does
long calls = 0;
long mapped = 0;      // bytes, of what weft has asked for
bool is_old = false;  // knows no MADV_GUARD_INSTALL

bool is_to_fail() noexcept {
  if (calls++ != fails_at) return false;
  errno = ENOMEM;
  return true;
}

}  // namespace

// In front of the C library's, for all but itself.
extern "C" {
void* mmap(void* at, std::size_t bytes, int protection, int flags, int file, off_t offset) noexcept {
  if (is_to_fail()) return MAP_FAILED;
  mapped += static_cast<long>(bytes);
  return reinterpret_cast<void*>(::syscall(SYS_mmap, at, bytes, protection, flags, file, offset));
}
int munmap(void* at, std::size_t bytes) noexcept {
  mapped -= static_cast<long>(bytes);
  return static_cast<int>(::syscall(SYS_munmap, at, bytes));
}
int mprotect(void* at, std::size_t bytes, int protection) noexcept {
  return is_to_fail() ? -1 : static_cast<int>(::syscall(SYS_mprotect, at, bytes, protection));
}
int madvise(void* at, std::size_t bytes, int advice) noexcept {
  if (is_old && advice == 102) return errno = EINVAL, -1;
  return is_to_fail() ? -1 : static_cast<int>(::syscall(SYS_madvise, at, bytes, advice));
}
// Of many ranges at once, where the system has that: it may refuse what it would do for each.
ssize_t process_madvise(int process, const iovec* ranges, std::size_t count, int advice, unsigned flags) noexcept {
  if (is_old) return errno = EINVAL, -1;
  if (is_to_fail()) return -1;
  return ::syscall(SYS_process_madvise, process, ranges, count, advice, flags);
}
}

namespace {

/// Takes stacks of several sizes, uses and gives them back. Returns how many could not be had.
int use_stacks(weft::stack_pool& pool) {
  int refused = 0;
  std::vector<weft::coroutine<int()>> all;
  for (int i = 0; i != 30; ++i) try {
      const std::size_t size = std::size_t{4096} << (i % 3 * 4);
      all.emplace_back(weft::stack_options{.size = size, .pool = &pool}, [i](auto& yield) {
        yield(i);
        return i + 1;
      });
      EXPECT_EQ(all.back().resume(), i);
    } catch (const std::bad_alloc&) {
      ++refused;
    } catch (const std::system_error& failure) {
      EXPECT_EQ(failure.code(), std::errc::not_enough_memory);
      ++refused;
    }
  while (all.size() > 10) all.pop_back();
  pool.trim();
  return refused;
}

// What guards stacks is not asked, since the library tries that once a process.
bool may_protect() {
  void* page = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  const bool may = ::mprotect(page, 4096, PROT_NONE) == 0;
  ::munmap(page, 4096);
  return may;
}

class without_memory : public testing::TestWithParam<weft::stack_pool_options> {};

TEST_P(without_memory, each_call_that_fails_is_survived) {
  if (GetParam().guard == weft::stack_guard::mprotect && !may_protect()) GTEST_SKIP() << "mprotect guards nothing here";
  {  // what works here is tried once a process, and the thread gets its signal stack
    weft::stack_pool first{GetParam()};
    EXPECT_EQ(use_stacks(first), 0);
  }
  const long at_first = mapped;
  long fails = 0;
  int refused = 0;
  for (bool met = true; met; ++fails) {
    weft::stack_pool pool{GetParam()};
    calls = 0;
    fails_at = fails;
    const int lost = use_stacks(pool);
    met = calls > fails;
    fails_at = -1;
    EXPECT_LE(lost, met ? 1 : 0);
    refused += lost;
    EXPECT_EQ(pool.stats().in_use, 0U) << fails;
    EXPECT_EQ(use_stacks(pool), 0) << fails;  // and there is memory again
  }
  EXPECT_GT(fails, 6);  // each of three sizes is mapped, and advised
  EXPECT_GT(refused, 0);
  EXPECT_EQ(mapped, at_first);
}
INSTANTIATE_TEST_SUITE_P(
    guards, without_memory,
    testing::Values(weft::stack_pool_options{}, weft::stack_pool_options{.guard = weft::stack_guard::mprotect},
                    weft::stack_pool_options{.guard = weft::stack_guard::none},
                    weft::stack_pool_options{.guard = weft::stack_guard::none, .huge_pages = true}));

// What guards stacks is tried once a process: in one of its own. It is said once, and not where it was asked for.
TEST(on_an_old_system, the_limit_is_stated_at_start) {
  if (!may_protect()) GTEST_SKIP() << "mprotect guards nothing here";
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto starts = [] {
    is_old = true;
    const weft::stack_pool asked{{.guard = weft::stack_guard::none}};
    std::fputs("first ", stderr);
    const weft::stack_pool first, second;
    std::fputs("last", stderr);
    std::_Exit(first.limits().guard == weft::stack_guard::mprotect ? 0 : 1);
  };
  EXPECT_EXIT(starts(), testing::ExitedWithCode(0),
              "first weft: stacks are guarded by mprotect, two mappings each: [0-9]+ at the most .*\nlast");
}

TEST(without_memory, a_fiber_that_gets_no_stack_is_refused) {
  weft::stack_pool pool;
  bool ran = false;
  auto body = [&](weft::scope& s) -> weft::task<> {
    calls = 0;
    fails_at = 0;
    EXPECT_THROW(s.go({.pool = &pool}, [&] { ran = true; }), std::bad_alloc);
    fails_at = -1;
    co_return;
  };
  weft::sync_wait(weft::with_scope(body));
  EXPECT_FALSE(ran);
}

}  // namespace
#endif

// ---- very many ----------------------------------------------------------------------------------------------------------

namespace {

long resident_kib() {
  long all = 0, resident = 0;
  if (std::FILE* file = std::fopen("/proc/self/statm", "re")) {
    if (std::fscanf(file, "%ld %ld", &all, &resident) != 2) resident = 0;
    std::fclose(file);
  }
  return resident * ::sysconf(_SC_PAGESIZE) / 1024;
}

// So many more GiB this process may have, as far as the system says.
std::size_t gib_to_have() {
  std::size_t least = std::numeric_limits<std::size_t>::max();
  std::ifstream memory{"/proc/meminfo"};
  for (std::string word; memory >> word;)
    if (word == "MemAvailable:") memory >> least;
  least >>= 20;  // of KiB
  std::size_t most = 0, used = 0;
  if (std::ifstream{"/sys/fs/cgroup/memory.max"} >> most && std::ifstream{"/sys/fs/cgroup/memory.current"} >> used)
    least = std::min(least, (most - std::min(most, used)) >> 30);
  return least;
}

// Whether the memory there faults, also for who only reads. Asks the kernel, since ASan looks at what write() is given: and what lies
// there may be a variable of a fiber, out of its scope.
bool faults(const int (&pipe)[2], const char* at) {
  char back = 0;
  if (::syscall(SYS_write, pipe[1], at, 1) == 1) return ::read(pipe[0], &back, 1) != 1;
  return errno == EFAULT;
}

// Each in the middle of its function, on a stack of the process's pool, as that is if nobody asks for anything else.
TEST(fibers, a_million_at_once_each_guarded) {
#if defined(WEFT_TEST_TSAN)
  constexpr std::size_t count = 4000;  // it knows some 8000 at once
#else
  constexpr auto count = static_cast<std::size_t>(test::rounds(1'000'000));
#endif
  const weft::stack_limits limits = weft::stack_pool::process_wide().limits();
  if (limits.guard != weft::stack_guard::madvise) {
    EXPECT_LT(limits.most_stacks, std::size_t{1'000'000});
    EXPECT_NE(limits.sentence.find(std::to_string(limits.most_stacks)), std::string::npos) << limits.sentence;
    GTEST_SKIP() << limits.sentence;
  }
  EXPECT_GE(limits.most_stacks, count);
  if (gib_to_have() < 8 * count / 1'000'000) GTEST_SKIP() << "a million fibers need 8 GiB";
  rlimit room{};
  if (::getrlimit(RLIMIT_AS, &room) == 0 && room.rlim_cur != RLIM_INFINITY)
    GTEST_SKIP() << "the address space of this process is limited";

  constexpr std::size_t page = 4096, looked_at = count / 1000;
  int pipe[2];
  ASSERT_EQ(::pipe(pipe), 0);
  std::vector<std::uintptr_t> some;
  std::size_t began = 0, ended = 0;
  weft::event all_are_there;
  const std::size_t before = weft::fibers().live;
  const auto waits = [&] {
    if (began++ % looked_at == 0) some.push_back(reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0)));
    weft::await(all_are_there.wait());
    ++ended;
  };
  const auto body = [&](weft::scope& s) -> weft::task<> {
    for (std::size_t i = 0; i != count; ++i) s.go(waits);
    EXPECT_EQ(began, count);
    EXPECT_EQ(weft::fibers().live, before + count);
    EXPECT_GE(weft::stack_pool::process_wide().stats().in_use, count);
    const std::size_t pages = weft::stack_options{}.size / page + 2;  // tops lie anywhere in a page
    for (const std::uintptr_t frame : some) {
      std::size_t below = 0;
      while (below != pages && !faults(pipe, reinterpret_cast<const char*>(frame / page * page) - below * page))
        ++below;
      EXPECT_TRUE(below != 0 && below != pages) << below;
    }
    all_are_there.set();
    co_return;
  };
  weft::sync_wait(weft::with_scope(body));
  EXPECT_EQ(some.size(), 1000U);
  EXPECT_EQ(ended, count);
  EXPECT_EQ(weft::fibers().live, before);
  weft::stack_pool::process_wide().trim();
  ::close(pipe[0]);
  ::close(pipe[1]);
}

TEST(soak, fibers_leave_no_memory_behind) {
  const char* asked = std::getenv("WEFT_SOAK");
  const long count = asked != nullptr ? std::atol(asked) : test::rounds(200'000), at_once = 1000;
  long ended = 0;
  const auto some = [&] {
    auto body = [&](weft::scope& s) -> weft::task<> {
      for (long i = 0; i != at_once; ++i)
        s.go([&ended] {
          weft::this_fiber::yield();
          ++ended;
        });
      co_return;
    };
    weft::sync_wait(weft::with_scope(body));
  };
  // The system makes pages large when it comes by, whether or not more of them is in use.
  ::prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
  for (int i = 0; i != 20; ++i) some();
  const long before = resident_kib();
  while (ended < count) some();
  EXPECT_GE(ended, count);
#if !defined(WEFT_TEST_ASAN) && !defined(WEFT_TEST_TSAN)  // which remember what is gone
  EXPECT_LE(resident_kib(), before + 2048) << "after " << before;
#endif
  ::prctl(PR_SET_THP_DISABLE, 0, 0, 0, 0);
  if (asked != nullptr) std::printf("%ld fibers, %ld KiB resident before, %ld after\n", ended, before, resident_kib());
}

}  // namespace
