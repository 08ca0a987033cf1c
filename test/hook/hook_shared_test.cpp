// What several have: a socket of which two workers receive, a FIFO that is written by two numbers and opened again, a listener by
// its duplicate; and terminals that give no lines. What another one does in between is done below the hook, right before the
// system's call or behind it.
#include "support/weft_test.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <termios.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>
#include <weft/hook.hpp>
#include <weft/hop.hpp>
#include <weft/net.hpp>
#include <weft/runtime.hpp>
#include <weft/scope.hpp>
#include <weft/timed.hpp>
#include <weft/with.hpp>

#include "hook/places.hpp"

namespace {
// What happens below the hooks; each is called once for each time that it is set.
thread_local std::function<void()> behind_empty_recv;  // of this thread
std::function<void()> before_read, before_write, before_accept;

void once(std::function<void()>& what) {
  if (what) std::exchange(what, {})();
}
template <class Function>
Function next_of(Function of_sanitizer, const char* name) {
  return of_sanitizer != nullptr ? of_sanitizer : reinterpret_cast<Function>(::dlsym(RTLD_NEXT, name));
}
}  // namespace

// NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming): the linker's names
extern "C" {
[[gnu::weak]] ssize_t __real___interceptor_recv(int number, void* into, std::size_t size, int flags);
[[gnu::weak]] ssize_t __real___interceptor_read(int number, void* into, std::size_t size);
[[gnu::weak]] ssize_t __real___interceptor_write(int number, const void* data, std::size_t size);
[[gnu::weak]] int __real___interceptor_accept(int number, sockaddr* from, socklen_t* size);

ssize_t __wrap___interceptor_recv(int number, void* into, std::size_t size, int flags) {
  const ssize_t got = next_of(&__real___interceptor_recv, "recv")(number, into, size, flags);
  if (got < 0 && errno == EAGAIN) {
    once(behind_empty_recv);
    errno = EAGAIN;
  }
  return got;
}
ssize_t __wrap___interceptor_read(int number, void* into, std::size_t size) {
  once(before_read);
  return next_of(&__real___interceptor_read, "read")(number, into, size);
}
ssize_t __wrap___interceptor_write(int number, const void* data, std::size_t size) {
  once(before_write);
  return next_of(&__real___interceptor_write, "write")(number, data, size);
}
int __wrap___interceptor_accept(int number, sockaddr* from, socklen_t* size) {
  once(before_accept);
  return next_of(&__real___interceptor_accept, "accept")(number, from, size);
}
}
// NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming)

namespace {

using namespace std::chrono_literals;
using test::on_a_worker;
using test::run_at_once;
using test::run_hooked;
using weft::scope;
using weft::task;

// Ends what hangs after five seconds, so that a test fails and does not stop.
class rescue {
 public:
  explicit rescue(std::function<void()> how)
      : thread_{[this, how = std::move(how)] {
          std::unique_lock guard{lock_};
          if (over_.wait_for(guard, 5s, [this] { return is_over_; })) return;
          was_needed_ = true;
          how();
        }} {}
  rescue(const rescue&) = delete;
  ~rescue() {
    {
      const std::lock_guard guard{lock_};
      is_over_ = true;
    }
    over_.notify_one();
    thread_.join();
    EXPECT_FALSE(was_needed_) << "a worker was blocked";
  }

 private:
  std::mutex lock_;
  std::condition_variable over_;
  bool is_over_ = false, was_needed_ = false;
  std::thread thread_;
};

void write_unseen(int number, std::string_view what) {
  EXPECT_EQ(::syscall(SYS_write, number, what.data(), what.size()), static_cast<long>(what.size()));
}
void close_unseen(int number) { EXPECT_EQ(::syscall(SYS_close, number), 0); }

// Each on a worker of its own of one runtime, whose io_service they share.
void run_on_two_workers(std::function<void()> first, std::function<void()> second) {
  const char* const by = std::getenv("WEFT_TEST_IN_RUNTIME");
  std::optional<weft::runtime> rt;
  if (by != nullptr && std::string_view{by} == "uring") {
    try {
      rt.emplace(weft::runtime_options{.threads = 2, .io = weft::io_backend::uring});
    } catch (const weft::error&) {  // the system has no rings
    }
  }
  if (!rt) rt.emplace(weft::runtime_options{.threads = 2, .io = weft::io_backend::epoll});
  const auto body = [&](scope& all) -> task<> {
    all.fork(weft::start_on(rt->workers().worker(0), weft::hooked([&] { first(); })));
    all.fork(weft::start_on(rt->workers().worker(1), weft::hooked([&] { second(); })));
    co_return;
  };
  const auto both = [&]() -> task<> { co_await weft::with_scope(body); };
  rt->run(both());
}

// The second one joins the first one's watch. While its try, which finds nothing, is not over, two messages come: the first one
// resets what was reported, and takes one of them.
TEST(hook_shared, a_message_that_another_worker_leaves_is_reported) {
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_DGRAM, 0, ends), 0);
  std::atomic<bool> first_waits{false}, first_has{false};
  const rescue help{[&] { write_unseen(ends[1], "z"); }};
  run_on_two_workers(
      [&] {
        char byte = 0;
        behind_empty_recv = [&] { first_waits = true; };
        EXPECT_EQ(::recv(ends[0], &byte, 1, 0), 1);
        EXPECT_EQ(byte, 'x');
        first_has = true;
      },
      [&] {
        while (!first_waits) ::usleep(1000);
        ::usleep(20'000);  // it has joined the watch by then, as a rule
        const auto later = [&] {
          write_unseen(ends[1], "x");
          write_unseen(ends[1], "y");
          for (int i = 0; i != 2000 && !first_has; ++i) std::this_thread::sleep_for(1ms);
        };
        behind_empty_recv = [&] { behind_empty_recv = later; };  // behind the second try, which is that of the wait
        char byte = 0;
        EXPECT_EQ(::recv(ends[0], &byte, 1, 0), 1);
        EXPECT_EQ(byte, 'y');
      });
  for (const int one : ends) ::close(one);
}

