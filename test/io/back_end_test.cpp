// What holds on io_uring and on epoll where the system is pressed, or refuses. See src/io/uring.hpp.
#include "support/weft_test.hpp"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <fstream>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>
#include <weft/combine.hpp>
#include <weft/net.hpp>
#include <weft/runtime.hpp>
#include <weft/scope.hpp>
#include <weft/sync.hpp>
#include <weft/with.hpp>

namespace {

using namespace std::chrono_literals;
using weft::io_backend;
using weft::scope;
using weft::task;
using weft::net::endpoint;
using weft::net::listener;
using weft::net::stream;

const endpoint anywhere{"127.0.0.1", 0};

// Those that there are here.
std::vector<io_backend> back_ends() {
  if (weft::runtime{{.threads = 1}}.backend() == io_backend::epoll) return {io_backend::epoll};
  return {io_backend::uring, io_backend::epoll};
}

class on_each : public testing::TestWithParam<io_backend> {};
std::string name_of(const testing::TestParamInfo<io_backend>& one) {
  return one.param == io_backend::uring ? "uring" : "epoll";
}
INSTANTIATE_TEST_SUITE_P(back_end, on_each, testing::ValuesIn(back_ends()), name_of);

// Of which `there` is the test's own, and blocks.
struct connection {
  stream here;
  int there = -1;
};
connection connected() {
  int both[2];
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, both), 0);
  return {stream::adopt(both[0]), both[1]};
}
void send(int to, std::string_view text) {
  EXPECT_EQ(::send(to, text.data(), text.size(), MSG_NOSIGNAL), static_cast<ssize_t>(text.size()));
}

std::size_t as_many_as_descriptors_allow(std::size_t wanted) {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
  return std::min<std::size_t>(wanted, (limit.rlim_cur - 100) / 2);
}

task<std::string> read_some(const stream& from) {
  std::array<std::byte, 64> buffer;
  const std::size_t size = co_await from.read(buffer);
  co_return std::string{reinterpret_cast<const char*>(buffer.data()), size};
}

TEST_P(on_each, thousands_of_silent_reads_time_out_together) {
  weft::runtime rt{{.threads = 2, .io = GetParam()}};
  const std::size_t count = as_many_as_descriptors_allow(3000);
  const auto body = [count]() -> task<> {
    std::vector<connection> those;
    for (std::size_t i = 0; i != count; ++i) those.push_back(connected());
    for (int round = 0; round != 2; ++round) {
      std::vector<task<std::string>> reads;
      for (const connection& one : those) reads.push_back(read_some(one.here));
      const auto all = co_await weft::as_result(weft::timeout(20ms, weft::when_all(std::move(reads))));
      EXPECT_EQ(all.error(), weft::errc::timed_out);
    }
    for (const connection& one : those) {
      send(one.there, "late");
      EXPECT_EQ(co_await read_some(one.here), "late");
    }
    for (const connection& one : those) ::close(one.there);
  };
  rt.run(body());
  EXPECT_EQ(rt.stats().watched, 0u);
}

// Its one worker computes while all of them come.
TEST_P(on_each, more_changes_come_at_once_than_a_ring_has_room_for) {
  weft::runtime rt{{.threads = 1, .io = GetParam()}};
  const std::size_t count = as_many_as_descriptors_allow(3000);
  const auto body = [count]() -> task<> {
    std::vector<connection> those;
    for (std::size_t i = 0; i != count; ++i) those.push_back(connected());
    for (int round = 0; round != 3; ++round) {
      std::size_t right = 0;
      const auto round_of = [&](scope& inside) -> task<> {
        for (const connection& one : those)
          inside.fork([](const stream& from, std::size_t& good) -> task<> {
            if (co_await read_some(from) == "now") ++good;
          }(one.here, right));
        co_await weft::sleep_for(5ms);  // all wait
        std::jthread{[&] {
          for (const connection& one : those) send(one.there, "now");
        }}.join();
      };
      co_await weft::with_scope(round_of);
      EXPECT_EQ(right, those.size());
    }
    for (const connection& one : those) ::close(one.there);
  };
  rt.run(body());
}

