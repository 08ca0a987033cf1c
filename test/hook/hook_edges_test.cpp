// Hooked calls that ask for the most that the system allows, for more, or for what is seldom asked: they do what the plain call
// does, and what waits lets the worker run others. All on one worker: a call that blocks it, or keeps it busy, ends the test by
// its time limit.
//
// With WEFT_TEST_IN_RUNTIME=epoll or =uring in the environment the worker is one of a runtime that waits by that.
#include "support/weft_test.hpp"

#include <fcntl.h>
#include <linux/errqueue.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <functional>
#include <limits>
#include <thread>
#include <vector>
#include <weft/hook.hpp>
#include <weft/hop.hpp>
#include <weft/scope.hpp>
#include <weft/task.hpp>
#include <weft/with.hpp>

#include "hook/places.hpp"

namespace {

using test::expect_waits;
using test::run_hooked;

struct socket_pair {
  int at[2] = {-1, -1};
  socket_pair() { EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, at), 0); }
  socket_pair(const socket_pair&) = delete;
  ~socket_pair() {
    for (const int one : at) ::close(one);
  }
  void wake() const { EXPECT_EQ(::write(at[1], "x", 1), 1); }
};

// ---- select -----------------------------------------------------------------------------------------------------------------

// Room for the sets of 2^16 numbers, which is more than the system's table of descriptors has. Of the memory of a set, the end is
// missing.
class large_set {
 public:
  static constexpr int numbers = 1 << 16;
  explicit large_set(bool has_end)
      : pages_{static_cast<unsigned char*>(
            ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))} {
    EXPECT_NE(static_cast<void*>(pages_), MAP_FAILED);
    if (!has_end) {
      EXPECT_EQ(::mprotect(pages_ + size / 2, size / 2, PROT_NONE), 0);
    }
  }
  large_set(const large_set&) = delete;
  ~large_set() { ::munmap(pages_, size); }
  fd_set* get() { return reinterpret_cast<fd_set*>(pages_); }
  unsigned char& at(int number) { return pages_[number / 8]; }

 private:
  static constexpr std::size_t size = numbers / 8;
  unsigned char* pages_;
};