// ---- FIFOs ------------------------------------------------------------------------------------------------------------------

class fifo {
 public:
  fifo() {
    EXPECT_NE(::mkdtemp(folder_), nullptr);
    name_ = std::string{folder_} + "/fifo";
    EXPECT_EQ(::mkfifo(name_.c_str(), 0600), 0);
  }
  fifo(const fifo&) = delete;
  ~fifo() {
    ::unlink(name_.c_str());
    ::rmdir(folder_);
  }
  /// With O_NONBLOCK, so that it waits for no peer; then without, as by most programs.
  int open(int how) const {
    const int number = ::open(name_.c_str(), how | O_NONBLOCK | O_CLOEXEC);
    EXPECT_GE(number, 0);
    ::fcntl(number, F_SETFL, 0);
    return number;
  }

 private:
  char folder_[32] = "/tmp/weft-fifo-XXXXXX";
  std::string name_;
};

TEST(hook_shared, a_fifo_that_nobody_has_opened_to_write_is_at_its_end) {
  const fifo of;
  const int reads = of.open(O_RDONLY);
  run_hooked([&] {
    char byte = 0;
    EXPECT_EQ(::read(reads, &byte, 1), 0);
  });
  ::close(reads);
}

// Right before the write, another one fills it.
TEST(hook_shared, a_fifo_that_another_writer_fills_does_not_block) {
  const fifo of;
  const int reads = of.open(O_RDONLY), writes = of.open(O_WRONLY), other = of.open(O_WRONLY);
  ::fcntl(other, F_SETFL, O_NONBLOCK);
  std::array<char, 4096> page{};
  long filled = 0;
  before_write = [&] {
    for (long got; (got = ::syscall(SYS_write, other, page.data(), page.size())) > 0;) filled += got;
  };
  const auto take = [&](long size) {
    while (size > 0) size -= ::syscall(SYS_read, reads, page.data(), page.size());
  };
  {
    const rescue help{[&] { take(8192); }};
    run_at_once({[&] { EXPECT_EQ(::write(writes, "end", 3), 3); },
                 [&] {
                   ::usleep(1000);
                   take(filled);
                 }});
  }
  std::array<char, 8> last{};
  EXPECT_EQ(::read(reads, last.data(), last.size()), 3);
  EXPECT_STREQ(last.data(), "end");
  for (const int one : {reads, writes, other}) ::close(one);
}

TEST(hook_shared, a_fifo_in_packet_mode_keeps_its_packets_apart) {
  const fifo of;
  const int reads = of.open(O_RDONLY), writes = of.open(O_WRONLY);
  if (::fcntl(writes, F_SETFL, O_DIRECT) == 0) {
    run_hooked([&] {
      EXPECT_EQ(::write(writes, "ab", 2), 2);
      EXPECT_EQ(::write(writes, "cd", 2), 2);
    });
    std::array<char, 8> into{};
    EXPECT_EQ(::read(reads, into.data(), into.size()), 2);
    EXPECT_STREQ(into.data(), "ab");
  }
  ::close(reads);
  ::close(writes);
}