TEST_P(on_each, a_number_is_used_again_while_what_was_armed_for_it_is_being_cancelled) {
  weft::runtime rt{{.threads = 2, .io = GetParam()}};
  const auto body = []() -> task<> {
    std::optional<connection> before;
    int same = 0;
    for (int i = 0; i != test::rounds(500); ++i) {
      const int old = before ? before->here.native_handle() : -1;
      const int old_peer = before ? before->there : -1;
      before.reset();
      connection now = connected();
      same += now.here.native_handle() == old ? 1 : 0;
      if (old_peer >= 0) {
        ::send(old_peer, "to nobody", 9, MSG_NOSIGNAL);
        ::close(old_peer);
      }
      EXPECT_EQ((co_await weft::as_result(weft::timeout(100us, read_some(now.here)))).error(), weft::errc::timed_out);
      send(now.there, "mine");
      EXPECT_EQ(co_await read_some(now.here), "mine");
      EXPECT_EQ((co_await weft::as_result(weft::timeout(100us, read_some(now.here)))).error(), weft::errc::timed_out);
      before = std::move(now);
    }
    EXPECT_GT(same, 0);
    ::close(before->there);
  };
  rt.run(body());
  EXPECT_EQ(rt.stats().watched, 0u);
}

// A peer that blocks on a thread of its own, and says what it read to the end.
struct blocking_peer {
  explicit blocking_peer(const endpoint& of) : number{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)} {
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(of.port());
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(number, reinterpret_cast<const sockaddr*>(&to), sizeof to), 0);
  }
  blocking_peer(const blocking_peer&) = delete;
  ~blocking_peer() { ::close(number); }
  bool hears_the_end(int within_ms) const {
    pollfd state{.fd = number, .events = POLLIN, .revents = 0};
    char rest;
    return ::poll(&state, 1, within_ms) == 1 && ::recv(number, &rest, 1, 0) == 0;
  }
  const int number;
};