TEST(hook_edges, a_select_beyond_the_table_of_descriptors_looks_at_what_is_in_it) {
  for (const bool has_end : {true, false}) {
    const socket_pair ends;
    large_set in{has_end};
    const auto waits = [&](auto call) {
      expect_waits(
          [&] {
            FD_SET(ends.at[0], in.get());
            in.at(30'000) = 0x5a;  // numbers of which there are none, or other memory
            EXPECT_EQ(call(), 1);
          },
          [&] { ends.wake(); });
      EXPECT_TRUE(FD_ISSET(ends.at[0], in.get()));
      EXPECT_EQ(in.at(30'000), 0x5a) << "the system does not write that";
      char byte = 0;
      EXPECT_EQ(::read(ends.at[0], &byte, 1), 1);
    };
    waits([&] { return ::select(large_set::numbers, in.get(), nullptr, nullptr, nullptr); });
    waits([&] { return ::pselect(large_set::numbers, in.get(), nullptr, nullptr, nullptr, nullptr); });
  }
}

TEST(hook_edges, a_select_of_what_is_no_descriptor_fails) {
  const socket_pair ends;
  large_set in{true};
  run_hooked([&] {
    const int none = ::dup(ends.at[0]);
    ::close(none);
    ASSERT_LT(none, 64) << "the least that the table has";
    FD_SET(none, in.get());
    errno = 0;
    EXPECT_EQ(::select(large_set::numbers, in.get(), nullptr, nullptr, nullptr), -1);
    EXPECT_EQ(errno, EBADF);
  });
}

// ---- time limits ------------------------------------------------------------------------------------------------------------

TEST(hook_edges, a_limit_of_any_length_is_waited_for) {
  for (const time_t seconds : {time_t{1} << 40, std::numeric_limits<time_t>::max()}) {
    const socket_pair ends;
    fd_set in;
    pollfd one{ends.at[0], POLLIN, 0};
    const timespec limit{seconds, 999'999'999};
    timeval left{seconds, 999'999};
    const auto waits = [&](auto call) {
      FD_ZERO(&in);
      FD_SET(ends.at[0], &in);
      expect_waits([&] { EXPECT_EQ(call(), 1); }, [&] { ends.wake(); });
      char byte = 0;
      EXPECT_EQ(::read(ends.at[0], &byte, 1), 1);
    };
    waits([&] { return ::ppoll(&one, 1, &limit, nullptr); });
    waits([&] { return ::pselect(ends.at[0] + 1, &in, nullptr, nullptr, &limit, nullptr); });
    waits([&] { return ::select(ends.at[0] + 1, &in, nullptr, nullptr, &left); });
    EXPECT_GT(left.tv_sec, time_t{1} << 32) << "is left";
    left = {seconds, std::numeric_limits<suseconds_t>::max()};
    waits([&] { return ::select(ends.at[0] + 1, &in, nullptr, nullptr, &left); });
    EXPECT_GT(left.tv_sec, time_t{1} << 32) << "is left";
  }
}

TEST(hook_edges, a_limit_that_makes_no_sense_fails) {
  const socket_pair ends;
  run_hooked([&] {
    fd_set in;
    FD_ZERO(&in);
    pollfd one{ends.at[0], POLLIN, 0};
    const auto fails = [](int result) {
      EXPECT_EQ(result, -1);
      EXPECT_EQ(errno, EINVAL);
    };
    for (const timespec each : {timespec{-1, 0}, timespec{0, -1}, timespec{0, 1'000'000'000}}) {
      fails(::ppoll(&one, 1, &each, nullptr));
      fails(::pselect(1, &in, nullptr, nullptr, &each, nullptr));
    }
    for (timeval each : {timeval{-1, 0}, timeval{0, -1}}) fails(::select(1, &in, nullptr, nullptr, &each));
    ends.wake();
    FD_SET(ends.at[0], &in);
    timeval more{0, 1'000'001};  // the C library takes that for a time
    EXPECT_EQ(::select(ends.at[0] + 1, &in, nullptr, nullptr, &more), 1);
  });
}

// ---- stops, closes --------------------------------------------------------------------------------------------------------------

TEST(hook_edges, a_stop_fails_no_call_of_a_kind_that_is_off) {
  const socket_pair ends;
  ends.wake();
  bool has_begun = false;
  const auto stopped = [&] {
    has_begun = true;
    EXPECT_EQ(::usleep(100'000'000), -1);
    char byte = 0;
    iovec part{&byte, 1};
    EXPECT_EQ(::write(ends.at[1], "y", 1), 1);
    EXPECT_EQ(::read(ends.at[0], &byte, 1), 1);
    EXPECT_EQ(byte, 'x');
    EXPECT_EQ(::readv(ends.at[0], &part, 1), 1);
    EXPECT_EQ(byte, 'y');
  };
  const auto body = [&](weft::scope& inside) -> weft::task<> {
    inside.fork(weft::hooked({.sockets = false, .files = true}, stopped));
    while (!has_begun) co_await weft::yield();
    inside.request_stop();
  };
  const auto all = [&]() -> weft::task<> { co_await weft::with_scope(body); };
  test::on_a_worker(all());
}

TEST(hook_edges, a_duplicate_that_fails_ends_no_wait) {
  const socket_pair ends, other;
  const auto fails = [](int result, int error) {
    EXPECT_EQ(result, -1);
    EXPECT_EQ(errno, error);
  };
  expect_waits(
      [&] {
        char byte = 0;
        EXPECT_EQ(::read(ends.at[0], &byte, 1), 1);
      },
      [&] {
        fails(::dup3(other.at[0], ends.at[0], 12345), EINVAL);
        rlimit before{};
        ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
        const rlimit fewer{static_cast<rlim_t>(ends.at[0]), before.rlim_max};
        ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &fewer), 0);
        fails(::dup2(other.at[0], ends.at[0]), EBADF);
        fails(::dup3(other.at[0], ends.at[0], 0), EBADF);
        ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
        ends.wake();
      });
}

// ---- sockets ------------------------------------------------------------------------------------------------------------------

// By TCP.
struct connection {
  int at[2] = {-1, -1};
  connection() {
    const int listener = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in where{};
    where.sin_family = AF_INET;
    where.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    auto* const address = reinterpret_cast<sockaddr*>(&where);
    socklen_t size = sizeof where;
    EXPECT_EQ(::bind(listener, address, size), 0);
    EXPECT_EQ(::listen(listener, 1), 0);
    EXPECT_EQ(::getsockname(listener, address, &size), 0);
    at[0] = ::socket(AF_INET, SOCK_STREAM, 0);
    EXPECT_EQ(::connect(at[0], address, size), 0);
    at[1] = ::accept(listener, nullptr, nullptr);
    ::close(listener);
  }
  connection(const connection&) = delete;
  ~connection() {
    for (const int one : at) ::close(one);
  }
};

// How many sends of the socket have completed, by the numbers that it has given them.
unsigned completed(int number) {
  unsigned count = 0;
  alignas(cmsghdr) char control[256];
  for (;;) {
    msghdr message{};
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    if (::recvmsg(number, &message, MSG_ERRQUEUE) < 0) return count;
    for (cmsghdr* one = CMSG_FIRSTHDR(&message); one != nullptr; one = CMSG_NXTHDR(&message, one)) {
      sock_extended_err about;
      std::memcpy(&about, CMSG_DATA(one), sizeof about);
      if (about.ee_origin == SO_EE_ORIGIN_ZEROCOPY) count += about.ee_data - about.ee_info + 1;
    }
  }
}

TEST(hook_edges, a_send_without_a_copy_completes_once) {
  const connection ends;
  const int on = 1;
  if (::setsockopt(ends.at[0], SOL_SOCKET, SO_ZEROCOPY, &on, sizeof on) != 0) GTEST_SKIP() << "the system has none";
  const std::vector<char> all(std::size_t{8} << 20, 'x');  // more than there is room for
  std::size_t received = 0;
  test::run_at_once({[&] {
                       EXPECT_EQ(::send(ends.at[0], all.data(), all.size(), MSG_ZEROCOPY),
                                 static_cast<ssize_t>(all.size()));
                       ::shutdown(ends.at[0], SHUT_WR);
                     },
                     [&] {
                       std::vector<char> some(std::size_t{1} << 20);
                       while (const ssize_t got = ::read(ends.at[1], some.data(), some.size())) {
                         ASSERT_GT(got, 0);
                         received += static_cast<std::size_t>(got);
                       }
                     }});
  EXPECT_EQ(received, all.size());
  // All was received, so all completions are there, or come while the system frees what it has sent.
  unsigned count = 0;
  while (count == 0) count = completed(ends.at[0]);
  std::this_thread::sleep_for(std::chrono::milliseconds{10});
  EXPECT_EQ(count + completed(ends.at[0]), 1U);
}

TEST(hook_edges, a_peek_from_an_offset_waits_for_all) {
  const connection ends;
  const int begin = 0;
  if (::setsockopt(ends.at[0], SOL_SOCKET, SO_PEEK_OFF, &begin, sizeof begin) != 0) GTEST_SKIP() << "by TCP";
  EXPECT_EQ(::write(ends.at[1], "hello", 5), 5);
  char got[11] = {};
  expect_waits([&] { EXPECT_EQ(::recv(ends.at[0], got, 10, MSG_PEEK | MSG_WAITALL), 10); },
               [&] { EXPECT_EQ(::write(ends.at[1], "world", 5), 5); });
  EXPECT_STREQ(got, "helloworld");
}

// An urgent byte is no part of the stream, and what is behind it is another receive's; or, in line, begins that one.
TEST(hook_edges, a_receive_of_all_ends_before_an_urgent_byte) {
  for (const bool in_line : {false, true})
    for (const bool peeks : {false, true})
      for (const bool waits : {false, true}) {
        const connection ends;
        const int on = in_line ? 1 : 0;
        ASSERT_EQ(::setsockopt(ends.at[0], SOL_SOCKET, SO_OOBINLINE, &on, sizeof on), 0);
        EXPECT_EQ(::send(ends.at[1], "abc", 3, 0), 3);
        const auto send_the_rest = [&] {
          EXPECT_EQ(::send(ends.at[1], "!", 1, MSG_OOB), 1);
          EXPECT_EQ(::send(ends.at[1], "defghi", 6, 0), 6);
        };
        char got[10] = {};
        const auto receive = [&] { EXPECT_EQ(::recv(ends.at[0], got, 9, MSG_WAITALL | (peeks ? MSG_PEEK : 0)), 3); };
        if (waits)
          expect_waits(receive, send_the_rest);
        else
          run_hooked([&] { send_the_rest(), receive(); });
        EXPECT_STREQ(got, "abc") << in_line << peeks << waits;
      }
}

TEST(hook_edges, nor_does_it_wait_for_what_is_behind_that) {
  const connection ends;
  EXPECT_EQ(::send(ends.at[1], "abc", 3, 0), 3);
  char got[10] = {};
  expect_waits([&] { EXPECT_EQ(::recv(ends.at[0], got, 9, MSG_WAITALL), 3); },
               [&] { EXPECT_EQ(::send(ends.at[1], "!", 1, MSG_OOB), 1); });
  EXPECT_STREQ(got, "abc");
}

TEST(hook_edges, a_peek_that_begins_at_an_urgent_byte_waits_for_all) {
  for (const bool in_line : {false, true}) {
    const connection ends;
    const int on = in_line ? 1 : 0;
    ASSERT_EQ(::setsockopt(ends.at[0], SOL_SOCKET, SO_OOBINLINE, &on, sizeof on), 0);
    EXPECT_EQ(::send(ends.at[1], "!", 1, MSG_OOB), 1);
    EXPECT_EQ(::send(ends.at[1], "abc", 3, 0), 3);
    const ssize_t all = in_line ? 10 : 9;
    char got[11] = {};
    expect_waits(
        [&] { EXPECT_EQ(::recv(ends.at[0], got, static_cast<std::size_t>(all), MSG_WAITALL | MSG_PEEK), all); },
        [&] { EXPECT_EQ(::send(ends.at[1], "defghi", 6, 0), 6); });
    EXPECT_STREQ(got, in_line ? "!abcdefghi" : "abcdefghi");
  }
}

}  // namespace