// Its writer has closed it, which is reported; before the read that follows, another one has opened it.
TEST(hook_shared, a_fifo_that_is_opened_again_is_waited_for) {
  const fifo of;
  const int reads = of.open(O_RDONLY), first = of.open(O_WRONLY);
  int second = -1;
  {
    const rescue help{[&] { write_unseen(second, "z"); }};
    run_at_once({[&] {
                   char byte = 0;
                   EXPECT_EQ(::read(reads, &byte, 1), 1);
                   EXPECT_EQ(byte, 'x');
                 },
                 [&] {
                   ::usleep(1000);  // the other fiber waits
                   before_read = [&] { second = of.open(O_WRONLY); };
                   close_unseen(first);
                   while (second < 0) ::usleep(1000);
                   ::usleep(1000);
                   write_unseen(second, "x");
                 }});
  }
  ::close(reads);
  ::close(second);
}

// ---- listeners --------------------------------------------------------------------------------------------------------------

struct listening {
  int number = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in at{};
  listening() {
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof at;
    EXPECT_EQ(::bind(number, reinterpret_cast<const sockaddr*>(&at), size), 0);
    EXPECT_EQ(::listen(number, 8), 0);
    EXPECT_EQ(::getsockname(number, reinterpret_cast<sockaddr*>(&at), &size), 0);
  }
  listening(const listening&) = delete;
  ~listening() { ::close(number); }
  int connect() const {
    const int peer = ::socket(AF_INET, SOCK_STREAM, 0);
    EXPECT_EQ(::connect(peer, reinterpret_cast<const sockaddr*>(&at), sizeof at), 0);
    return peer;
  }
};

// Between the poll() and the accept() of the one, the other one would find the connection, too, and one of them would block.
TEST(hook_shared, a_connection_is_accepted_by_one_of_two_numbers) {
  const listening at;
  const int twin = ::dup(at.number);
  std::vector<int> peers{at.connect()};
  std::atomic<int> accepted{0};
  before_accept = [&] {
    for (int i = 0; i != 50 && accepted == 0; ++i) std::this_thread::sleep_for(1ms);
  };
  {
    const rescue help{[&] { peers.push_back(at.connect()); }};
    const auto accepts = [&](int number) {
      const int got = ::accept(number, nullptr, nullptr);
      EXPECT_GE(got, 0);
      ++accepted;
      ::close(got);
    };
    run_on_two_workers([&] { accepts(at.number); },
                       [&] {
                         const auto other = [&](scope& all) -> task<> {
                           all.fork(weft::hooked([&] { accepts(twin); }));
                           while (accepted == 0) co_await weft::sleep_for(1ms);
                           co_await weft::sleep_for(20ms);
                           peers.push_back(at.connect());  // for the other one, which waits
                         };
                         weft::await(weft::with_scope(other));
                       });
  }
  EXPECT_EQ(accepted, 2);
  for (const int one : peers) ::close(one);
  ::close(twin);
}

// A plain thread takes the connection that poll() has reported. The number can be closed all the same.
TEST(hook_shared, a_number_whose_accept_blocks_can_be_closed) {
  const listening at;
  const int peer = at.connect(), number = ::dup(at.number);
  int later = -1;
  std::atomic<bool> blocks{false}, is_closed{false};
  before_accept = [&] {
    close_unseen(static_cast<int>(::syscall(SYS_accept4, number, nullptr, nullptr, 0)));
    blocks = true;
  };
  std::thread ends{[&] {
    for (int i = 0; i != 5000 && !is_closed; ++i) std::this_thread::sleep_for(1ms);
    EXPECT_TRUE(is_closed) << "the other worker is blocked, too";
    later = at.connect();  // so that the accept() ends
  }};
  run_on_two_workers(
      [&] {
        const int got = ::accept(number, nullptr, nullptr);
        EXPECT_GE(got, 0);
        ::close(got);
      },
      [&] {
        while (!blocks) ::usleep(1000);
        EXPECT_EQ(::close(number), 0);
        is_closed = true;
      });
  ends.join();
  ::close(peer);
  ::close(later);
}

// weft watches the number itself, and an epoll set takes each only once.
TEST(hook_shared, a_number_that_a_stream_has_is_waited_for) {
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  const rescue help{[&] { write_unseen(ends[1], "z"); }};
  const auto receives = [&] {
    char byte = 0;
    EXPECT_EQ(::recv(ends[0], &byte, 1, 0), 1);
    EXPECT_EQ(byte, 'x');
  };
  const auto sends = [&] {
    ::usleep(1000);
    EXPECT_EQ(::write(ends[1], "x", 1), 1);
  };
  const auto both = [&]() -> task<> {
    auto stream = weft::net::stream::adopt(ends[0]);
    ::fcntl(ends[0], F_SETFL, 0);
    for (int i = 0; i != 3; ++i) {
      std::vector<std::function<void()>> those;
      those.emplace_back(receives);
      those.emplace_back(sends);
      co_await test::at_once(std::move(those));
    }
    EXPECT_EQ(::write(ends[1], "y", 1), 1);
    std::array<std::byte, 8> into{};
    EXPECT_EQ(co_await stream.read(into), 1U);
    EXPECT_EQ(into[0], std::byte{'y'});
  };
  on_a_worker(both());
  ::close(ends[1]);
}

