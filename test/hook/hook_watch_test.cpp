// The watch of a socket that a hooked call has waited for: it stays between waits, is of no other file than the one that the
// number is of, keeps none open, and is gone when the last fiber with hooks has ended. On both back ends.
#include "support/weft_test.hpp"

#include <netinet/in.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <functional>
#include <optional>
#include <thread>
#include <utility>
#include <vector>
#include <weft/combine.hpp>
#include <weft/hook.hpp>
#include <weft/hop.hpp>
#include <weft/net.hpp>
#include <weft/runtime.hpp>
#include <weft/scope.hpp>

#include "hook/places.hpp"

namespace {
std::atomic<int> added{0}, taken_out{0};
std::function<void()> as_a_watch_begins;  // called once, before a number's file is looked at
}  // namespace

// NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming): the linker's names
extern "C" {
int __real_epoll_ctl(int set, int what, int number, epoll_event* event);
int __wrap_epoll_ctl(int set, int what, int number, epoll_event* event) {
  if (what == EPOLL_CTL_ADD) ++added;
  if (what == EPOLL_CTL_DEL) ++taken_out;
  return __real_epoll_ctl(set, what, number, event);
}
int __real_fstat(int number, struct stat* into);
int __wrap_fstat(int number, struct stat* into) {
  if (as_a_watch_begins) std::exchange(as_a_watch_begins, {})();
  return __real_fstat(number, into);
}
}
// NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming)

namespace {

using weft::io_backend;
using weft::task;

std::vector<io_backend> back_ends() {
  std::vector<io_backend> all{io_backend::epoll};
  try {
    const weft::runtime rt{{.threads = 1, .io = io_backend::uring}};
    all.push_back(io_backend::uring);
  } catch (const weft::error&) {  // the system has no rings
  }
  return all;
}

class hook_watch : public testing::TestWithParam<io_backend> {
 protected:
  static void run_in(weft::runtime& rt, std::vector<std::function<void()>> those) {
    rt.run(weft::start_on(rt.workers().worker(0), test::at_once(std::move(those))));
  }
  void run(std::vector<std::function<void()>> those) {
    run_in(rt_, std::move(those));
    EXPECT_EQ(watched(), 0U) << "a watch was left";
  }
  std::size_t watched() const { return rt_.stats().watched; }

  weft::runtime rt_{{.threads = 1, .io = GetParam()}};
};
std::string name_of(const testing::TestParamInfo<io_backend>& one) {
  return one.param == io_backend::epoll ? "epoll" : "uring";
}
INSTANTIATE_TEST_SUITE_P(on, hook_watch, testing::ValuesIn(back_ends()), name_of);

struct sockets {
  int at[2] = {-1, -1};
  sockets() { EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, at), 0); }
  sockets(const sockets&) = delete;
  ~sockets() {
    for (const int one : at) ::close(one);
  }
};

// As fclose() does, or a plain thread: no hook sees it.
void close_unseen(int number) { EXPECT_EQ(::syscall(SYS_close, number), 0); }
void put_unseen(int from, int to) { EXPECT_EQ(::syscall(SYS_dup3, from, to, 0), to); }

void send_to(int number) { EXPECT_EQ(::write(number, "x", 1), 1); }
void receive_from(int number) {
  char byte = 0;
  EXPECT_EQ(::read(number, &byte, 1), 1);
  EXPECT_EQ(byte, 'x');
}

TEST_P(hook_watch, stays_between_the_waits_for_a_socket) {
  sockets pair;
  constexpr int rounds = 50;
  const int before = added, before_out = taken_out;
  run({[&] {
         for (int i = 0; i != rounds; ++i) {
           receive_from(pair.at[0]);
           send_to(pair.at[0]);
         }
         EXPECT_EQ(watched(), 2U);
       },
       [&] {
         for (int i = 0; i != rounds; ++i) {
           send_to(pair.at[1]);
           receive_from(pair.at[1]);
         }
       }});
  EXPECT_EQ(added - before, GetParam() == io_backend::epoll ? 2 : 0);
  EXPECT_EQ(taken_out - before_out, GetParam() == io_backend::epoll ? 2 : 0);
}

