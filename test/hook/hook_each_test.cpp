// Tables of what is hooked alike, so that none of it is left out: locks, calls that close a number, calls that wait and are
// stopped. With WEFT_TEST_IN_RUNTIME as in hook_test.cpp.
#include "support/weft_test.hpp"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <functional>
#include <ostream>
#include <string>
#include <vector>
#include <weft/hook.hpp>
#include <weft/hop.hpp>
#include <weft/scope.hpp>
#include <weft/with.hpp>

#include "hook/places.hpp"

namespace {

using namespace std::chrono_literals;
using test::on_a_worker;
using test::run_at_once;
using weft::scope;
using weft::task;

struct failure {
  long result = 0;
  int error = 0;
  friend bool operator==(const failure&, const failure&) = default;
};
std::ostream& operator<<(std::ostream& to, const failure& one) {
  return to << one.result << " (" << std::strerror(one.error) << ")";
}
template <class Call>
failure told(Call call) {
  errno = 0;
  const auto result = static_cast<long>(call());
  return {result, result < 0 ? errno : 0};
}

// ---- locks ------------------------------------------------------------------------------------------------------------------

// A call behind lock() blocks the thread, and one behind unlock() lets another fiber run.
struct way_to_lock {
  const char* name;
  std::function<int()> lock, unlock;
};
void expect_counts(const way_to_lock& one) {
  const testing::ScopedTrace trace{__FILE__, __LINE__, one.name};
  bool other_ran = false, ran_meanwhile = false, ran_behind = false;
  run_at_once({[&] {
                 EXPECT_EQ(one.lock(), 0);
                 ::usleep(1000);
                 ran_meanwhile = other_ran;
                 EXPECT_EQ(one.unlock(), 0);
                 for (int i = 0; i != 1000 && !other_ran; ++i) ::usleep(1);
                 ran_behind = other_ran;
               },
               [&] { other_ran = true; }});
  EXPECT_FALSE(ran_meanwhile) << "it is not counted";
  EXPECT_TRUE(ran_behind) << "it is counted after it was unlocked";
}

TEST(hook_each, lock_is_counted_until_it_is_unlocked) {
  static_assert(thrd_success == 0);
  const timespec long_ago{};
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  pthread_rwlock_t shared = PTHREAD_RWLOCK_INITIALIZER;
  pthread_spinlock_t spin;
  mtx_t of_c;
  ASSERT_EQ(::pthread_spin_init(&spin, PTHREAD_PROCESS_PRIVATE), 0);
  ASSERT_EQ(::mtx_init(&of_c, mtx_timed), thrd_success);
  const auto unlock = [&] { return ::pthread_mutex_unlock(&mutex); };
  const auto unlock_shared = [&] { return ::pthread_rwlock_unlock(&shared); };
  const auto unlock_spin = [&] { return ::pthread_spin_unlock(&spin); };
  const auto unlock_of_c = [&] { return ::mtx_unlock(&of_c); };
  const way_to_lock ways[] = {
      {"pthread_mutex_lock", [&] { return ::pthread_mutex_lock(&mutex); }, unlock},
      {"pthread_mutex_trylock", [&] { return ::pthread_mutex_trylock(&mutex); }, unlock},
      {"pthread_mutex_timedlock", [&] { return ::pthread_mutex_timedlock(&mutex, &long_ago); }, unlock},
      {"pthread_mutex_clocklock", [&] { return ::pthread_mutex_clocklock(&mutex, CLOCK_MONOTONIC, &long_ago); },
       unlock},
      {"pthread_rwlock_rdlock", [&] { return ::pthread_rwlock_rdlock(&shared); }, unlock_shared},
      {"pthread_rwlock_tryrdlock", [&] { return ::pthread_rwlock_tryrdlock(&shared); }, unlock_shared},
      {"pthread_rwlock_timedrdlock", [&] { return ::pthread_rwlock_timedrdlock(&shared, &long_ago); }, unlock_shared},
      {"pthread_rwlock_wrlock", [&] { return ::pthread_rwlock_wrlock(&shared); }, unlock_shared},
      {"pthread_rwlock_trywrlock", [&] { return ::pthread_rwlock_trywrlock(&shared); }, unlock_shared},
      {"pthread_rwlock_timedwrlock", [&] { return ::pthread_rwlock_timedwrlock(&shared, &long_ago); }, unlock_shared},
#if !defined(WEFT_TEST_TSAN)  // it knows neither of these, and so of no lock where one is unlocked
      {"pthread_rwlock_clockrdlock", [&] { return ::pthread_rwlock_clockrdlock(&shared, CLOCK_MONOTONIC, &long_ago); },
       unlock_shared},
      {"pthread_rwlock_clockwrlock", [&] { return ::pthread_rwlock_clockwrlock(&shared, CLOCK_MONOTONIC, &long_ago); },
       unlock_shared},
#endif
      {"pthread_spin_lock", [&] { return ::pthread_spin_lock(&spin); }, unlock_spin},
      {"pthread_spin_trylock", [&] { return ::pthread_spin_trylock(&spin); }, unlock_spin},
      {"mtx_lock", [&] { return ::mtx_lock(&of_c); }, unlock_of_c},
      {"mtx_trylock", [&] { return ::mtx_trylock(&of_c); }, unlock_of_c},
      {"mtx_timedlock", [&] { return ::mtx_timedlock(&of_c, &long_ago); }, unlock_of_c},
  };
  for (const way_to_lock& one : ways) expect_counts(one);
  ::mtx_destroy(&of_c);
  ::pthread_spin_destroy(&spin);
}

// ---- what closes a number ---------------------------------------------------------------------------------------------------

// The limits only end a test that fails.
TEST(hook_each, call_that_closes_a_number_ends_those_who_wait_for_it) {
  struct way {
    const char* name;
    std::function<int(int number, int other)> closes;
  };
  const way ways[] = {{"close", [](int number, int) { return ::close(number); }},
                      {"dup2", [](int number, int other) { return ::dup2(other, number); }},
                      {"dup3", [](int number, int other) { return ::dup3(other, number, O_CLOEXEC); }}};
  for (const way& one : ways) {
    const testing::ScopedTrace trace{__FILE__, __LINE__, one.name};
    int ends[2], quiet[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, quiet), 0);
    const int twin = ::dup(ends[0]);  // keeps the file open
    const timeval limit{20, 0};
    ASSERT_EQ(::setsockopt(ends[0], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit), 0);
    failure received{}, polled_of_two{};
    run_at_once({[&] {
                   char byte;
                   received = told([&] { return ::recv(ends[0], &byte, 1, 0); });
                 },
                 [&] {
                   pollfd two[2] = {{quiet[0], POLLIN, 0}, {ends[0], POLLIN, 0}};
                   polled_of_two = told([&] { return ::poll(two, 2, 20'000); });
                 },
                 [&] { EXPECT_GE(one.closes(ends[0], quiet[0]), 0); }});
    EXPECT_EQ(received, (failure{-1, EBADF}));
    EXPECT_EQ(polled_of_two, (failure{-1, EBADF}));
    ::close(ends[0]);
    for (const int each : {ends[1], twin, quiet[0], quiet[1]}) ::close(each);
  }
}

// ---- the stack --------------------------------------------------------------------------------------------------------------

TEST(hook_each, fiber_has_256_kilobytes_unless_told_otherwise) {
  EXPECT_EQ(weft::hook_options{}.stack.size, std::size_t{256} << 10);
  const auto takes_much = [] {
    volatile char room[std::size_t{200} << 10];
    std::size_t sum = 0;
    for (std::size_t at = sizeof room; at != 0; at -= 1024)
      room[at - 1] = 1;  // downwards, so that it ends at a guard page
    for (std::size_t at = sizeof room; at != 0; at -= 1024) sum += static_cast<std::size_t>(room[at - 1]);
    return sum;
  };
  const auto body = [&]() -> task<> { EXPECT_EQ(co_await weft::hooked(takes_much), 200U); };
  on_a_worker(body());
}

}  // namespace