// ---- terminals --------------------------------------------------------------------------------------------------------------

// A pseudo-terminal that gives no lines: a read ends with `least` bytes, or after a time.
struct raw_terminal {
  int here = ::posix_openpt(O_RDWR | O_NOCTTY), there = -1;
  raw_terminal() {
    EXPECT_EQ(::grantpt(here), 0);
    EXPECT_EQ(::unlockpt(here), 0);
    there = ::open(::ptsname(here), O_RDWR | O_NOCTTY | O_CLOEXEC);
    EXPECT_GE(there, 0);
  }
  raw_terminal(const raw_terminal&) = delete;
  ~raw_terminal() {
    ::close(there);
    ::close(here);
  }
  void ends_reads(unsigned char least, unsigned char tenths) const {
    termios how;
    EXPECT_EQ(::tcgetattr(there, &how), 0);
    ::cfmakeraw(&how);
    how.c_cc[VMIN] = least;
    how.c_cc[VTIME] = tenths;
    EXPECT_EQ(::tcsetattr(there, TCSANOW, &how), 0);
  }
};

// How many bytes a read of `size` gives, while another fiber runs.
ssize_t read_beside_another(const raw_terminal& of, std::size_t size) {
  bool other_has_run = false;
  ssize_t got = -1;
  run_at_once({[&] {
                 std::array<char, 16> into{};
                 got = ::read(of.there, into.data(), size);
                 EXPECT_TRUE(other_has_run);
               },
               [&] { other_has_run = true; }});
  return got;
}

TEST(hook_shared, a_terminal_without_a_least_number_gives_what_is_there) {
  const raw_terminal of;
  const rescue help{[&] { write_unseen(of.here, "z"); }};
  of.ends_reads(0, 0);
  run_hooked([&] {
    char byte = 0;
    EXPECT_EQ(::read(of.there, &byte, 1), 0);
  });
  of.ends_reads(0, 2);
  EXPECT_EQ(read_beside_another(of, 9), 0) << "nothing came in time";
  write_unseen(of.here, "abc");
  run_hooked([&] {
    std::array<char, 16> into{};
    EXPECT_EQ(::read(of.there, into.data(), 9), 3);
  });
}

TEST(hook_shared, a_terminal_with_a_least_number_gives_no_less) {
  const raw_terminal of;
  const rescue help{[&] { write_unseen(of.here, "zzzzzz"); }};
  of.ends_reads(5, 0);
  write_unseen(of.here, "abc");
  EXPECT_EQ(read_beside_another(of, 3), 3) << "a smaller read asks for no more";
  std::array<char, 16> into{};
  run_at_once({[&] { EXPECT_EQ(::read(of.there, into.data(), 9), 5); },
               [&] {
                 ::usleep(1000);
                 write_unseen(of.here, "de");
                 ::usleep(1000);
                 write_unseen(of.here, "fgh");
               }});
  EXPECT_STREQ(into.data(), "defgh");
}

TEST(hook_shared, a_terminal_gives_what_has_come_when_nothing_follows_in_time) {
  const raw_terminal of;
  const rescue help{[&] { write_unseen(of.here, "zzzzzz"); }};
  of.ends_reads(5, 2);
  write_unseen(of.here, "a");
  EXPECT_EQ(read_beside_another(of, 9), 1);
}

// ---- stops ------------------------------------------------------------------------------------------------------------------

TEST(hook_shared, what_the_program_has_made_non_blocking_goes_on_in_a_stopped_fiber) {
  int ends[2], pipe[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
  ASSERT_EQ(::pipe2(pipe, O_NONBLOCK), 0);
  const auto body = [&](scope& inside) -> task<> {
    inside.fork(weft::hooked([&] {
      EXPECT_EQ(::usleep(100'000'000), -1);
      char byte = 0;
      EXPECT_EQ(::send(ends[0], "x", 1, 0), 1);
      EXPECT_EQ(::recv(ends[1], &byte, 1, 0), 1);
      EXPECT_EQ(::write(ends[0], "x", 1), 1);
      EXPECT_EQ(::read(ends[1], &byte, 1), 1);
      EXPECT_EQ(::recv(ends[1], &byte, 1, 0), -1);
      EXPECT_EQ(errno, EAGAIN);
      EXPECT_EQ(::write(pipe[1], "x", 1), 1);
      EXPECT_EQ(::read(pipe[0], &byte, 1), 1);
    }));
    co_await weft::sleep_for(1ms);
    inside.request_stop();
  };
  const auto all = [&]() -> task<> { co_await weft::with_scope(body); };
  on_a_worker(all());
  for (const int one : {ends[0], ends[1], pipe[0], pipe[1]}) ::close(one);
}

}  // namespace
