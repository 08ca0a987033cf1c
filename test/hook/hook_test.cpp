// Hooked calls: what waits lets the worker run others, and gives what the plain call does. All on one worker: a call that blocks
// it ends the test by its time limit. See weft/hook.hpp.
//
// With WEFT_TEST_IN_RUNTIME=epoll or =uring in the environment the worker is one of a runtime that waits by that, else one of a
// worker_group.
#include "support/weft_test.hpp"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <termios.h>
#include <threads.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>
#include <weft/combine.hpp>
#include <weft/hook.hpp>
#include <weft/hop.hpp>
#include <weft/mutex.hpp>
#include <weft/net.hpp>
#include <weft/runtime.hpp>
#include <weft/scope.hpp>
#include <weft/with.hpp>

#include "hook/fortified.hpp"
#include "hook/places.hpp"

namespace {

using namespace std::chrono_literals;
using test::told;
using weft::scope;
using weft::task;

using test::expect_waits;
using test::failure;
using test::on_a_worker;
using test::run_at_once;
using test::run_hooked;

// Both ends, closed at the end, if they are open then.
struct both_ends {
  int at[2] = {-1, -1};
  both_ends() = default;
  explicit both_ends(int type) { EXPECT_EQ(::socketpair(AF_UNIX, type, 0, at), 0); }
  both_ends(const both_ends&) = delete;
  static void make_pipe(both_ends& into) { EXPECT_EQ(::pipe(into.at), 0); }
  ~both_ends() {
    for (const int one : at)
      if (one >= 0) ::close(one);
  }
  void close(int which) {
    EXPECT_EQ(::close(at[which]), 0);
    at[which] = -1;
  }
};
struct pipe_ends : both_ends {
  pipe_ends() { make_pipe(*this); }
};
// Of a FIFO, which the system writes only in ways that block.
struct fifo_ends : both_ends {
  fifo_ends() {
    char folder[] = "/tmp/weft-hook-XXXXXX";
    EXPECT_NE(::mkdtemp(folder), nullptr);
    const std::string path = std::string{folder} + "/fifo";
    EXPECT_EQ(::mkfifo(path.c_str(), 0600), 0);
    at[0] = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    at[1] = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
    EXPECT_EQ(::fcntl(at[0], F_SETFL, 0), 0);
    ::unlink(path.c_str());
    ::rmdir(folder);
  }
};
using socket_pair = both_ends;

// No address; what a compiler can't see, or it warns.
char* volatile no_address = reinterpret_cast<char*>(8);

struct listening {
  int number = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in where{};
  listening() {
    where.sin_family = AF_INET;
    where.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof where;
    EXPECT_EQ(::bind(number, reinterpret_cast<sockaddr*>(&where), size), 0);
    EXPECT_EQ(::listen(number, 16), 0);
    EXPECT_EQ(::getsockname(number, reinterpret_cast<sockaddr*>(&where), &size), 0);
  }
  listening(const listening&) = delete;
  ~listening() { ::close(number); }
  int connect() const {
    const int mine = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    EXPECT_EQ(::connect(mine, reinterpret_cast<const sockaddr*>(&where), sizeof where), 0);
    return mine;
  }
};

// ---- what waits -------------------------------------------------------------------------------------------------------------

// `wait` has a limit, or ends by itself: another fiber of the worker runs meanwhile, however long that took to begin. Once more
// where the limit was over before it could wait, since the thread was not run.
void expect_lets_others_run(std::function<void()> wait) {
  bool begun = false, over = false;
  int turns = 0;
  run_at_once({[&] {
                 while (!over) {
                   turns += begun ? 1 : 0;
                   weft::this_fiber::yield();
                 }
               },
               [&] {
                 begun = true;
                 for (int i = 0; i != 100 && turns == 0; ++i) wait();
                 over = true;
               }});
  EXPECT_GT(turns, 0) << "it did not wait, or blocked its worker";
}

template <class Ends, class Read>
void expect_reads(Ends& ends, Read read) {
  char got[8] = {};
  expect_waits([&] { EXPECT_EQ(read(ends.at[0], got, sizeof got), 3); },
               [&] { EXPECT_EQ(::write(ends.at[1], "abc", 3), 3); });
  EXPECT_STREQ(got, "abc");
}

TEST(hook, read_waits_for_a_socket_a_pipe_and_an_event) {
  socket_pair stream{SOCK_STREAM}, datagrams{SOCK_DGRAM};
  pipe_ends pipe;
  expect_reads(stream, ::read);
  expect_reads(datagrams, ::read);
  expect_reads(pipe, ::read);
  const int event = ::eventfd(0, 0);
  std::uint64_t count = 0, one = 5;
  expect_waits([&] { EXPECT_EQ(::read(event, &count, sizeof count), 8); },
               [&] { EXPECT_EQ(::write(event, &one, sizeof one), 8); });
  EXPECT_EQ(count, 5U);
  ::close(event);
}

TEST(hook, every_way_to_receive_waits) {
  socket_pair stream{SOCK_STREAM}, pair{SOCK_DGRAM};
  pipe_ends pipe;
  const auto by_readv = [](int number, char* into, std::size_t size) {
    iovec parts[2] = {{into, 1}, {into + 1, size - 1}};
    return ::readv(number, parts, 2);
  };
  expect_reads(stream, by_readv);
  expect_reads(pipe, by_readv);
  expect_reads(stream, [](int number, char* into, std::size_t size) { return ::recv(number, into, size, 0); });
  expect_reads(stream, [](int number, char* into, std::size_t size) {
    return ::recvfrom(number, into, size, 0, nullptr, nullptr);
  });
  expect_reads(pair, [](int number, char* into, std::size_t size) {
    iovec part{into, size};
    msghdr all{};
    all.msg_iov = &part;
    all.msg_iovlen = 1;
    return ::recvmsg(number, &all, 0);
  });
  expect_reads(pair, [](int number, char* into, std::size_t size) {
    iovec part{into, size};
    mmsghdr all{};
    all.msg_hdr.msg_iov = &part;
    all.msg_hdr.msg_iovlen = 1;
    EXPECT_EQ(::recvmmsg(number, &all, 1, 0, nullptr), 1);
    return static_cast<ssize_t>(all.msg_len);
  });
}

// Of which the system does 2 GiB at a time at most: these wait, too. Only the first page of the memory is touched.
TEST(hook, reads_and_writes_of_more_than_two_gigabytes_wait) {
  constexpr std::size_t size = std::size_t{3} << 30;
  void* const memory =
      ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  socket_pair stream{SOCK_STREAM};
  pipe_ends pipe;
  const auto by_read = [&](int number, char* into, std::size_t) {
    const ssize_t got = ::read(number, memory, size);
    std::memcpy(into, memory, 3);
    return got;
  };
  expect_reads(stream, by_read);
  expect_reads(pipe, by_read);
  const volatile std::size_t too_large = SIZE_MAX;  // what a compiler can't see, or it warns
  run_hooked([&] {
    EXPECT_EQ(told([&] { return ::read(stream.at[0], memory, too_large); }),
              told([&] { return ::syscall(SYS_read, stream.at[0], memory, std::size_t{too_large}); }));
    EXPECT_EQ(told([&] { return ::write(stream.at[0], memory, too_large); }),
              told([&] { return ::syscall(SYS_write, stream.at[0], memory, std::size_t{too_large}); }));
  });
  expect_waits([&] { EXPECT_EQ(told([&] { return ::write(stream.at[0], memory, size); }).error, 0); },
               [&] { stream.close(1); });  // after what had room; so the rest fails
  ::munmap(memory, size);
}

TEST(hook, the_fortified_forms_wait_too) {
  socket_pair stream{SOCK_STREAM}, datagrams{SOCK_DGRAM};
  pipe_ends pipe;
  const auto by_read = [](int number, char* into, std::size_t size) { return __read_chk(number, into, size, size); };
  expect_reads(stream, by_read);
  expect_reads(pipe, by_read);
  expect_reads(stream,
               [](int number, char* into, std::size_t size) { return __recv_chk(number, into, size, size, 0); });
  expect_reads(datagrams, [](int number, char* into, std::size_t size) {
    return __recvfrom_chk(number, into, size, size, 0, nullptr, nullptr);
  });
  pollfd one{stream.at[0], POLLIN, 0};
  const auto writes = [&] { EXPECT_EQ(::write(stream.at[1], "x", 1), 1); };
  expect_waits([&] { EXPECT_EQ(__poll_chk(&one, 1, -1, sizeof one), 1); }, writes);
  char byte;
  EXPECT_EQ(::read(stream.at[0], &byte, 1), 1);
  expect_waits([&] { EXPECT_EQ(__ppoll_chk(&one, 1, nullptr, nullptr, sizeof one), 1); }, writes);

  const int file = ::memfd_create("fortified", MFD_CLOEXEC);
  ASSERT_GE(file, 0);
  run_hooked([&] {
    char got[8] = {};
    EXPECT_EQ(::write(file, "abcdef", 6), 6);
    EXPECT_EQ(__pread_chk(file, got, 2, 1, sizeof got), 2);
    EXPECT_STREQ(got, "bc");
    EXPECT_EQ(__pread64_chk(file, got, 2, 4, sizeof got), 2);
    EXPECT_STREQ(got, "ef");
  });
  ::close(file);
}

// The C library's own sentence, from where it looks.
TEST(hook_misuse_DeathTest, more_than_there_is_room_for_ends_the_program) {
  const auto overflows = [](auto call) {
    EXPECT_DEATH(run_hooked([&] {
                   char got[8];
                   call(got);
                 }),
                 "buffer overflow detected");
  };
  overflows([](char* got) { __read_chk(0, got, 9, 8); });
  overflows([](char* got) { __pread_chk(0, got, 9, 0, 8); });
  overflows([](char* got) { __pread64_chk(0, got, 9, 0, 8); });
  overflows([](char* got) { __recv_chk(0, got, 9, 8, 0); });
  overflows([](char* got) { __recvfrom_chk(0, got, 9, 8, 0, nullptr, nullptr); });
  overflows([](char* got) { __poll_chk(reinterpret_cast<pollfd*>(got), 2, 0, 8); });
  overflows([](char* got) { __ppoll_chk(reinterpret_cast<pollfd*>(got), 2, nullptr, nullptr, 8); });
}

TEST(hook, a_receive_that_wants_all_waits_for_all) {
  const listening at;
  both_ends ends;
  ends.at[1] = at.connect();
  ends.at[0] = ::accept(at.number, nullptr, nullptr);
  char got[8] = {}, looked[8] = {};
  ssize_t seen = 0, size = 0;
  run_at_once({[&] {
                 seen = ::recv(ends.at[0], looked, 6, MSG_WAITALL | MSG_PEEK);
                 size = ::recv(ends.at[0], got, sizeof got, MSG_WAITALL);
               },
               [&] {
                 for (const char* part : {"ab", "cd", "ef"}) {
                   EXPECT_EQ(::write(ends.at[1], part, 2), 2);
                   ::usleep(0);
                 }
                 EXPECT_EQ(::shutdown(ends.at[1], SHUT_WR), 0);
               }});
  EXPECT_EQ(seen, 6);
  EXPECT_EQ(size, 6) << "the peer has ended behind six of eight";
  EXPECT_STREQ(looked, "abcdef");
  EXPECT_STREQ(got, "abcdef");
}

// More than there is room for.
template <class Ends, class Write>
void expect_writes_all(Ends& ends, Write write) {
  const std::string data(1 << 20, 'x');
  std::size_t got = 0;
  run_at_once({[&] {
                 EXPECT_EQ(write(ends.at[1], data), static_cast<ssize_t>(data.size()));
                 ends.close(1);
               },
               [&] {
                 std::array<char, 4096> buffer;
                 while (const ssize_t size = ::read(ends.at[0], buffer.data(), buffer.size())) {
                   if (size < 0) {
                     ADD_FAILURE() << std::strerror(errno);
                     break;
                   }
                   got += static_cast<std::size_t>(size);
                 }
               }});
  EXPECT_EQ(got, data.size());
}

TEST(hook, readv_and_writev_move_nothing_without_a_byte_and_no_more_than_the_system_would) {
  run_hooked([] {
    int ends[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    ::close(ends[1]);
    const iovec none[2]{};
    EXPECT_EQ(::writev(ends[0], none, 2), 0) << std::strerror(errno);  // where send() fails, and raises SIGPIPE
    ::close(ends[0]);
    const int alone = ::socket(AF_UNIX, SOCK_STREAM, 0);
    EXPECT_EQ(::readv(alone, none, 2), 0) << std::strerror(errno);
    EXPECT_EQ(::writev(alone, none, 2), 0) << std::strerror(errno);
    ::close(alone);
#if !defined(WEFT_TEST_ASAN) && !defined(WEFT_TEST_TSAN)  // which look at the memory themselves; /dev/null does not
    const int null = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
    const iovec much[2]{{no_address, std::size_t{1} << 40}, {no_address, std::size_t{1} << 40}};
    EXPECT_EQ(::writev(null, much, 2), 0x7ffff000);
    ::close(null);
#endif
  });
}

TEST(hook, every_way_to_send_sends_all_and_waits_for_room) {
  const auto by_writev = [](int number, const std::string& data) {
    char* const from = const_cast<char*>(data.data());
    iovec parts[3] = {{from, 7}, {from + 7, 0}, {from + 7, data.size() - 7}};
    return ::writev(number, parts, 3);
  };
  const auto by_sendmsg = [](int number, const std::string& data) {
    char* const from = const_cast<char*>(data.data());
    iovec parts[2] = {{from, 100'000}, {from + 100'000, data.size() - 100'000}};
    msghdr all{};
    all.msg_iov = parts;
    all.msg_iovlen = 2;
    return ::sendmsg(number, &all, 0);
  };
  {
    pipe_ends ends;
    expect_writes_all(ends,
                      [](int number, const std::string& data) { return ::write(number, data.data(), data.size()); });
  }
  {
    pipe_ends ends;
    expect_writes_all(ends, by_writev);
  }
  {
    fifo_ends ends;
    expect_writes_all(ends,
                      [](int number, const std::string& data) { return ::write(number, data.data(), data.size()); });
  }
  {
    fifo_ends ends;
    expect_writes_all(ends, by_writev);
  }
  for (int way = 0; way != 5; ++way) {
    socket_pair ends{SOCK_STREAM};
    expect_writes_all(ends, [&](int number, const std::string& data) {
      switch (way) {
        case 0: return ::write(number, data.data(), data.size());
        case 1: return by_writev(number, data);
        case 2: return ::send(number, data.data(), data.size(), MSG_NOSIGNAL);
        case 3: return ::sendto(number, data.data(), data.size(), 0, nullptr, 0);
        default: return by_sendmsg(number, data);
      }
    });
  }
}

// Two ends of a TCP connection.
struct connection : both_ends {
  connection() {
    const listening here;
    at[1] = here.connect();
    at[0] = ::accept(here.number, nullptr, nullptr);
  }
  // As close(), but the other end is told of a failure.
  void reset(int which) {
    const linger none{1, 0};
    EXPECT_EQ(::setsockopt(at[which], SOL_SOCKET, SO_LINGER, &none, sizeof none), 0);
    close(which);
  }
};

void wait_until_all_is_taken(int from) {
  for (int size = 1; size != 0; ::usleep(100)) ASSERT_EQ(::ioctl(from, FIONREAD, &size), 0);
}

TEST(hook, an_error_after_a_part_is_reported_by_the_next_receive) {
  for (const bool with_the_last : {false, true}) {
    connection ends;
    failure first{}, second{};
    char got[100];
    run_at_once({[&] {
                   first = told([&] { return ::recv(ends.at[0], got, sizeof got, MSG_WAITALL); });
                   second = told([&] { return ::recv(ends.at[0], got, sizeof got, 0); });
                 },
                 [&] {
                   EXPECT_EQ(::write(ends.at[1], "hello", 5), 5);
                   if (!with_the_last) wait_until_all_is_taken(ends.at[0]);
                   ends.reset(1);
                 }});
    EXPECT_EQ(first, (failure{5, 0}));
    EXPECT_EQ(second, (failure{-1, ECONNRESET}));
  }
}

TEST(hook, an_error_after_a_part_is_reported_by_the_next_send) {
  const std::string data(32 << 20, 'x');
  std::vector<iovec> parts{{const_cast<char*>(data.data()), 7}, {const_cast<char*>(data.data()) + 7, data.size() - 7}};
  const std::function<ssize_t(int)> ways[] = {
      [&](int to) { return ::write(to, data.data(), data.size()); },
      [&](int to) { return ::writev(to, parts.data(), 2); },
      [&](int to) { return ::send(to, data.data(), data.size(), 0); },
      [&](int to) { return ::sendto(to, data.data(), data.size(), 0, nullptr, 0); },
      [&](int to) {
        msghdr all{};
        all.msg_iov = parts.data();
        all.msg_iovlen = parts.size();
        return ::sendmsg(to, &all, 0);
      }};
  for (const auto& send : ways) {
    connection ends;
    ssize_t first = 0;
    failure second{};
    run_at_once({[&] {
                   first = send(ends.at[0]);
                   second = told([&] { return send(ends.at[0]); });
                 },
                 [&] { ends.reset(1); }});
    EXPECT_GT(first, 0);
    EXPECT_LT(first, static_cast<ssize_t>(data.size()));
    EXPECT_EQ(second, (failure{-1, ECONNRESET}));
  }
}

TEST(hook, an_error_after_some_messages_is_reported_by_the_next_receive) {
  int at[2];
  sockaddr_in where[2]{};
  for (int i = 0; i != 2; ++i) {
    at[i] = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    where[i].sin_family = AF_INET;
    where[i].sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof where[i];
    ASSERT_EQ(::bind(at[i], reinterpret_cast<sockaddr*>(&where[i]), size), 0);
    ASSERT_EQ(::getsockname(at[i], reinterpret_cast<sockaddr*>(&where[i]), &size), 0);
  }
  for (int i = 0; i != 2; ++i)
    ASSERT_EQ(::connect(at[i], reinterpret_cast<sockaddr*>(&where[1 - i]), sizeof where[i]), 0);
  char bytes[2];
  iovec parts[2]{{&bytes[0], 1}, {&bytes[1], 1}};
  mmsghdr messages[2]{};
  for (int i = 0; i != 2; ++i) {
    messages[i].msg_hdr.msg_iov = &parts[i];
    messages[i].msg_hdr.msg_iovlen = 1;
  }
  failure first{}, second{};
  run_at_once({[&] {
                 first = told([&] { return ::recvmmsg(at[0], messages, 2, 0, nullptr); });
                 second = told([&] { return ::recv(at[0], bytes, 1, MSG_DONTWAIT); });
               },
               [&] {
                 EXPECT_EQ(::write(at[1], "a", 1), 1);
                 wait_until_all_is_taken(at[0]);
                 EXPECT_EQ(::close(at[1]), 0);
                 EXPECT_EQ(::send(at[0], "x", 1, 0), 1);  // which nobody takes any more
               }});
  EXPECT_EQ(first, (failure{1, 0}));
  EXPECT_EQ(second, (failure{-1, ECONNREFUSED}));
  ::close(at[0]);
}

TEST(hook, a_fifo_that_is_full_behind_the_last_byte_is_not_waited_for) {
  fifo_ends ends;
  std::array<char, 4096> page{};
  ASSERT_EQ(::fcntl(ends.at[1], F_SETPIPE_SZ, page.size()), static_cast<int>(page.size()));
  run_hooked([&] {
    const iovec parts[2] = {{page.data(), 1000}, {page.data() + 1000, page.size() - 1000}};
    EXPECT_EQ(::writev(ends.at[1], parts, 2), static_cast<ssize_t>(page.size()));
  });
}

// The reader is a fiber of the same worker.
TEST(hook, a_terminal_takes_more_than_it_has_room_for) {
  const int reader = ::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
  ASSERT_GE(reader, 0);
  char path[64];
  ASSERT_EQ(::grantpt(reader), 0);
  ASSERT_EQ(::unlockpt(reader), 0);
  ASSERT_EQ(::ptsname_r(reader, path, sizeof path), 0);
  const int writer = ::open(path, O_RDWR | O_NOCTTY | O_CLOEXEC);
  ASSERT_GE(writer, 0);
  termios plain{};
  ASSERT_EQ(::tcgetattr(writer, &plain), 0);
  ::cfmakeraw(&plain);
  ASSERT_EQ(::tcsetattr(writer, TCSANOW, &plain), 0);
  std::string data;
  for (int i = 0; data.size() < 200'000; ++i) data += std::to_string(i) + ' ';
  for (const bool by_parts : {false, true}) {
    std::string got;
    run_at_once({[&] {
                   char* const from = data.data();
                   const iovec parts[2] = {{from, 70'001}, {from + 70'001, data.size() - 70'001}};
                   EXPECT_EQ(by_parts ? ::writev(writer, parts, 2) : ::write(writer, from, data.size()),
                             static_cast<ssize_t>(data.size()));
                 },
                 [&] {
                   std::array<char, 4096> buffer;
                   while (got.size() < data.size()) {
                     const ssize_t size = ::read(reader, buffer.data(), buffer.size());
                     ASSERT_GT(size, 0) << std::strerror(errno);
                     got.append(buffer.data(), static_cast<std::size_t>(size));
                   }
                 }});
    EXPECT_EQ(got, data);
  }
  EXPECT_EQ(::fcntl(writer, F_GETFL) & O_NONBLOCK, 0);
  ::close(writer);
  ::close(reader);
}

// An event with room for 1, so that poll() reports it as writable.
TEST(hook, an_event_waits_for_room_for_all_that_is_added) {
  const int event = ::eventfd(0, EFD_CLOEXEC);
  const std::uint64_t nearly_all = UINT64_MAX - 2, one = 1, more = 100;
  std::uint64_t first = 0, second = 0;
  ASSERT_EQ(::write(event, &nearly_all, sizeof nearly_all), 8);
  expect_waits([&] { EXPECT_EQ(::write(event, &more, sizeof more), 8); },
               [&] { EXPECT_EQ(::read(event, &first, sizeof first), 8); });
  EXPECT_EQ(first, nearly_all);
  run_hooked([&] {
    EXPECT_EQ(::write(event, &one, sizeof one), 8);
    EXPECT_EQ(::read(event, &second, sizeof second), 8);
  });
  EXPECT_EQ(second, more + one);
  ::close(event);
}

TEST(hook, what_cannot_be_written_says_so_without_a_wait) {
  run_hooked([] {
    const int timer = ::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
    const std::uint64_t one = 1;
    EXPECT_EQ(told([&] { return ::write(timer, &one, sizeof one); }), (failure{-1, EINVAL}));
    ::close(timer);
  });
}

TEST(hook, a_local_datagram_waits_for_room) {
  sockaddr_un where{};
  where.sun_family = AF_UNIX;
  socklen_t size = sizeof(sa_family_t);  // the system chooses a name
  const int to = ::socket(AF_UNIX, SOCK_DGRAM, 0), from = ::socket(AF_UNIX, SOCK_DGRAM, 0);
  ASSERT_EQ(::bind(to, reinterpret_cast<sockaddr*>(&where), size), 0);
  size = sizeof where;
  ASSERT_EQ(::getsockname(to, reinterpret_cast<sockaddr*>(&where), &size), 0);
  constexpr int many = 600;
  int got = 0;
  run_at_once({[&] {
                 for (int i = 0; i != many; ++i)
                   EXPECT_EQ(::sendto(from, "x", 1, 0, reinterpret_cast<sockaddr*>(&where), size), 1);
               },
               [&] {
                 char one;
                 for (; got != many; ++got) EXPECT_EQ(::recv(to, &one, 1, 0), 1);
               }});
  EXPECT_EQ(got, many);
  ::close(to);
  ::close(from);
}

TEST(hook, a_message_to_a_connected_local_datagram_socket_waits_for_room) {
  constexpr int many = 600;
  for (const bool by_sendmmsg : {false, true}) {
    socket_pair pair{SOCK_DGRAM};
    char byte = 'x';
    iovec part{&byte, 1};
    mmsghdr one{};
    one.msg_hdr.msg_iov = &part;
    one.msg_hdr.msg_iovlen = 1;
    int got = 0;
    run_at_once({[&] {
                   for (int i = 0; i != many; ++i) {
                     EXPECT_EQ(
                         by_sendmmsg ? ::sendmmsg(pair.at[0], &one, 1, 0) : ::sendmsg(pair.at[0], &one.msg_hdr, 0), 1);
                   }
                 },
                 [&] {
                   char into;
                   for (; got != many; ++got) EXPECT_EQ(::recv(pair.at[1], &into, 1, 0), 1);
                 }});
    EXPECT_EQ(got, many);
  }
}

TEST(hook, accept_and_connect_wait) {
  const listening at;
  std::string heard;
  run_at_once({[&] {
                 for (int i = 0; i != 2; ++i) {
                   const int peer = i == 0 ? ::accept(at.number, nullptr, nullptr)
                                           : ::accept4(at.number, nullptr, nullptr, SOCK_CLOEXEC);
                   EXPECT_GE(peer, 0);
                   char one = 0;
                   EXPECT_EQ(::read(peer, &one, 1), 1);
                   heard += one;
                   ::close(peer);
                 }
               },
               [&] {
                 for (const char* one : {"a", "b"}) {
                   const int mine = at.connect();
                   EXPECT_EQ(::fcntl(mine, F_GETFL) & O_NONBLOCK, 0);
                   EXPECT_EQ(::write(mine, one, 1), 1);
                   EXPECT_EQ(::read(mine, &heard, 1), 0);
                   ::close(mine);
                 }
               }});
  EXPECT_EQ(heard, "ab");
}

// TCP Fast Open: what is sent makes the connection.
TEST(hook, a_send_that_connects_waits) {
  const listening at;
  const auto* const address = reinterpret_cast<const sockaddr*>(&at.where);
  char text[] = "hello";
  iovec part{text, 5};
  msghdr message{};
  message.msg_name = const_cast<sockaddr_in*>(&at.where);
  message.msg_namelen = sizeof at.where;
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  const auto connect_later = [&](int mine) {
    const int on = 1;
    EXPECT_EQ(::setsockopt(mine, IPPROTO_TCP, TCP_FASTOPEN_CONNECT, &on, sizeof on), 0);
    EXPECT_EQ(::connect(mine, address, sizeof at.where), 0);
  };
  const std::function<ssize_t(int)> ways[] = {
      [&](int mine) { return ::sendto(mine, text, 5, MSG_FASTOPEN, address, sizeof at.where); },
      [&](int mine) { return ::sendmsg(mine, &message, MSG_FASTOPEN); },
      [&](int mine) {
        connect_later(mine);
        return ::write(mine, text, 5);
      },
      [&](int mine) {
        connect_later(mine);
        return ::send(mine, text, 5, 0);
      }};
  for (const auto& send : ways) {
    const int plain = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const failure without_hooks = told([&] { return send(plain); });
    if (without_hooks == failure{-1, EOPNOTSUPP}) GTEST_SKIP() << "the system has it switched off";
    ASSERT_EQ(without_hooks, (failure{5, 0}));
    ::close(plain);
    ::close(::accept(at.number, nullptr, nullptr));
    char got[8] = {};
    run_at_once({[&] {
                   const int mine = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
                   EXPECT_EQ(told([&] { return send(mine); }), (failure{5, 0}));
                   ::close(mine);
                 },
                 [&] {
                   const int peer = ::accept(at.number, nullptr, nullptr);
                   EXPECT_EQ(::recv(peer, got, sizeof got, MSG_WAITALL), 5);
                   ::close(peer);
                 }});
    EXPECT_STREQ(got, text);
  }
  sockaddr_in nobody{};
  {
    const listening closed;
    nobody = closed.where;
  }
  const int refused = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  run_hooked([&] {
    EXPECT_EQ(told([&] {
                return ::sendto(refused, text, 5, MSG_FASTOPEN, reinterpret_cast<sockaddr*>(&nobody), sizeof nobody);
              }),
              (failure{-1, ECONNREFUSED}));
  });
  ::close(refused);
}

TEST(hook, of_many_that_accept_one_is_woken_and_none_blocks) {
  const listening at;
  int accepted = 0;
  std::vector<std::function<void()>> those;
  for (int i = 0; i != 5; ++i)
    those.emplace_back([&] {
      const int peer = ::accept(at.number, nullptr, nullptr);
      EXPECT_GE(peer, 0);
      ++accepted;
      ::close(peer);
    });
  those.emplace_back([&] {
    for (int i = 0; i != 5; ++i) {
      ::close(at.connect());
      ::usleep(100);
    }
  });
  run_at_once(std::move(those));
  EXPECT_EQ(accepted, 5);
}

TEST(hook, a_refused_connection_says_so) {
  sockaddr_in nobody{};
  {
    const listening at;
    nobody = at.where;
  }
  failure hooked{}, after{};
  const int mine = ::socket(AF_INET, SOCK_STREAM, 0);
  const auto connect = [&] { return ::connect(mine, reinterpret_cast<sockaddr*>(&nobody), sizeof nobody); };
  run_hooked([&] {
    hooked = told(connect);
    after = told(connect);
  });
  EXPECT_EQ(hooked, (failure{-1, ECONNREFUSED}));
  EXPECT_EQ(after, (failure{-1, ECONNREFUSED})) << "as a socket that may be tried again";
  ::close(mine);
}

TEST(hook, a_local_listener_without_room_is_waited_for) {
  sockaddr_un where{};
  where.sun_family = AF_UNIX;
  const int at = ::socket(AF_UNIX, SOCK_STREAM, 0);
  ASSERT_EQ(::bind(at, reinterpret_cast<sockaddr*>(&where), sizeof(sa_family_t)), 0);
  ASSERT_EQ(::listen(at, 0), 0);
  socklen_t size = sizeof where;
  ASSERT_EQ(::getsockname(at, reinterpret_cast<sockaddr*>(&where), &size), 0);
  int connected = 0;
  run_at_once({[&] {
                 for (int i = 0; i != 3; ++i) {
                   const int mine = ::socket(AF_UNIX, SOCK_STREAM, 0);
                   EXPECT_EQ(::connect(mine, reinterpret_cast<sockaddr*>(&where), size), 0);
                   ++connected;
                   ::close(mine);
                 }
               },
               [&] {
                 for (int i = 0; i != 3; ++i) ::close(::accept(at, nullptr, nullptr));
               }});
  EXPECT_EQ(connected, 3);
  ::close(at);
}

// The socket that has its number by then is not connected.
TEST(hook, a_connect_that_waits_for_room_ends_when_its_socket_is_closed) {
  sockaddr_un where{};
  where.sun_family = AF_UNIX;
  const int at = ::socket(AF_UNIX, SOCK_STREAM, 0), first = ::socket(AF_UNIX, SOCK_STREAM, 0);
  ASSERT_EQ(::bind(at, reinterpret_cast<sockaddr*>(&where), sizeof(sa_family_t)), 0);
  ASSERT_EQ(::listen(at, 0), 0);
  socklen_t size = sizeof where;
  ASSERT_EQ(::getsockname(at, reinterpret_cast<sockaddr*>(&where), &size), 0);
  ASSERT_EQ(::connect(first, reinterpret_cast<sockaddr*>(&where), size), 0);
  const int mine = ::socket(AF_UNIX, SOCK_STREAM, 0);
  failure ended{}, peer{};
  bool is_over = false;
  run_at_once({[&] {
                 ended = told([&] { return ::connect(mine, reinterpret_cast<sockaddr*>(&where), size); });
                 is_over = true;
               },
               [&] {
                 EXPECT_FALSE(is_over);
                 EXPECT_EQ(::close(mine), 0);
                 EXPECT_EQ(::socket(AF_UNIX, SOCK_STREAM, 0), mine);
                 ::close(::accept(at, nullptr, nullptr));
                 while (!is_over) ::usleep(100);
                 sockaddr_un its{};
                 socklen_t its_size = sizeof its;
                 peer = told([&] { return ::getpeername(mine, reinterpret_cast<sockaddr*>(&its), &its_size); });
               }});
  EXPECT_EQ(ended, (failure{-1, EBADF}));
  EXPECT_EQ(peer, (failure{-1, ENOTCONN}));
  for (const int one : {at, first, mine}) ::close(one);
}

// ---- time -------------------------------------------------------------------------------------------------------------------

TEST(hook, every_sleep_lets_others_run) {
  const timespec short_time{0, 100'000};
  const std::function<int()> ways[] = {[] { return static_cast<int>(::sleep(0)); }, [] { return ::usleep(100); },
                                       [&] { return ::nanosleep(&short_time, nullptr); },
                                       [&] { return ::clock_nanosleep(CLOCK_MONOTONIC, 0, &short_time, nullptr); },
                                       [&] {
                                         timespec when;
                                         ::clock_gettime(CLOCK_MONOTONIC, &when);
                                         when.tv_nsec = std::min(when.tv_nsec + 100'000, 999'999'999L);
                                         return ::clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &when, nullptr);
                                       }};
  for (const auto& sleep : ways)
    expect_lets_others_run([&] {
      errno = 77;
      EXPECT_EQ(sleep(), 0);
      EXPECT_EQ(errno, 77);
    });
}

TEST(hook, a_time_that_makes_no_sense_fails_as_ever) {
  run_hooked([] {
    const timespec wrong{0, 1'000'000'000};
    EXPECT_EQ(told([&] { return ::nanosleep(&wrong, nullptr); }), (failure{-1, EINVAL}));
    EXPECT_EQ(told([&] { return ::nanosleep(reinterpret_cast<const timespec*>(no_address), nullptr); }),
              (failure{-1, EFAULT}));
    EXPECT_EQ(::clock_nanosleep(CLOCK_MONOTONIC, 0, &wrong, nullptr), EINVAL);
    EXPECT_EQ(::clock_nanosleep(99, 0, &wrong, nullptr), EINVAL);
  });
}

TEST(hook, the_time_limits_of_a_socket_are_obeyed) {
  socket_pair ends{SOCK_STREAM};
  const timeval limit{0, 20'000};
  ASSERT_EQ(::setsockopt(ends.at[0], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit), 0);
  ASSERT_EQ(::setsockopt(ends.at[0], SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit), 0);
  failure read{}, write{};
  ssize_t wrote = 0;
  bool others_ran = false;
  const std::string data(8 << 20, 'x');
  run_at_once({[&] {
                 char one;
                 read = told([&] { return ::read(ends.at[0], &one, 1); });
                 wrote = ::write(ends.at[0], data.data(), data.size());
                 write = told([&] { return ::write(ends.at[0], data.data(), data.size()); });
               },
               [&] { others_ran = true; }});
  EXPECT_EQ(read, (failure{-1, EAGAIN}));
  EXPECT_GT(wrote, 0);
  EXPECT_LT(wrote, static_cast<ssize_t>(data.size()));
  EXPECT_EQ(write, (failure{-1, EAGAIN}));
  EXPECT_TRUE(others_ran);
}

// Each byte comes long before the limit would be over if that began again with it.
template <class Ends>
void expect_ends_before_all_have_come() {
  constexpr std::size_t many = 300;
  Ends ends;
  const timeval limit{0, 20'000};
  ASSERT_EQ(::setsockopt(ends.at[0], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit), 0);
  ASSERT_EQ(::write(ends.at[1], "x", 1), 1);
  char got[many];
  ssize_t size = 0;
  run_at_once({[&] { size = ::recv(ends.at[0], got, many, MSG_WAITALL); },
               [&] {
                 for (std::size_t i = 1; i != many && size == 0; ++i) {
                   EXPECT_EQ(::write(ends.at[1], "x", 1), 1);
                   ::usleep(1000);
                 }
               }});
  EXPECT_GT(size, 0);
  EXPECT_LT(size, static_cast<ssize_t>(many));
}

TEST(hook, a_time_limit_is_that_of_all_parts_of_a_receive) {
  struct local : both_ends {
    local() : both_ends{SOCK_STREAM} {}
  };
  expect_ends_before_all_have_come<local>();
  expect_ends_before_all_have_come<connection>();
}

TEST(hook, a_peek_that_wants_all_gives_what_is_there_when_it_may_not_wait_longer) {
  connection ends;
  const timeval limit{0, 20'000};
  ASSERT_EQ(::setsockopt(ends.at[0], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit), 0);
  ASSERT_EQ(::write(ends.at[1], "hello", 5), 5);
  char got[20] = {};
  const auto peek = [&] { return told([&] { return ::recv(ends.at[0], got, sizeof got, MSG_WAITALL | MSG_PEEK); }); };
  expect_lets_others_run([&] { EXPECT_EQ(peek(), (failure{5, 0})); });
  EXPECT_STREQ(got, "hello");
  run_hooked([&] {
    ASSERT_EQ(::fcntl(ends.at[0], F_SETFL, O_NONBLOCK), 0);
    EXPECT_EQ(peek(), (failure{5, 0}));
    EXPECT_EQ(::recv(ends.at[0], got, sizeof got, 0), 5);
    EXPECT_EQ(peek(), (failure{-1, EAGAIN}));
  });
}

TEST(hook, a_receive_of_several_messages_with_a_limit_waits_and_says_what_is_left) {
  socket_pair pair{SOCK_DGRAM};
  char bytes[3];
  iovec parts[3];
  mmsghdr messages[3]{};
  for (int i = 0; i != 3; ++i) {
    parts[i] = {&bytes[i], 1};
    messages[i].msg_hdr.msg_iov = &parts[i];
    messages[i].msg_hdr.msg_iovlen = 1;
  }
  const auto send = [&] { EXPECT_EQ(::write(pair.at[1], "x", 1), 1); };
  timespec limit{600, 0};
  expect_waits([&] { EXPECT_EQ(::recvmmsg(pair.at[0], messages, 3, 0, &limit), 3); },
               [&] {
                 for (int i = 0; i != 3; ++i) {
                   send();
                   ::usleep(100);
                 }
               });
  EXPECT_LE(limit.tv_sec, 599);
  EXPECT_GT(limit.tv_sec, 0);
  limit = {600, 0};
  expect_waits([&] { EXPECT_EQ(::recvmmsg(pair.at[0], messages, 3, MSG_WAITFORONE, &limit), 1); }, send);
  limit = {0, 1};  // which is over when the first one comes
  expect_waits([&] { EXPECT_EQ(::recvmmsg(pair.at[0], messages, 3, 0, &limit), 1); }, send);
  EXPECT_EQ(limit.tv_sec + limit.tv_nsec, 0);
  limit = {};
  for (int i = 0; i != 2; ++i) send();
  run_hooked([&] { EXPECT_EQ(::recvmmsg(pair.at[0], messages, 3, 0, &limit), 1) << "as without hooks"; });
}

// ---- poll, select, epoll ------------------------------------------------------------------------------------------------------

TEST(hook, poll_waits_for_one_and_for_many) {
  socket_pair a{SOCK_STREAM};
  pipe_ends b;
  pollfd one{a.at[0], POLLIN, 0};
  expect_waits([&] { EXPECT_EQ(::poll(&one, 1, -1), 1); }, [&] { EXPECT_EQ(::write(a.at[1], "x", 1), 1); });
  EXPECT_EQ(one.revents, POLLIN);
  char byte;
  EXPECT_EQ(::read(a.at[0], &byte, 1), 1);

  pollfd many[4] = {{a.at[0], POLLIN | POLLRDHUP, 0}, {-1, POLLIN, 0}, {b.at[0], POLLIN, 0}, {a.at[0], POLLPRI, 0}};
  expect_waits([&] { EXPECT_EQ(::ppoll(many, 4, nullptr, nullptr), 1); },
               [&] { EXPECT_EQ(::write(b.at[1], "x", 1), 1); });
  EXPECT_EQ(many[0].revents | many[1].revents | many[3].revents, 0);
  EXPECT_EQ(many[2].revents, POLLIN);
  EXPECT_EQ(::read(b.at[0], &byte, 1), 1);

  expect_lets_others_run([&] { EXPECT_EQ(::poll(many, 4, 30), 0); });
  expect_lets_others_run([&] { EXPECT_EQ(::poll(&one, 1, 20), 0); });
  expect_lets_others_run([&] { EXPECT_EQ(::poll(nullptr, 0, 5), 0); });
  const timespec short_time{0, 1'000'000};
  expect_lets_others_run([&] { EXPECT_EQ(::ppoll(&one, 1, &short_time, nullptr), 0); });
}

TEST(hook, select_waits_and_says_what_is_left) {
  socket_pair a{SOCK_STREAM};
  pipe_ends b;
  fd_set in, out;
  timeval limit{600, 0};
  const int most = std::max(a.at[0], b.at[0]) + 1;
  expect_waits(
      [&] {
        FD_ZERO(&in);
        FD_ZERO(&out);
        FD_SET(a.at[0], &in);
        FD_SET(b.at[0], &in);
        EXPECT_EQ(::select(most, &in, &out, nullptr, &limit), 1);
      },
      [&] { EXPECT_EQ(::write(b.at[1], "x", 1), 1); });
  EXPECT_FALSE(FD_ISSET(a.at[0], &in));
  EXPECT_TRUE(FD_ISSET(b.at[0], &in));
  EXPECT_LE(limit.tv_sec, 599);
  FD_ZERO(&in);
  FD_SET(a.at[0], &in);
  expect_lets_others_run([&] {
    FD_SET(a.at[0], &in);
    limit = {0, 1000};
    EXPECT_EQ(::select(most, &in, nullptr, nullptr, &limit), 0);
  });
  EXPECT_FALSE(FD_ISSET(a.at[0], &in));
  EXPECT_EQ(limit.tv_sec + limit.tv_usec, 0);
  const timespec short_time{0, 1'000'000};
  expect_lets_others_run([&] {
    FD_SET(a.at[0], &in);
    EXPECT_EQ(::pselect(most, &in, nullptr, nullptr, &short_time, nullptr), 0);
  });
}

// It is not ready for what neither entry asks for: who waits must not be woken at once, over and over.
TEST(hook, a_poll_that_has_a_number_twice_does_not_spin) {
  socket_pair ends{SOCK_STREAM};  // with room
  pollfd twice[2] = {{ends.at[0], POLLIN, 0}, {ends.at[0], POLLIN | POLLPRI, 0}};
  const auto used = [] {
    timespec all;
    ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &all);
    return std::chrono::seconds{all.tv_sec} + std::chrono::nanoseconds{all.tv_nsec};
  };
  auto least = 1h + 0ns;  // a machine that stalls may count that as processor time
  for (int i = 0; i != 5 && least >= 150ms; ++i)
    run_hooked([&] {
      const auto before = used();
      EXPECT_EQ(::poll(twice, 2, 300), 0);
      least = std::min(least, used() - before);
    });
  EXPECT_LT(least, 150ms) << "of processor time, in which it had nothing to do";
  expect_waits([&] { EXPECT_EQ(::poll(twice, 2, -1), 2); }, [&] { EXPECT_EQ(::write(ends.at[1], "x", 1), 1); });
  twice[0].events = POLLOUT;
  char byte;
  EXPECT_EQ(::read(ends.at[0], &byte, 1), 1);
  run_hooked([&] { EXPECT_EQ(::poll(twice, 2, -1), 1); });
}

TEST(hook, poll_waits_for_many_where_the_system_gives_no_descriptor_more) {
  socket_pair a{SOCK_STREAM}, b{SOCK_STREAM};
  pollfd two[2] = {{a.at[0], POLLIN, 0}, {b.at[0], POLLIN, 0}};
  rlimit before{};
  const int lowest = ::dup(a.at[0]);
  ::close(lowest);
  expect_waits(
      [&] {
        ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
        const rlimit none{static_cast<rlim_t>(lowest), before.rlim_max};
        ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
        EXPECT_EQ(::poll(two, 2, -1), 1);
        ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
      },
      [&] { EXPECT_EQ(::write(b.at[1], "x", 1), 1); });
  EXPECT_EQ(two[1].revents, POLLIN);
}

// Its end is no exception, and is not waited for either.
TEST(hook, a_select_for_exceptions_waits_on_behind_the_end_of_a_connection) {
  socket_pair ended{SOCK_STREAM}, other{SOCK_STREAM};
  ended.close(1);
  fd_set in, exceptional;
  const auto begin = [&] {
    FD_ZERO(&in);
    FD_ZERO(&exceptional);
    FD_SET(ended.at[0], &exceptional);
  };
  const int most = std::max(ended.at[0], other.at[0]) + 1;
  expect_lets_others_run([&] {
    begin();
    timeval limit{0, 1000};
    EXPECT_EQ(::select(most, nullptr, nullptr, &exceptional, &limit), 0);
  });
  expect_waits(
      [&] {
        begin();
        FD_SET(other.at[0], &in);
        EXPECT_EQ(::select(most, &in, nullptr, &exceptional, nullptr), 1);
      },
      [&] { EXPECT_EQ(::write(other.at[1], "x", 1), 1); });
  EXPECT_TRUE(FD_ISSET(other.at[0], &in));
  EXPECT_FALSE(FD_ISSET(ended.at[0], &exceptional));
}

TEST(hook, epoll_wait_waits) {
  socket_pair ends{SOCK_STREAM};
  const int set = ::epoll_create1(0);
  epoll_event each{.events = EPOLLIN, .data = {.u32 = 7}};
  ASSERT_EQ(::epoll_ctl(set, EPOLL_CTL_ADD, ends.at[0], &each), 0);
  epoll_event got{};
  expect_waits([&] { EXPECT_EQ(::epoll_wait(set, &got, 1, -1), 1); },
               [&] { EXPECT_EQ(::write(ends.at[1], "x", 1), 1); });
  EXPECT_EQ(got.data.u32, 7U);
  char byte;
  EXPECT_EQ(::read(ends.at[0], &byte, 1), 1);
  expect_lets_others_run([&] { EXPECT_EQ(::epoll_pwait(set, &got, 1, 5, nullptr), 0); });
  ::close(set);
}

// As in some containers, whose filter of system calls refuses to copy the memory of any process. A filter is the thread's, and of
// the threads that it starts.
TEST(hook, waits_where_the_system_refuses_to_copy_memory) {
  const auto refuse = [] {
    sock_filter steps[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
                           BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 1, 0),
                           BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_writev, 0, 1),
                           BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
                           BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    const sock_fprog all{static_cast<unsigned short>(std::size(steps)), steps};
    return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &all) == 0;
  };
  bool is_refused = false;
  std::thread{[&] {
    is_refused = refuse();
    if (!is_refused) return;
    expect_lets_others_run([] {
      const timespec short_time{0, 1'000'000};
      EXPECT_EQ(::nanosleep(&short_time, nullptr), 0);
    });
    socket_pair ends{SOCK_STREAM};
    fd_set in;
    timeval limit{600, 0};
    FD_ZERO(&in);
    FD_SET(ends.at[0], &in);
    expect_waits([&] { EXPECT_EQ(::select(ends.at[0] + 1, &in, nullptr, nullptr, &limit), 1); },
                 [&] { EXPECT_EQ(::write(ends.at[1], "x", 1), 1); });
    EXPECT_LE(limit.tv_sec, 599);
  }}.join();
  if (!is_refused) GTEST_SKIP() << "no filters of system calls here";
}

// ---- names, files -----------------------------------------------------------------------------------------------------------

TEST(hook, getaddrinfo_waits_and_gives_the_same) {
  addrinfo hints{}, *plain = nullptr, *hooked = nullptr, *number = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  ASSERT_EQ(::getaddrinfo("localhost", "80", &hints, &plain), 0);
  expect_lets_others_run([&] { EXPECT_EQ(::getaddrinfo("localhost", "80", &hints, &hooked), 0); });
  run_hooked([&] {
    EXPECT_EQ(::getaddrinfo("127.0.0.1", "80", &hints, &number), 0);
    addrinfo* none = nullptr;
    EXPECT_NE(::getaddrinfo(nullptr, nullptr, &hints, &none), 0);
  });
  ASSERT_NE(hooked, nullptr);
  EXPECT_EQ(hooked->ai_addrlen, plain->ai_addrlen);
  EXPECT_EQ(std::memcmp(hooked->ai_addr, plain->ai_addr, plain->ai_addrlen), 0);
  for (addrinfo* one : {plain, hooked, number}) ::freeaddrinfo(one);
}

TEST(hook, files_are_read_here_or_elsewhere) {
  char name[] = "/tmp/weft-hook-XXXXXX";
  const int file = ::mkstemp(name);
  ASSERT_GE(file, 0);
  ::unlink(name);
  for (const bool elsewhere : {false, true}) {
    const auto calls = [&] {
      char got[8] = {};
      EXPECT_EQ(::ftruncate(file, 0), 0);
      EXPECT_EQ(::lseek(file, 0, SEEK_SET), 0);
      EXPECT_EQ(::write(file, "abcdef", 6), 6);
      EXPECT_EQ(::pwrite(file, "X", 1, 1), 1);
      EXPECT_EQ(::pread(file, got, 8, 0), 6);
      EXPECT_STREQ(got, "aXcdef");
      EXPECT_EQ(::lseek(file, 2, SEEK_SET), 2);
      EXPECT_EQ(::read(file, got, 3), 3);
      EXPECT_EQ(::read(file, got, 8), 1);
      EXPECT_EQ(::read(file, got, 8), 0);
      EXPECT_EQ(told([&] { return ::pread(file, got, 1, -1); }), (failure{-1, EINVAL}));
      EXPECT_EQ(told([&] { return ::read(file, no_address, 0); }), (failure{0, 0}));
    };
    const auto body = [&]() -> task<> { co_await weft::hooked({.files = elsewhere}, calls); };
    on_a_worker(body());
  }
  ::close(file);
}

// ---- descriptors ----------------------------------------------------------------------------------------------------------------

TEST(hook, what_the_program_made_non_blocking_does_not_wait) {
  socket_pair ends{SOCK_STREAM | SOCK_NONBLOCK};
  pipe_ends pipe;
  const listening at;
  const int on = 1;
  ASSERT_EQ(::ioctl(pipe.at[0], FIONBIO, &on), 0);
  ASSERT_EQ(::fcntl(at.number, F_SETFL, O_NONBLOCK), 0);
  run_hooked([&] {
    char byte;
    EXPECT_EQ(told([&] { return ::read(ends.at[0], &byte, 1); }), (failure{-1, EAGAIN}));
    EXPECT_EQ(told([&] { return ::recv(ends.at[0], &byte, 1, 0); }), (failure{-1, EAGAIN}));
    EXPECT_EQ(told([&] { return ::read(pipe.at[0], &byte, 1); }), (failure{-1, EAGAIN}));
    EXPECT_EQ(told([&] { return ::accept(at.number, nullptr, nullptr); }), (failure{-1, EAGAIN}));
    EXPECT_EQ(::fcntl(ends.at[0], F_GETFL) & O_NONBLOCK, O_NONBLOCK);
    EXPECT_EQ(::fcntl(pipe.at[1], F_GETFL) & O_NONBLOCK, 0);
  });
  socket_pair blocks{SOCK_STREAM};
  run_hooked([&] {
    char byte;
    EXPECT_EQ(told([&] { return ::recv(blocks.at[0], &byte, 1, MSG_DONTWAIT); }), (failure{-1, EAGAIN}));
  });
}

TEST(hook, close_and_dup2_end_those_who_wait) {
  socket_pair a{SOCK_STREAM}, b{SOCK_STREAM};
  failure first{}, second{};
  char byte;
  run_at_once({[&] { first = told([&] { return ::read(a.at[0], &byte, 1); }); },
               [&] { second = told([&] { return ::recv(a.at[0], &byte, 1, 0); }); }, [&] { a.close(0); }});
  EXPECT_EQ(first, (failure{-1, EBADF}));
  EXPECT_EQ(second, (failure{-1, EBADF}));
  run_at_once({[&] { first = told([&] { return ::read(b.at[0], &byte, 1); }); },
               [&] { EXPECT_EQ(::dup2(b.at[1], b.at[0]), b.at[0]); }});
  EXPECT_EQ(first, (failure{-1, EBADF}));
}

// One of two, of which a duplicate keeps the file open. The limit only ends a test that fails.
TEST(hook, close_and_dup2_end_those_who_wait_for_many) {
  constexpr int long_time = 20'000;
  for (const bool by_dup2 : {false, true}) {
    socket_pair a{SOCK_STREAM}, b{SOCK_STREAM}, c{SOCK_STREAM};
    const int twin = ::dup(b.at[0]);
    failure polled{}, selected{};
    run_at_once({[&] {
                   pollfd two[2] = {{a.at[0], POLLIN, 0}, {b.at[0], POLLIN, 0}};
                   polled = told([&] { return ::poll(two, 2, long_time); });
                 },
                 [&] {
                   fd_set in;
                   FD_ZERO(&in);
                   FD_SET(a.at[0], &in);
                   FD_SET(b.at[0], &in);
                   timeval limit{long_time / 1000, 0};
                   const int most = std::max(a.at[0], b.at[0]) + 1;
                   selected = told([&] { return ::select(most, &in, nullptr, nullptr, &limit); });
                 },
                 [&] {
                   if (by_dup2)
                     EXPECT_EQ(::dup2(c.at[0], b.at[0]), b.at[0]);
                   else
                     b.close(0);
                 }});
    EXPECT_EQ(polled, (failure{-1, EBADF}));
    EXPECT_EQ(selected, (failure{-1, EBADF}));
    ::close(twin);
  }
}

// As fclose() does, or a plain thread. The first wait is over by then, and the second one is for the other file.
TEST(hook, a_number_that_is_closed_unseen_is_waited_for_as_the_file_that_it_is_of_now) {
  pipe_ends before, after;
  failure first{};
  bool is_over = false;
  run_at_once({[&] {
                 pollfd one{before.at[0], POLLIN, 0};
                 first = told([&] { return ::poll(&one, 1, -1); });
               },
               [&] {
                 // No hook sees it.
                 ASSERT_EQ(::syscall(SYS_dup3, after.at[0], before.at[0], 0), before.at[0]);
                 pollfd one{before.at[0], POLLIN, 0};
                 EXPECT_EQ(::poll(&one, 1, -1), 1);
                 char byte;
                 EXPECT_EQ(::read(before.at[0], &byte, 1), 1);
                 is_over = true;
               },
               [&] {
                 EXPECT_FALSE(is_over);
                 EXPECT_EQ(::write(after.at[1], "x", 1), 1);
               }});
  EXPECT_TRUE(is_over);
  EXPECT_EQ(first, (failure{-1, EBADF}));
}

TEST(hook, a_duplicate_is_waited_for_as_the_first_one) {
  socket_pair ends{SOCK_STREAM};
  const int twin = ::dup(ends.at[0]);
  char bytes[2] = {};
  run_at_once({[&] { EXPECT_EQ(::read(ends.at[0], &bytes[0], 1), 1); },
               [&] { EXPECT_EQ(::read(twin, &bytes[1], 1), 1); },
               [&] {
                 EXPECT_EQ(::write(ends.at[1], "x", 1), 1);
                 EXPECT_EQ(::write(ends.at[1], "x", 1), 1);
               }});
  EXPECT_EQ(bytes[0], 'x');
  EXPECT_EQ(bytes[1], 'x');
  ::close(twin);
}

TEST(hook, two_directions_of_one_number_are_waited_for_at_once) {
  socket_pair ends{SOCK_STREAM};
  const std::string data(1 << 20, 'x');
  std::size_t got = 0;
  run_at_once({[&] {
                 char byte;
                 EXPECT_EQ(::read(ends.at[0], &byte, 1), 1);
               },
               [&] { EXPECT_EQ(::write(ends.at[0], data.data(), data.size()), static_cast<ssize_t>(data.size())); },
               [&] {
                 std::array<char, 4096> buffer;
                 while (got < data.size())
                   got += static_cast<std::size_t>(::read(ends.at[1], buffer.data(), buffer.size()));
                 EXPECT_EQ(::write(ends.at[1], "y", 1), 1);
               }});
  EXPECT_EQ(got, data.size());
}

TEST(hook, failures_are_those_of_the_plain_calls) {
  socket_pair ends{SOCK_STREAM};
  const listening at;
  const timeval limit{0, 1000};  // for a call that waits although it can't succeed
  ASSERT_EQ(::setsockopt(at.number, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit), 0);
  const int bad = 1 << 19;
  char* const nowhere = no_address;
  const volatile std::size_t all_ones = SIZE_MAX;
  const volatile int below_zero = -1;
  char byte = 0;
  iovec part{nowhere, 4};
  mmsghdr message{};
  timespec no_time{0, -1};
  const std::function<ssize_t()> calls[] = {
      [&] { return ::read(bad, &byte, 1); },
      [&] { return ::write(bad, &byte, 1); },
      [&] { return ::write(ends.at[1], nowhere, 4); },
      [&] { return ::recv(bad, &byte, 1, 0); },
      [&] { return ::recv(STDIN_FILENO, &byte, 0, MSG_OOB); },
      [&] { return ssize_t{::accept(ends.at[0], nullptr, nullptr)}; },
      [&] { return ssize_t{::accept(bad, nullptr, nullptr)}; },
      [&] { return ssize_t{::accept4(at.number, nullptr, nullptr, 1)}; },
      [&] { return ssize_t{::connect(ends.at[0], nullptr, 0)}; },
      [&] { return ::readv(ends.at[0], &part, below_zero); },
      [&] { return ::readv(ends.at[0], reinterpret_cast<iovec*>(no_address), 1); },
      [&] { return ::writev(ends.at[0], &part, 1); },
      [&] { return ::writev(ends.at[0], reinterpret_cast<iovec*>(no_address), 2); },
      [&] { return ::sendmsg(ends.at[0], reinterpret_cast<msghdr*>(no_address), 0); },
      [&] { return ::recvmsg(ends.at[0], reinterpret_cast<msghdr*>(no_address), 0); },
      [&] { return ssize_t{::recvmmsg(ends.at[0], &message, 1, 0, &no_time)}; },
      [&] { return ssize_t{::recvmmsg(ends.at[0], &message, 1, 0, reinterpret_cast<timespec*>(no_address))}; },
      [&] { return ssize_t{::poll(reinterpret_cast<pollfd*>(no_address), 1, 10)}; },
      [&] { return ssize_t{::select(-1, nullptr, nullptr, nullptr, nullptr)}; },
      [&] { return ssize_t{::epoll_wait(bad, reinterpret_cast<epoll_event*>(no_address), 1, 10)}; },
      [&] { return ssize_t{::epoll_wait(ends.at[0], nullptr, 0, 10)}; },
      [&] { return ::read(ends.at[0], &byte, all_ones); },
      [&] { return ::pread(ends.at[0], &byte, 1, 0); },
      [&] { return ssize_t{::close(bad)}; },
      [&] { return ssize_t{::dup2(bad, 5)}; },
  };
  for (std::size_t i = 0; i != std::size(calls); ++i) {
    const failure plain = told(calls[i]);
    failure hooked{};
    run_hooked([&] { hooked = told(calls[i]); });
    EXPECT_EQ(hooked, plain) << "call " << i;
    EXPECT_LT(plain.result, 0) << "call " << i;
  }
}

TEST(hook, errno_stays_over_a_switch) {
  pipe_ends pipe;
  run_at_once({[&] {
                 char byte;
                 errno = 41;
                 EXPECT_EQ(::read(pipe.at[0], &byte, 1), 1);
                 EXPECT_EQ(errno, 41);
               },
               [&] {
                 errno = 42;
                 EXPECT_EQ(::write(pipe.at[1], "x", 1), 1);
                 EXPECT_EQ(errno, 42);
               }});
}

// ---- stops ----------------------------------------------------------------------------------------------------------------------

// `call` is stopped while it waits, and once more before it begins.
void expect_stops(std::function<failure()> call) {
  failure waiting{}, later{};
  bool has_begun = false, has_ended = false;
  const auto body = [&](scope& inside) -> task<> {
    inside.fork(weft::hooked([&] {
      has_begun = true;
      waiting = call();
      later = call();
      has_ended = true;
    }));
    while (!has_begun) co_await weft::yield();
    co_await weft::sleep_for(2ms);
    EXPECT_FALSE(has_ended);
    inside.request_stop();
  };
  const auto all = [&]() -> task<> { co_await weft::with_scope(body); };
  on_a_worker(all());
  EXPECT_TRUE(has_ended) << "no frame is unwound";
  EXPECT_EQ(waiting, (failure{-1, ECANCELED}));
  EXPECT_EQ(later, (failure{-1, ECANCELED}));
}

TEST(hook, a_stop_ends_every_call_with_ecanceled) {
  socket_pair ends{SOCK_STREAM};
  pipe_ends pipe, full;
  const listening at;
  char byte;
  ASSERT_EQ(::fcntl(full.at[1], F_SETFL, O_NONBLOCK), 0);
  while (::write(full.at[1], ends.at, sizeof ends.at) > 0) {
  }
  ASSERT_EQ(::fcntl(full.at[1], F_SETFL, 0), 0);
  pollfd two[2] = {{ends.at[0], POLLIN, 0}, {pipe.at[0], POLLIN, 0}};
  const int set = ::epoll_create1(0);
  epoll_event got;
  expect_stops([&] { return told([&] { return ::read(ends.at[0], &byte, 1); }); });
  expect_stops([&] { return told([&] { return ::read(pipe.at[0], &byte, 1); }); });
  expect_stops([&] { return told([&] { return ::write(full.at[1], &byte, 1); }); });
  expect_stops([&] { return told([&] { return ::recv(ends.at[0], &byte, 1, MSG_WAITALL); }); });
  expect_stops([&] { return told([&] { return ::accept(at.number, nullptr, nullptr); }); });
  expect_stops([&] { return told([&] { return ::poll(two, 1, -1); }); });
  expect_stops([&] { return told([&] { return ::poll(two, 2, -1); }); });
  expect_stops([&] { return told([&] { return ::poll(two, 2, 100'000); }); });
  expect_stops([&] { return told([&] { return ::poll(nullptr, 0, -1); }); });
  expect_stops([&] { return told([&] { return ::select(0, nullptr, nullptr, nullptr, nullptr); }); });
  expect_stops([&] { return told([&] { return ::epoll_wait(set, &got, 1, -1); }); });
  expect_stops([&] { return told([&] { return ::usleep(100'000'000); }); });
  expect_stops([&] {
    const timespec long_time{100, 0};
    return told([&] { return ::nanosleep(&long_time, nullptr); });
  });
  expect_stops([&] {
    errno = 0;
    const unsigned left = ::sleep(100);
    return failure{left != 0 ? -1 : 0, errno};
  });
  ::close(set);
}

TEST(hook, what_never_waits_goes_on_in_a_stopped_fiber) {
  char name[] = "/tmp/weft-hook-XXXXXX";
  const int file = ::mkstemp(name);
  ::unlink(name);
  bool has_begun = false;
  const auto body = [&](scope& inside) -> task<> {
    inside.fork(weft::hooked([&] {
      has_begun = true;
      EXPECT_EQ(::usleep(100'000'000), -1);
      EXPECT_EQ(::write(file, "end", 3), 3);
      addrinfo* none = nullptr;
      EXPECT_EQ(::getaddrinfo("localhost", nullptr, nullptr, &none), EAI_SYSTEM);
      EXPECT_EQ(errno, ECANCELED);
      EXPECT_EQ(::close(file), 0);
    }));
    while (!has_begun) co_await weft::yield();
    co_await weft::sleep_for(1ms);
    inside.request_stop();
  };
  const auto all = [&]() -> task<> { co_await weft::with_scope(body); };
  on_a_worker(all());
}

// ---- locks, forks, kinds ------------------------------------------------------------------------------------------------------

// What blocks the thread: the other fiber does not run before it ends.
void expect_blocks(std::function<void()> before, std::function<void()> after) {
  bool other_ran = false, ran_meanwhile = false;
  run_at_once({[&] {
                 before();
                 ::usleep(1000);
                 ran_meanwhile = other_ran;
                 after();
                 ::usleep(0);
               },
               [&] { other_ran = true; }});
  EXPECT_FALSE(ran_meanwhile);
  EXPECT_TRUE(other_ran);
}

TEST(hook, a_call_under_a_lock_of_pthread_blocks_the_thread) {
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  pthread_rwlock_t shared = PTHREAD_RWLOCK_INITIALIZER;
  expect_blocks([&] { ::pthread_mutex_lock(&mutex); }, [&] { ::pthread_mutex_unlock(&mutex); });
  expect_blocks([&] { ::pthread_mutex_trylock(&mutex); }, [&] { ::pthread_mutex_unlock(&mutex); });
  expect_blocks([&] { ::pthread_rwlock_rdlock(&shared); }, [&] { ::pthread_rwlock_unlock(&shared); });
  expect_blocks([&] { ::pthread_rwlock_wrlock(&shared); }, [&] { ::pthread_rwlock_unlock(&shared); });
}

TEST(hook, a_call_under_any_other_lock_blocks_the_thread) {
  const timespec long_ago{};
  mtx_t of_c;
  ASSERT_EQ(::mtx_init(&of_c, mtx_timed), thrd_success);
  const auto unlock_of_c = [&] { EXPECT_EQ(::mtx_unlock(&of_c), thrd_success); };
  expect_blocks([&] { EXPECT_EQ(::mtx_lock(&of_c), thrd_success); }, unlock_of_c);
  expect_blocks([&] { EXPECT_EQ(::mtx_trylock(&of_c), thrd_success); }, unlock_of_c);
  expect_blocks([&] { EXPECT_EQ(::mtx_timedlock(&of_c, &long_ago), thrd_success); }, unlock_of_c);
  ::mtx_destroy(&of_c);
  pthread_spinlock_t spin;
  ASSERT_EQ(::pthread_spin_init(&spin, PTHREAD_PROCESS_PRIVATE), 0);
  expect_blocks([&] { EXPECT_EQ(::pthread_spin_lock(&spin), 0); }, [&] { EXPECT_EQ(::pthread_spin_unlock(&spin), 0); });
  expect_blocks([&] { EXPECT_EQ(::pthread_spin_trylock(&spin), 0); },
                [&] { EXPECT_EQ(::pthread_spin_unlock(&spin), 0); });
  ::pthread_spin_destroy(&spin);
}

// What is done once, by the first of two fibers that want it, and waits.
template <class Once>
void expect_blocks_once(Once once) {
  bool is_in_it = false;
  const auto wants = [&] {
    once([&is_in_it] {
      is_in_it = true;
      ::usleep(1000);
      is_in_it = false;
    });
    EXPECT_FALSE(is_in_it);
  };
  run_at_once({wants, wants});
}

std::function<void()> to_do_once;

TEST(hook, a_call_in_what_is_done_once_blocks_the_thread) {
  expect_blocks_once([](std::function<void()> what) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    to_do_once = std::move(what);
    EXPECT_EQ(::pthread_once(&once, [] { to_do_once(); }), 0);
  });
  expect_blocks_once([](std::function<void()> what) {
    static once_flag once = ONCE_FLAG_INIT;
    to_do_once = std::move(what);
    ::call_once(&once, [] { to_do_once(); });
  });
#if !defined(WEFT_TEST_TSAN)  // behind an exception it waits for ever
  expect_blocks_once([once = std::make_shared<std::once_flag>()](const std::function<void()>& what) {
    try {
      std::call_once(*once, [&] {
        what();
        throw std::runtime_error{"the next one tries again"};
      });
    } catch (const std::runtime_error&) {  // it counts as no lock any more
    }
  });
#endif
  expect_lets_others_run([] { ::usleep(1000); });
}

#if !defined(WEFT_TEST_TSAN)  // it has these functions of the compiler's to itself
TEST(hook, a_call_in_the_initializer_of_a_static_variable_blocks_the_thread) {
  expect_blocks_once([](std::function<void()> what) {
    const auto initialize = [&] {
      what();
      return 7;
    };
    static const int seven = initialize();
    EXPECT_EQ(seven, 7);
  });
  expect_blocks_once([tries = 0](std::function<void()> what) mutable {
    const auto initialize = [&] {
      what();
      if (++tries == 1) throw std::runtime_error{"the next one tries again"};
      return 8;
    };
    try {
      static const int eight = initialize();
      EXPECT_EQ(eight, 8);
    } catch (const std::runtime_error&) {  // it counts as no lock any more
    }
  });
  expect_lets_others_run([] { ::usleep(1000); });
}
#endif

#if !defined(WEFT_TEST_TSAN)  // it knows neither of these, and so of no lock where one is unlocked
TEST(hook, a_call_under_a_lock_with_a_clock_blocks_the_thread) {
  const timespec long_ago{};
  pthread_rwlock_t shared = PTHREAD_RWLOCK_INITIALIZER;
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  const auto unlock = [&] { EXPECT_EQ(::pthread_rwlock_unlock(&shared), 0); };
  const auto read_lock = [&] { EXPECT_EQ(::pthread_rwlock_clockrdlock(&shared, CLOCK_MONOTONIC, &long_ago), 0); };
  expect_blocks(read_lock, unlock);
  expect_blocks([&] { EXPECT_EQ(::pthread_rwlock_clockwrlock(&shared, CLOCK_MONOTONIC, &long_ago), 0); }, unlock);
  // An unlock takes away its own lock, and no other.
  expect_blocks(
      [&] {
        ::pthread_mutex_lock(&mutex);
        read_lock();
        unlock();
      },
      [&] { ::pthread_mutex_unlock(&mutex); });
}
#endif

TEST(hook, a_call_under_a_mutex_whose_owner_has_ended_blocks_the_thread) {
  pthread_mutexattr_t robust;
  pthread_mutex_t mutex;
  ::pthread_mutexattr_init(&robust);
  ::pthread_mutexattr_setrobust(&robust, PTHREAD_MUTEX_ROBUST);
  ASSERT_EQ(::pthread_mutex_init(&mutex, &robust), 0);
  std::thread{[&] { ::pthread_mutex_lock(&mutex); }}.join();
  expect_blocks(
      [&] {
        EXPECT_EQ(::pthread_mutex_lock(&mutex), EOWNERDEAD);
        EXPECT_EQ(::pthread_mutex_consistent(&mutex), 0);
      },
      [&] { EXPECT_EQ(::pthread_mutex_unlock(&mutex), 0); });
  ::pthread_mutex_destroy(&mutex);
  ::pthread_mutexattr_destroy(&robust);
}

TEST(hook, a_kind_that_is_off_blocks_the_thread) {
  std::optional<weft::hooks> fewer;
  expect_blocks([&] { fewer.emplace(weft::hook_options{.sleep = false}); }, [&] { fewer.reset(); });
}

TEST(hook, a_child_has_no_hooks) {
  pipe_ends pipe;
  int status = -1;
  run_at_once({[&] {
                 const pid_t child = ::fork();
                 if (child == 0) {
                   ::usleep(1);
                   const bool wrote = ::write(pipe.at[1], "child", 5) == 5;
                   ::_exit(wrote ? 7 : 8);
                 }
                 char got[8] = {};
                 EXPECT_EQ(::read(pipe.at[0], got, 5), 5);
                 EXPECT_STREQ(got, "child");
                 EXPECT_EQ(::waitpid(child, &status, 0), child);
               },
               [] {}});
  EXPECT_EQ(WEXITSTATUS(status), 7);
}

// Whose memory is the parent's. What it closes is its own.
TEST(hook, what_a_child_of_vfork_closes_ends_no_wait_of_the_parent) {
  pipe_ends pipe, other;
  failure got{};
  int status = -1;
  bool is_over = false, others_ran_in_child = false;
  const pid_t parent = ::getpid();
  run_at_once({[&] {
                 char byte;
                 got = told([&] { return ::read(pipe.at[0], &byte, 1); });
               },
               [&] {
                 pollfd one{other.at[0], POLLIN, 0};
                 const pid_t child = ::vfork();  // NOLINT(clang-analyzer-security.insecureAPI.vfork)
                 if (child == 0) {
                   // NOLINTBEGIN(clang-analyzer-unix.Vfork): hooks, which are what is tested
                   ::dup2(pipe.at[1], pipe.at[0]);
                   ::close(pipe.at[0]);
                   for (int i = 0; i != 1000; ++i)
                     ::poll(&one, 1, i == 999 ? 1 : 0);  // to have had its turn, and to wait
                   // NOLINTEND(clang-analyzer-unix.Vfork)
                   ::_exit(3);
                 }
                 EXPECT_EQ(::waitpid(child, &status, 0), child);
                 EXPECT_EQ(::write(pipe.at[1], "x", 1), 1);
                 is_over = true;
               },
               [&] {
                 while (!is_over) {
                   others_ran_in_child |= ::getpid() != parent;
                   ::usleep(0);
                 }
               }});
  EXPECT_FALSE(others_ran_in_child) << "it has lent its thread";
  EXPECT_EQ(got, (failure{1, 0}));
  EXPECT_EQ(WEXITSTATUS(status), 3);
}

TEST(hook, gives_what_the_function_gives_and_throws_what_it_throws) {
  const auto body = []() -> task<> {
    const auto add = [](int a, int b) { return a + b; };
    EXPECT_EQ(co_await weft::hooked(add, 2, 3), 5);
    const auto fails = [] { throw std::runtime_error{"no"}; };
    const auto failed = co_await weft::as_result(weft::hooked(fails));
    EXPECT_TRUE(failed.exception() != nullptr);
  };
  on_a_worker(body());
}

// A library that is loaded later finds the program's functions in front of the C library's, too.
TEST(hook, a_library_that_is_loaded_later_is_hooked) {
  EXPECT_EQ(::dlsym(RTLD_DEFAULT, "read"), reinterpret_cast<void*>(&::read));
  EXPECT_NE(::dlsym(RTLD_DEFAULT, "read"), ::dlsym(RTLD_NEXT, "read"));
}

TEST(hook_misuse_DeathTest, a_pool_is_refused) {
  const auto on_a_pool = [] {
    weft::pool threads{{.threads = 2}};
    threads.run(weft::hooked([] {}));
  };
  EXPECT_DEATH(on_a_pool(), "must stay on one thread");
}

}  // namespace