// A thread that was held up before it could wait finds that the time is over, and what has come meanwhile.
TEST_P(hook_watch, that_begins_late_misses_nothing_that_came_within_the_limit) {
  sockets pair;
  const timeval limit{0, 1000};
  ASSERT_EQ(::setsockopt(pair.at[0], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit), 0);
  run({[&] {
    as_a_watch_begins = [&] {
      EXPECT_EQ(::syscall(SYS_write, pair.at[1], "x", 1), 1);
      const timespec longer{0, 50'000'000};
      ::syscall(SYS_nanosleep, &longer, nullptr);
    };
    receive_from(pair.at[0]);
    EXPECT_FALSE(as_a_watch_begins);
  }});
}

TEST_P(hook_watch, is_gone_when_the_number_is_closed) {
  sockets pair, other;
  run({[&] {
         receive_from(pair.at[0]);
         EXPECT_EQ(watched(), 1U);
         EXPECT_EQ(::close(pair.at[0]), 0);
         EXPECT_EQ(watched(), 0U);
         pair.at[0] = ::dup(other.at[0]);
       },
       [&] { send_to(pair.at[1]); }});
}

TEST_P(hook_watch, of_what_is_no_socket_does_not_stay) {
  int pipe[2];
  ASSERT_EQ(::pipe(pipe), 0);
  const int event = ::eventfd(0, 0);
  std::uint64_t count = 0, one = 1;
  run({[&] {
         receive_from(pipe[0]);
         EXPECT_EQ(watched(), 0U);
         EXPECT_EQ(::read(event, &count, sizeof count), 8);
         EXPECT_EQ(watched(), 0U);
       },
       [&] {
         send_to(pipe[1]);
         ::usleep(0);
         EXPECT_EQ(::write(event, &one, sizeof one), 8);
       }});
  for (const int each : {pipe[0], pipe[1], event}) ::close(each);
}

TEST_P(hook_watch, is_of_the_socket_that_the_number_is_of_now) {
  sockets before, after;
  bool has_begun = false;
  run({[&] {
         receive_from(before.at[0]);
         put_unseen(after.at[0], before.at[0]);
         has_begun = true;
         receive_from(before.at[0]);
         EXPECT_EQ(watched(), 1U);
       },
       [&] {
         send_to(before.at[1]);
         while (!has_begun) ::usleep(0);
         ::usleep(0);
         send_to(after.at[1]);
       }});
}

// The first socket is still there, by another number, and is watched by the old one: so it can come back.
TEST_P(hook_watch, goes_on_where_a_number_that_was_closed_unseen_is_the_same_socket_again) {
  sockets pair;
  bool has_begun = false;
  run({[&] {
         receive_from(pair.at[0]);
         const int twin = ::dup(pair.at[0]);
         close_unseen(pair.at[0]);
         put_unseen(twin, pair.at[0]);
         has_begun = true;
         receive_from(pair.at[0]);
         put_unseen(twin, pair.at[0]);
         receive_from(twin);
         EXPECT_EQ(::close(twin), 0);
       },
       [&] {
         send_to(pair.at[1]);
         while (!has_begun) ::usleep(0);
         ::usleep(0);
         send_to(pair.at[1]);
         ::usleep(0);
         send_to(pair.at[1]);
       }});
}

TEST_P(hook_watch, keeps_no_file_open) {
  sockets pair;
  run({[&] {
         receive_from(pair.at[0]);
         EXPECT_EQ(watched(), 1U);
         close_unseen(pair.at[0]);
         char byte;
         EXPECT_EQ(::read(pair.at[1], &byte, 1), 0) << "the peer hears of the end";
         pair.at[0] = ::dup(pair.at[1]);
       },
       [&] { send_to(pair.at[1]); }});
}

