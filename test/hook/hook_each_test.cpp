// Tables of what is hooked alike, so that none of it is left out: locks, calls that close a number, calls that wait and are
// stopped. With WEFT_TEST_IN_RUNTIME as in hook_test.cpp.
#include "support/weft_test.hpp"

#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
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

#include "hook/fortified.hpp"
#include "hook/places.hpp"

namespace {

using namespace std::chrono_literals;
using test::failure;
using test::on_a_worker;
using test::run_at_once;
using test::told;
using weft::scope;
using weft::task;

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

// ---- stops ------------------------------------------------------------------------------------------------------------------

// Stopped while it waits: when the task that stops it runs, the call has suspended its fiber.
void expect_stops(const char* name, const std::function<failure()>& call) {
  const testing::ScopedTrace trace{__FILE__, __LINE__, name};
  failure ended{};
  bool has_begun = false, has_ended = false;
  const auto body = [&](scope& inside) -> task<> {
    inside.fork(weft::hooked([&] {
      has_begun = true;
      ended = call();
      has_ended = true;
    }));
    while (!has_begun) co_await weft::yield();
    co_await weft::sleep_for(1ms);
    EXPECT_FALSE(has_ended) << "it did not wait";
    inside.request_stop();
  };
  const auto all = [&]() -> task<> { co_await weft::with_scope(body); };
  on_a_worker(all());
  EXPECT_TRUE(has_ended) << "no frame is unwound";
  EXPECT_EQ(ended, (failure{-1, ECANCELED}));
}

// Numbers that are closed at the end, none of them ready: nothing to read, no room to write.
class never_ready {
 public:
  never_ready() {
    pair(stream);
    pair(full_stream);
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_DGRAM, 0, datagrams), 0);
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_DGRAM, 0, full_datagrams), 0);
    EXPECT_EQ(::pipe(pipe), 0);
    EXPECT_EQ(::pipe(full_pipe), 0);
    fill(full_stream[0]);
    fill(full_pipe[1]);
    fill(full_datagrams[0]);
    EXPECT_EQ(::bind(listener, inet(), sizeof where), 0);
    EXPECT_EQ(::listen(listener, 0), 0);
    socklen_t size = sizeof where;
    EXPECT_EQ(::getsockname(listener, inet(), &size), 0);
    for (int& one : in_line) {  // more than the listener has room for
      one = ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
      ::connect(one, inet(), sizeof where);
    }
    EXPECT_EQ(::listen(quiet_listener, 1), 0);
    EXPECT_EQ(::bind(local_listener, local(), sizeof(sa_family_t)), 0);
    EXPECT_EQ(::listen(local_listener, 0), 0);
    local_size = sizeof local_where;
    EXPECT_EQ(::getsockname(local_listener, local(), &local_size), 0);
    EXPECT_EQ(::connect(in_local_line, local(), local_size), 0);
    EXPECT_EQ(::bind(local_inbox, post(), sizeof(sa_family_t)), 0);
    post_size = sizeof post_where;
    EXPECT_EQ(::getsockname(local_inbox, post(), &post_size), 0);
    while (::sendto(unbound, "x", 1, MSG_DONTWAIT, post(), post_size) == 1) {
    }
  }
  never_ready(const never_ready&) = delete;
  ~never_ready() {
    for (const int* ends : {stream, full_stream, datagrams, full_datagrams, pipe, full_pipe})
      for (int i = 0; i != 2; ++i) ::close(ends[i]);
    for (const int one : in_line) ::close(one);
    for (const int one : {listener, quiet_listener, local_listener, in_local_line, local_inbox, unbound, to_connect,
                          to_connect_here, event, timer, set})
      ::close(one);
  }
  sockaddr* inet() { return reinterpret_cast<sockaddr*>(&where); }
  sockaddr* local() { return reinterpret_cast<sockaddr*>(&local_where); }
  sockaddr* post() { return reinterpret_cast<sockaddr*>(&post_where); }

  int stream[2], full_stream[2], datagrams[2], full_datagrams[2], pipe[2], full_pipe[2], in_line[8];
  int listener = ::socket(AF_INET, SOCK_STREAM, 0), quiet_listener = ::socket(AF_INET, SOCK_STREAM, 0);
  int to_connect = ::socket(AF_INET, SOCK_STREAM, 0), to_connect_here = ::socket(AF_UNIX, SOCK_STREAM, 0);
  int local_listener = ::socket(AF_UNIX, SOCK_STREAM, 0), in_local_line = ::socket(AF_UNIX, SOCK_STREAM, 0);
  int local_inbox = ::socket(AF_UNIX, SOCK_DGRAM, 0), unbound = ::socket(AF_UNIX, SOCK_DGRAM, 0);
  int event = ::eventfd(0, 0), timer = ::timerfd_create(CLOCK_MONOTONIC, 0), set = ::epoll_create1(0);
  sockaddr_in where{.sin_family = AF_INET, .sin_port = 0, .sin_addr = {htonl(INADDR_LOOPBACK)}, .sin_zero = {}};
  sockaddr_un local_where{.sun_family = AF_UNIX, .sun_path = {}}, post_where{.sun_family = AF_UNIX, .sun_path = {}};
  socklen_t local_size = 0, post_size = 0;

 private:
  static void pair(int (&ends)[2]) { EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0); }
  static void fill(int number) {
    const char page[4096] = {};
    ASSERT_EQ(::fcntl(number, F_SETFL, O_NONBLOCK), 0);
    for (std::size_t size = sizeof page; size != 0; size /= 2)
      while (::write(number, page, size) > 0) {
      }
    ASSERT_EQ(::fcntl(number, F_SETFL, 0), 0);
  }
};