// The kernel keeps the file open of what waits in a ring.
TEST_P(on_each, a_peer_hears_of_the_end_although_the_worker_computes_that_has_closed) {
  weft::runtime rt{{.threads = 1, .io = GetParam()}};
  const auto body = [](bool somebody_may_have_a_duplicate) -> task<> {
    const listener at = co_await weft::net::listen(anywhere);
    const blocking_peer peer{at.local()};
    std::optional<stream> here{co_await at.accept()};
    EXPECT_EQ((co_await weft::as_result(weft::timeout(1ms, read_some(*here)))).error(), weft::errc::timed_out);
    if (somebody_may_have_a_duplicate) {
      EXPECT_GE(here->native_handle(), 0);
    }
    here.reset();
    EXPECT_TRUE(peer.hears_the_end(60'000));  // which blocks this worker
  };
  rt.run(body(false));
  rt.run(body(true));
}

TEST_P(on_each, an_address_is_free_although_the_worker_computes_that_has_closed_its_listener) {
  weft::runtime rt{{.threads = 1, .io = GetParam()}};
  const auto body = []() -> task<> {
    std::optional<listener> first{co_await weft::net::listen(anywhere)};
    const endpoint where = first->local();
    EXPECT_EQ((co_await weft::as_result(weft::timeout(1ms, first->accept()))).error(), weft::errc::timed_out);
    first.reset();
    const listener second = co_await weft::net::listen(where);  // without a wait in between
    const blocking_peer peer{where};
    EXPECT_TRUE((co_await weft::as_result(second.accept())).has_value());
  };
  rt.run(body());
}

TEST_P(on_each, a_duplicate_stays_open_and_the_end_comes_when_it_goes) {
  weft::runtime rt{{.threads = 1, .io = GetParam()}};
  const auto body = []() -> task<> {
    const listener at = co_await weft::net::listen(anywhere);
    const blocking_peer peer{at.local()};
    std::optional<stream> here{co_await at.accept()};
    EXPECT_EQ((co_await weft::as_result(weft::timeout(1ms, read_some(*here)))).error(), weft::errc::timed_out);
    const int theirs = ::dup(here->native_handle());
    here.reset();
    send(peer.number, "still here");
    char text[16]{};
    while (::recv(theirs, text, sizeof text, MSG_DONTWAIT) < 0) co_await weft::sleep_for(100us);
    EXPECT_STREQ(text, "still here");
    ::close(theirs);
    co_await weft::sleep_for(1ms);  // the worker enters its ring
    EXPECT_TRUE(peer.hears_the_end(60'000));
  };
  rt.run(body());
}

// Some of them have their home in the ring of the one that computes.
TEST_P(on_each, waits_of_other_threads_are_reached_while_a_worker_computes) {
  weft::runtime rt{{.threads = 2, .io = GetParam()}};
  std::atomic<bool> computes{false}, done{false};
  std::jthread computing{[&] {
    rt.run([](std::atomic<bool>& now, const std::atomic<bool>& until) -> task<> {
      now = true;
      while (!until) std::this_thread::yield();
      co_return;
    }(computes, done));
  }};
  while (!computes) std::this_thread::yield();
  for (int i = 0; i != 4; ++i) {
    connection one = rt.run([]() -> task<connection> { co_return connected(); }());
    std::jthread peer{[&] {
      std::this_thread::sleep_for(2ms);
      send(one.there, "across");
    }};
    EXPECT_EQ(weft::sync_wait(read_some(one.here)), "across");
    EXPECT_EQ(weft::sync_wait(weft::as_result(weft::timeout(1ms, read_some(one.here)))).error(), weft::errc::timed_out);
    peer.join();
    ::close(one.there);
  }
  done = true;
}

// How many jobs of some milliseconds the only worker runs, in the mean, between what a socket is sent and its being read. There
// are as many before as it takes to learn how long they are. `reader`: where the reading task is, if not where the jobs are.
double long_jobs_before_a_read(weft::runtime& rt, weft::executor* reader = nullptr) {
  constexpr int messages = 5;
  int jobs = 0, sent_at = 0, between = 0, left = messages;
  const auto body = [&]() -> task<> {
    const connection both = connected();
    const auto reads = [&]() -> task<> {
      for (; left != 0; --left) {
        EXPECT_EQ(co_await read_some(both.here), "x");
        between += jobs - sent_at;
        sent_at = 0;
      }
    };
    const auto computes = [&]() -> task<> {
      while (left != 0) {
        std::this_thread::sleep_for(6ms);
        if (jobs >= 70 && sent_at == 0) send(both.there, "x"), sent_at = jobs;
        ++jobs;
        co_await weft::yield();
      }
    };
    if (reader != nullptr)
      co_await weft::when_all(weft::start_on(*reader, reads()), computes());
    else
      co_await weft::when_all(reads(), computes());
    ::close(both.there);
  };
  rt.run(body());
  return between / double{messages};
}

TEST_P(on_each, a_socket_does_not_wait_for_dozens_of_long_jobs) {
  weft::runtime rt{{.threads = 1, .io = GetParam()}};
  EXPECT_LE(long_jobs_before_a_read(rt), 4);
  EXPECT_LE(long_jobs_before_a_read(rt, &rt.workers().worker(0)), 6);
}

TEST(back_end, nor_does_it_in_a_guest) {
  weft::runtime rt{{.guest = true}};
  EXPECT_LE(long_jobs_before_a_read(rt), 4);
}

TEST_P(on_each, one_listener_is_waited_for_by_all_workers) {
  weft::runtime rt{{.threads = 4, .io = GetParam()}};
  const auto all = []() -> task<> {
    const listener at = co_await weft::net::listen(anywhere);
    std::atomic<int> accepted{0};
    const auto body = [&](scope& inside) -> task<> {
      for (int i = 0; i != 4; ++i)
        inside.fork([](const listener& from, std::atomic<int>& count) -> task<> {
          for (;;) {
            const stream peer = co_await from.accept();
            ++count;
            co_await peer.write("x");
          }
        }(at, accepted));
      for (int i = 0; i != test::rounds(400); ++i) {
        const stream to = co_await weft::net::connect(at.local());
        EXPECT_EQ(co_await read_some(to), "x");
      }
      EXPECT_EQ(accepted, test::rounds(400));
      inside.request_stop();
    };
    co_await weft::with_scope(body);
  };
  rt.run(all());
}

// A pattern that a late read would change. Some of the reads come first, and some of the stops.
TEST_P(on_each, a_stop_and_what_comes_meanwhile_lose_no_byte_and_touch_no_buffer_later) {
  weft::runtime rt{{.threads = 2, .io = GetParam()}};
  const int rounds = test::rounds(1000);
  const auto body = [rounds]() -> task<> {
    const connection both = connected();
    int stopped = 0, received = 0;
    for (int i = 0; i != rounds; ++i) {
      const char sent = static_cast<char>(i);
      std::array<char, 32> buffer;
      buffer.fill('p');
      weft::stop_source source;
      weft::event was_read;
      const auto reads = [&]() -> task<std::size_t> {
        const std::size_t size = co_await both.here.read(std::as_writable_bytes(std::span{buffer}));
        was_read.set();
        co_return size;
      };
      const auto stops = [&]() -> task<> {
        if (i % 4 == 3) co_await was_read.wait();  // it loses for sure
        if (i % 4 == 1) co_await weft::yield();
        source.request_stop();
      };
      const auto sends = [&]() -> task<> {
        if (i % 3 == 0) co_await weft::yield();
        send(both.there, {&sent, 1});
        co_return;
      };
      const auto [got, none, no_more] =
          co_await weft::when_all(weft::as_result(weft::with_stop(source.token(), reads)), stops(), sends());
      if (got.has_value()) {
        ++received;
        EXPECT_EQ(*got, 1U);
        EXPECT_EQ(buffer[0], sent);
        buffer[0] = 'p';
      } else {
        ++stopped;
        EXPECT_TRUE(got.is_stopped());
        const std::string later = co_await read_some(both.here);  // at the same address of a frame
        EXPECT_EQ(later, (std::string{sent}));
      }
      EXPECT_EQ(std::ranges::count(buffer, 'p'), 32);
    }
    EXPECT_EQ(stopped + received, rounds);
    EXPECT_GT(stopped, 0);
    EXPECT_GT(received, 0);
    ::close(both.there);
  };
  rt.run(body());
}

TEST_P(on_each, a_receive_that_waits_ends_with_its_stream_and_the_number_is_used_again) {
  weft::runtime rt{{.threads = 2, .io = GetParam()}};
  const auto body = []() -> task<> {
    int same = 0;
    for (int i = 0; i != test::rounds(300); ++i) {
      connection one = connected();
      const int number = one.here.native_handle();
      const auto round = [&](scope& inside) -> task<> {
        auto waits = inside.fork(weft::as_result(one.here.receive()));
        co_await weft::yield();
        if (i % 2 == 0) co_await weft::sleep_for(50us);
        one.here.close();
        EXPECT_EQ((co_await std::move(waits)).error(), weft::errc::closed);
      };
      co_await weft::with_scope(round);
      const connection next = connected();
      same += next.here.native_handle() == number ? 1 : 0;
      ::send(one.there, "to nobody", 9, MSG_NOSIGNAL);
      send(next.there, "mine");
      EXPECT_EQ((co_await next.here.receive()).text(), "mine");
      ::close(one.there);
      ::close(next.there);
    }
    EXPECT_GT(same, 0);
  };
  rt.run(body());
  EXPECT_EQ(rt.stats().watched, 0u);
}

// What they send stays with the system, which stops them: nobody here holds it.
TEST_P(on_each, a_thousand_peers_that_flood_whoever_does_not_read_cost_no_memory_and_keep_nobody_waiting) {
  weft::runtime rt{{.threads = 2, .io = GetParam()}};
  const std::size_t count = as_many_as_descriptors_allow(1000);
  const auto resident = [] {
    std::ifstream figures{"/proc/self/statm"};
    std::size_t all = 0, here = 0;
    figures >> all >> here;
    return here * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  };
  const auto body = [&]() -> task<> {
    const connection other = connected();
    std::vector<connection> those;
    for (std::size_t i = 0; i != count; ++i) {
      those.push_back(connected());
      const int room = 32'768;
      ::setsockopt(those.back().there, SOL_SOCKET, SO_SNDBUF, &room, sizeof room);
    }
    weft::event over;
    std::atomic<std::size_t> waiting{0};
    std::atomic<bool> have_flooded{false};
    const auto handles = [&](const stream& from) -> task<> {
      std::array<std::byte, 1> first;
      EXPECT_EQ(co_await from.read(first), 1U);
      ++waiting;
      co_await over.wait();
    };
    const auto round = [&](scope& inside) -> task<> {
      for (const connection& one : those) inside.fork(handles(one.here));
      for (const connection& one : those) send(one.there, "x");
      while (waiting != count) co_await weft::sleep_for(100us);
      const std::size_t before = resident();
      std::size_t flood = 0;
      const std::jthread peers{[&] {
        static const std::string block(16'384, 'f');
        for (const connection& one : those)
          for (ssize_t sent = 1; sent > 0; flood += static_cast<std::size_t>(std::max<ssize_t>(sent, 0)))
            sent = ::send(one.there, block.data(), block.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
        have_flooded = true;
      }};
      while (!have_flooded) {
        send(other.there, "asks");
        EXPECT_EQ(co_await read_some(other.here), "asks");
      }
      EXPECT_LT(resident(), before + flood / 2) << "of " << flood << " bytes";
      over.set();
    };
    co_await weft::with_scope(round);
    for (const connection& one : those) ::close(one.there);
    ::close(other.there);
  };
  rt.run(body());
  EXPECT_EQ(rt.stats().watched, 0u);
}

TEST_P(on_each, a_runtime_is_made_anew_at_once) {
  for (int i = 0; i != test::rounds(50); ++i) {
    weft::runtime rt{{.threads = 2, .io = GetParam()}};
    const auto body = []() -> task<> {
      const connection both = connected();
      EXPECT_EQ((co_await weft::as_result(weft::timeout(100us, read_some(both.here)))).error(), weft::errc::timed_out);
      ::close(both.there);
    };
    rt.run(body());
  }
}

// ---- where the system refuses rings -------------------------------------------------------------------------------------------

// In a child: the sentence that explain() begins with goes to stderr, behind which the runtime serves a socket.
void serve_one() {
  weft::runtime rt{{.threads = 1}};
  std::fprintf(stderr, "%s\n", rt.explain().c_str());
  const auto body = []() -> task<> {
    const connection both = connected();
    std::jthread peer{[&] {
      std::this_thread::sleep_for(2ms);
      send(both.there, "served");
    }};
    EXPECT_EQ(co_await read_some(both.here), "served");
    peer.join();
    ::close(both.there);
  };
  rt.run(body());
}

// True: asking for io_uring by name throws.
bool refuses_to_be_asked() {
  try {
    const weft::runtime rt{{.threads = 1, .io = io_backend::uring}};
    return false;
  } catch (const weft::error&) {
    return true;
  }
}

void forbid_io_uring() {
  ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_io_uring_setup, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program{.len = 4, .filter = filter};
  if (::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) != 0) std::exit(9);
}

void become_nobody(rlim_t may_lock) {
  const rlimit limit{.rlim_cur = may_lock, .rlim_max = may_lock};
  if (::setrlimit(RLIMIT_MEMLOCK, &limit) != 0 || ::setuid(65534) != 0) std::exit(9);
}

class refused_ring : public testing::Test {
 protected:
  void SetUp() override {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    ::unsetenv("WEFT_IO");
    if (back_ends().size() != 2) GTEST_SKIP() << "no io_uring here anyway";
  }
};

TEST_F(refused_ring, by_a_filter_of_system_calls) {
  EXPECT_EXIT(
      {
        forbid_io_uring();
        for (int i = 0; i != 5; ++i) serve_one();
        std::exit(refuses_to_be_asked() ? 0 : 1);
      },
      testing::ExitedWithCode(0), "epoll, not by io_uring: the system forbids it");
}

TEST_F(refused_ring, by_the_limit_of_locked_memory) {
  if (::getuid() != 0) GTEST_SKIP() << "only root can become nobody";
  EXPECT_EXIT(
      {
        become_nobody(0);
        serve_one();
        std::exit(refuses_to_be_asked() ? 0 : 1);
      },
      testing::ExitedWithCode(0), "epoll, not by io_uring: the memory that this process may lock");
}

TEST_F(refused_ring, or_a_smaller_one_where_the_limit_is_small) {
  if (::getuid() != 0) GTEST_SKIP() << "only root can become nobody";
  EXPECT_EXIT(
      {
        become_nobody(64 << 10);
        for (int i = 0; i != 20; ++i) serve_one();
        std::exit(0);
      },
      testing::ExitedWithCode(0), "Sockets are waited for by");
}

}  // namespace