// A byte that is sent while a task waits for it is reported.
task<> expect_reads(weft::net::stream& stream, int sender) {
  std::array<std::byte, 1> got{};
  const auto reads = [&]() -> task<> {
    EXPECT_TRUE((co_await weft::as_result(weft::timeout(std::chrono::seconds{20}, stream.read(got)))).has_value());
  };
  const auto sends = [&]() -> task<> {
    co_await weft::sleep_for(std::chrono::milliseconds{2});
    send_to(sender);
  };
  co_await weft::when_all(reads(), sends());
}

// weft's own stream has the number of a socket that a hooked call has waited for: the end of that watch is none of the stream's.
TEST_P(hook_watch, takes_nobody_else_out_who_has_the_number_by_then) {
  sockets before, after;
  std::optional<weft::net::stream> stream;
  const auto hooked = [&] {
    char byte;
    EXPECT_EQ(::recv(before.at[0], &byte, 1, 0), 1);
    put_unseen(after.at[0], before.at[0]);
    stream = weft::net::stream::adopt(before.at[0]);
    before.at[0] = ::dup(after.at[0]);  // the number is the stream's
  };
  const auto all = [&]() -> task<> {
    co_await weft::when_all(weft::hooked(hooked), [&]() -> task<> {
      co_await weft::yield();
      send_to(before.at[1]);
    }());
    co_await expect_reads(*stream, after.at[1]);
    stream.reset();
  };
  rt_.run(weft::start_on(rt_.workers().worker(0), all()));
  EXPECT_EQ(watched(), 0U);
}

TEST_P(hook_watch, of_a_pipe_takes_nobody_else_out_who_has_the_number_by_then) {
  int pipe[2];
  ASSERT_EQ(::pipe(pipe), 0);
  sockets after;
  const auto all = [&]() -> task<> {
    std::optional<weft::net::stream> stream;
    const auto waits = [&](weft::scope& inside) -> task<> {
      inside.fork(weft::hooked([&] {
        pollfd one{pipe[0], POLLIN, 0};
        EXPECT_EQ(::poll(&one, 1, -1), -1);
        EXPECT_EQ(errno, ECANCELED);
      }));
      while (watched() == 0) co_await weft::yield();
      put_unseen(after.at[0], pipe[0]);
      stream = weft::net::stream::adopt(pipe[0]);
      inside.request_stop();
    };
    co_await weft::with_scope(waits);
    co_await expect_reads(*stream, after.at[1]);
  };
  rt_.run(weft::start_on(rt_.workers().worker(0), all()));
  EXPECT_EQ(watched(), 0U);
  ::close(pipe[1]);
}

TEST_P(hook_watch, of_a_number_that_a_stream_has_leaves_it_watched) {
  sockets pair;
  const auto all = [&]() -> task<> {
    auto stream = weft::net::stream::adopt(std::exchange(pair.at[0], -1));
    co_await weft::hooked([&] {
      pollfd one{stream.native_handle(), POLLIN, 0};
      EXPECT_EQ(::poll(&one, 1, 1), 0);
    });
    co_await expect_reads(stream, pair.at[1]);
  };
  rt_.run(weft::start_on(rt_.workers().worker(0), all()));
  EXPECT_EQ(watched(), 0U);
}

// The socket has been waited for by this number before. A duplicate keeps it open while the number is that of another one.
TEST_P(hook_watch, of_a_number_that_is_the_first_socket_once_more_hears_of_it) {
  sockets pair, other;
  int number = ::dup(pair.at[0]);
  const auto looks = [&] {
    pollfd one{number, POLLIN, 0};
    EXPECT_EQ(::poll(&one, 1, 1), 0);
  };
  bool waits = false;
  run({[&] {
         looks();
         put_unseen(other.at[0], number);
         looks();
         EXPECT_EQ(::close(number), 0);
         EXPECT_EQ(::dup2(pair.at[0], number), number);
         waits = true;
         receive_from(number);
         EXPECT_EQ(::close(number), 0);
       },
       [&] {
         while (!waits) ::usleep(0);
         ::usleep(0);
         send_to(pair.at[1]);
       }});
}