TEST(hook_each, call_that_waits_ends_with_ecanceled_by_a_stop) {
  never_ready at;
  char bytes[64] = {};
  iovec part{bytes, sizeof bytes};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  mmsghdr messages[2] = {{message, 0}, {message, 0}};
  timespec long_time{1000, 0};
  pollfd two[2] = {{at.stream[0], POLLIN, 0}, {at.pipe[0], POLLIN, 0}};
  fd_set in;
  timeval long_limit{1000, 0};
  epoll_event got;
  const auto both_in = [&] {
    FD_ZERO(&in);
    FD_SET(at.stream[0], &in);
    FD_SET(at.pipe[0], &in);
    return std::max(at.stream[0], at.pipe[0]) + 1;
  };
  struct way {
    const char* name;
    std::function<long()> call;
  };
  const way ways[] = {
      {"connect", [&] { return ::connect(at.to_connect, at.inet(), sizeof at.where); }},
      {"connect of a Unix socket", [&] { return ::connect(at.to_connect_here, at.local(), at.local_size); }},
      {"accept", [&] { return ::accept(at.quiet_listener, nullptr, nullptr); }},
      {"accept4", [&] { return ::accept4(at.quiet_listener, nullptr, nullptr, SOCK_CLOEXEC); }},
      {"read of a socket", [&] { return ::read(at.stream[0], bytes, 1); }},
      {"read of a pipe", [&] { return ::read(at.pipe[0], bytes, 1); }},
      {"read of an event", [&] { return ::read(at.event, bytes, 8); }},
      {"read of a timer", [&] { return ::read(at.timer, bytes, 8); }},
      {"readv of a socket", [&] { return ::readv(at.stream[0], &part, 1); }},
      {"readv of a pipe", [&] { return ::readv(at.pipe[0], &part, 1); }},
      {"preadv2 of a socket", [&] { return ::preadv2(at.stream[0], &part, 1, -1, RWF_HIPRI); }},
      {"preadv64v2 of a pipe", [&] { return ::preadv64v2(at.pipe[0], &part, 1, -1, 0); }},
      {"recv", [&] { return ::recv(at.stream[0], bytes, 1, 0); }},
      {"recv of all", [&] { return ::recv(at.stream[0], bytes, 1, MSG_WAITALL); }},
      {"recvfrom", [&] { return ::recvfrom(at.datagrams[0], bytes, 1, 0, nullptr, nullptr); }},
      {"recvmsg", [&] { return ::recvmsg(at.stream[0], &message, 0); }},
      {"recvmmsg", [&] { return ::recvmmsg(at.datagrams[0], messages, 2, 0, nullptr); }},
      {"recvmmsg with a limit", [&] { return ::recvmmsg(at.datagrams[0], messages, 2, 0, &long_time); }},
      {"__read_chk", [&] { return __read_chk(at.stream[0], bytes, 1, sizeof bytes); }},
      {"__recv_chk", [&] { return __recv_chk(at.stream[0], bytes, 1, sizeof bytes, 0); }},
      {"__recvfrom_chk", [&] { return __recvfrom_chk(at.stream[0], bytes, 1, sizeof bytes, 0, nullptr, nullptr); }},
      {"write to a socket", [&] { return ::write(at.full_stream[0], bytes, 1); }},
      {"write to a pipe", [&] { return ::write(at.full_pipe[1], bytes, 1); }},
      {"writev to a socket", [&] { return ::writev(at.full_stream[0], &part, 1); }},
      {"writev to a pipe", [&] { return ::writev(at.full_pipe[1], &part, 1); }},
      {"pwritev2 to a socket", [&] { return ::pwritev2(at.full_stream[0], &part, 1, -1, 0); }},
      {"pwritev64v2 to a pipe", [&] { return ::pwritev64v2(at.full_pipe[1], &part, 1, -1, RWF_DSYNC); }},
      {"send", [&] { return ::send(at.full_stream[0], bytes, 1, 0); }},
      {"sendto", [&] { return ::sendto(at.full_datagrams[0], bytes, 1, 0, nullptr, 0); }},
      {"sendto an address", [&] { return ::sendto(at.unbound, bytes, 1, 0, at.post(), at.post_size); }},
      {"sendmsg", [&] { return ::sendmsg(at.full_stream[0], &message, 0); }},
      {"sendmmsg to a stream", [&] { return ::sendmmsg(at.full_stream[0], messages, 2, 0); }},
      {"sendmmsg of datagrams", [&] { return ::sendmmsg(at.full_datagrams[0], messages, 2, 0); }},
      {"poll", [&] { return ::poll(two, 1, -1); }},
      {"poll of two", [&] { return ::poll(two, 2, -1); }},
      {"poll of two with a limit", [&] { return ::poll(two, 2, 1'000'000); }},
      {"poll of none", [&] { return ::poll(nullptr, 0, -1); }},
      {"ppoll", [&] { return ::ppoll(two, 2, &long_time, nullptr); }},
      {"__poll_chk", [&] { return __poll_chk(two, 2, -1, sizeof two); }},
      {"__ppoll_chk", [&] { return __ppoll_chk(two, 2, &long_time, nullptr, sizeof two); }},
      {"select", [&] { return ::select(both_in(), &in, nullptr, nullptr, nullptr); }},
      {"select with a limit", [&] { return ::select(both_in(), &in, nullptr, nullptr, &long_limit); }},
      {"select of none", [&] { return ::select(0, nullptr, nullptr, nullptr, nullptr); }},
      {"pselect", [&] { return ::pselect(both_in(), &in, nullptr, nullptr, &long_time, nullptr); }},
      {"epoll_wait", [&] { return ::epoll_wait(at.set, &got, 1, -1); }},
      {"epoll_pwait", [&] { return ::epoll_pwait(at.set, &got, 1, 1'000'000, nullptr); }},
      {"usleep", [&] { return ::usleep(1'000'000'000); }},
      {"nanosleep", [&] { return ::nanosleep(&long_time, nullptr); }},
  };
  for (const way& one : ways) expect_stops(one.name, [&] { return told(one.call); });
  // These give no -1.
  expect_stops("sleep", [] {
    errno = 0;
    const bool is_early = ::sleep(1000) != 0;
    return failure{is_early ? -1 : 0, errno};
  });
  expect_stops("clock_nanosleep", [&] {
    const int error = ::clock_nanosleep(CLOCK_MONOTONIC, 0, &long_time, nullptr);
    return failure{error != 0 ? -1 : 0, error};
  });
}

}  // namespace