// What was reported of a connection says nothing of the next one of the same socket.
TEST_P(hook_watch, of_a_socket_that_is_connected_once_more_is_new) {
  const int at = ::socket(AF_INET, SOCK_STREAM, 0), mine = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in where{};
  where.sin_family = AF_INET;
  where.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof where;
  auto* const address = reinterpret_cast<sockaddr*>(&where);
  ASSERT_EQ(::bind(at, address, size), 0);
  ASSERT_EQ(::listen(at, 4), 0);
  ASSERT_EQ(::getsockname(at, address, &size), 0);
  bool waits_anew = false, was_first = false;
  run({[&] {
         char byte;
         EXPECT_EQ(::connect(mine, address, size), 0);
         receive_from(mine);
         EXPECT_EQ(::recv(mine, &byte, 1, 0), 0);
         sockaddr none{};
         none.sa_family = AF_UNSPEC;
         EXPECT_EQ(::connect(mine, &none, sizeof none), 0);
         EXPECT_EQ(::connect(mine, address, size), 0);
         waits_anew = true;
         receive_from(mine);
         was_first = false;
       },
       [&] {
         for (int i = 0; i != 2; ++i) {
           const int peer = ::accept(at, nullptr, nullptr);
           ::usleep(0);
           while (i == 1 && !waits_anew) ::usleep(0);
           ::usleep(100);
           was_first = true;
           send_to(peer);
           ::usleep(100);
           EXPECT_EQ(::close(peer), 0);
         }
       }});
  EXPECT_FALSE(was_first);
  ::close(at);
  ::close(mine);
}

// What holds already, and is nothing that the call takes, is not reported without end.
TEST_P(hook_watch, reports_what_the_call_does_not_take_a_few_times) {
  const int at = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in where{};
  where.sin_family = AF_INET;
  where.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof where;
  auto* const address = reinterpret_cast<sockaddr*>(&where);
  ASSERT_EQ(::bind(at, address, size), 0);
  ASSERT_EQ(::listen(at, 4), 0);
  ASSERT_EQ(::getsockname(at, address, &size), 0);

  struct {
    std::function<void(int peer)> before, wakes;
    std::function<void(int mine)> waits;
  } const cases[]{
      {[](int peer) { EXPECT_EQ(::send(peer, "u", 1, MSG_OOB), 1); }, send_to,
       [](int mine) {
         pollfd one{mine, POLLIN, 0};
         EXPECT_EQ(::poll(&one, 1, -1), 1);
       }},
      {send_to, [](int peer) { EXPECT_EQ(::shutdown(peer, SHUT_WR), 0); },
       [](int mine) {
         pollfd one{mine, POLLRDHUP, 0};
         EXPECT_EQ(::poll(&one, 1, -1), 1);
       }},
      {send_to, send_to,
       [](int mine) {
         char two[2];
         EXPECT_EQ(::recv(mine, two, 2, MSG_PEEK | MSG_WAITALL), 2);
       }},
  };
  for (const auto& [before, wakes, waits] : cases) {
    const int mine = ::socket(AF_INET, SOCK_STREAM, 0);
    ASSERT_EQ(::connect(mine, address, size), 0);
    const int peer = ::accept(at, nullptr, nullptr);
    const auto changes = rt_.stats().changes;
    run({[&] { waits(mine); },
         [&] {
           before(peer);
           ::usleep(50'000);
           EXPECT_LT(rt_.stats().changes - changes, 20U);
           wakes(peer);
         }});
    ::close(mine);
    ::close(peer);
  }
  ::close(at);
}

TEST_P(hook_watch, stays_for_an_outer_block_of_hooks) {
  sockets pair;
  run({[&] {
         {
           const weft::hooks inner;
           receive_from(pair.at[0]);
         }
         EXPECT_EQ(watched(), 1U);
       },
       [&] { send_to(pair.at[1]); }});
}

TEST_P(hook_watch, by_two_runtimes_is_one_each) {
  sockets pair;
  weft::runtime second{{.threads = 1, .io = GetParam()}};
  std::thread other{[&] {
    run_in(second, {[&] {
             for (int i = 0; i != 20; ++i) receive_from(pair.at[0]);
           }});
    EXPECT_EQ(second.stats().watched, 0U);
  }};
  run({[&] {
         for (int i = 0; i != 20; ++i) receive_from(pair.at[0]);
       },
       [&] {
         for (int i = 0; i != 40; ++i) {
           ::usleep(100);
           send_to(pair.at[1]);
         }
       }});
  other.join();
}

TEST_P(hook_watch, is_the_parents_in_a_child) {
  sockets pair;
  int status = -1;
  run({[&] {
         receive_from(pair.at[0]);
         pid_t child = -1;
         {
           const weft::hooks inner;
           receive_from(pair.at[0]);
           child = ::fork();
         }
         if (child == 0) ::_exit(::close(pair.at[0]) == 0 && ::close(pair.at[1]) == 0 ? 7 : 8);
         EXPECT_EQ(::waitpid(child, &status, 0), child);
         receive_from(pair.at[0]);
       },
       [&] {
         for (int i = 0; i != 3; ++i) {
           send_to(pair.at[1]);
           while (i == 1 && status == -1) ::usleep(0);
           ::usleep(0);
         }
       }});
  EXPECT_EQ(WEXITSTATUS(status), 7);
}

// A fiber of another runtime closes the number while the last one that has a watch of it ends, and its runtime with it. The
// first time that is a watch that stays, the second time one that is waited for: by a read, or by a poll of several.
TEST_P(hook_watch, may_be_closed_by_another_thread_while_its_runtime_ends) {
  constexpr int rounds = 20;
  std::atomic<int> to_close{-1}, is_to_close{0}, closing{0}, closed{0};
  weft::runtime of_closer{{.threads = 1, .io = GetParam()}};
  std::thread closer{[&] {
    run_in(of_closer, {[&] {
             for (int i = 1; i <= 2 * rounds; ++i) {
               while (is_to_close < i) ::sched_yield();
               closing = i;
               EXPECT_EQ(::close(to_close), 0);
               closed = i;
             }
           }});
  }};
  for (int i = 1; i <= 2 * rounds; ++i) {
    const bool waits = i % 2 == 0;
    bool has_received = false;
    int pair[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    to_close = pair[0];
    {
      weft::runtime its{{.threads = 1, .io = GetParam()}};
      run_in(its, {[&] {
                     receive_from(pair[0]);
                     has_received = true;
                     if (!waits) {  // it ends a moment after the other one has begun to close
                       is_to_close = i;
                       while (closing < i) ::sched_yield();
                       for (std::atomic<int> moment = 0; moment < i * 100; ++moment) {
                       }
                     } else {
                       char byte;
                       pollfd several[2] = {{pair[0], POLLIN, 0}, {pair[0], POLLPRI, 0}};
                       EXPECT_EQ(i % 4 == 0 ? ::poll(several, 2, -1) : ::read(pair[0], &byte, 1), -1);
                       EXPECT_EQ(errno, EBADF);
                     }
                   },
                   [&] {
                     send_to(pair[1]);
                     while (waits && !has_received) ::usleep(0);
                     ::usleep(0);
                     if (waits) is_to_close = i;
                   }});
    }
    while (closed < i) ::sched_yield();
    EXPECT_EQ(::close(pair[1]), 0);
  }
  closer.join();
}

}  // namespace
