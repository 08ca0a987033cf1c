// What hooked calls come to when the system's calls below them fail: each that each of them makes, with errors that the system may
// give there. A call gives the right value or that error, no byte is lost or comes twice, nothing hangs, and no descriptor or watch
// is left. The other side is a plain thread, which makes its calls by syscall(): so a call that blocks its worker ends, too.
//
// Long because each hooked call is a scenario.
#include "support/weft_test.hpp"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>
#include <weft/hook.hpp>
#include <weft/hop.hpp>
#include <weft/runtime.hpp>
#include <weft/scope.hpp>
#include <weft/with.hpp>

#include "hook/hook_calls.hpp"
#include "net/open_descriptors.hpp"

namespace {

using test::below;
using test::fault_below;
using test::one_byte;
using weft::io_backend;

// ---- two ends -----------------------------------------------------------------------------------------------------------------

int plain(long result) { return static_cast<int>(result); }

// In bytes, of what a connection holds on its way, on each side; the system doubles it.
constexpr int room = 1 << 17;

// By TCP: the first is the fiber's.
struct connection {
  int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), here = -1, there = -1;
  sockaddr_in where{};
  explicit connection(bool connects = true) {
    where.sin_family = AF_INET;
    where.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof where;
    EXPECT_EQ(::bind(listener, address(), size), 0);
    EXPECT_EQ(::setsockopt(listener, SOL_SOCKET, SO_RCVBUF, &room, sizeof room), 0);
    EXPECT_EQ(::listen(listener, 16), 0);
    EXPECT_EQ(::getsockname(listener, address(), &size), 0);
    if (!connects) return;
    here = connected();
    there = plain(::syscall(SYS_accept4, listener, nullptr, nullptr, SOCK_CLOEXEC));
  }
  connection(const connection&) = delete;
  ~connection() {
    for (const int one : {listener, here, there})
      if (one >= 0) ::syscall(SYS_close, one);
  }
  sockaddr* address() { return reinterpret_cast<sockaddr*>(&where); }
  int connected() {
    const int mine = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    EXPECT_EQ(::syscall(SYS_connect, mine, address(), sizeof where), 0);
    return mine;
  }
};

constexpr std::string_view letters = "abcdefghij";

void write_plain(int to, std::string_view text) {
  EXPECT_EQ(::syscall(SYS_write, to, text.data(), text.size()), static_cast<long>(text.size()));
}
// So many bytes, or all to the end.
std::string read_plain(int from, std::size_t count) {
  std::string all;
  static thread_local char each[std::size_t{1} << 16];
  while (all.size() < count) {
    const long got = ::syscall(SYS_read, from, each, std::min(sizeof each, count - all.size()));
    if (got <= 0) break;
    all.append(each, static_cast<std::size_t>(got));
  }
  return all;
}

// By the plain thread: until the fiber waits, so that it does wait; or until a fault has struck, since the fiber may block its
// worker then.
std::atomic<unsigned> turns_of_another{0};  // on the fiber's worker
const test::injection_below* strikes = nullptr;
void wait_until_it_waits() {
  const unsigned before = turns_of_another;
  while (turns_of_another == before && strikes->struck() == 0)
    std::this_thread::sleep_for(std::chrono::microseconds{20});
}
// Until it has taken what there was.
void wait_until_it_has_read(int from) {
  for (int size = 1; size != 0; std::this_thread::yield()) ASSERT_EQ(::ioctl(from, FIONREAD, &size), 0);
}

// ---- what is swept --------------------------------------------------------------------------------------------------------------

// In a hooked fiber; it notes the errno of each call that has failed, and repeats it.
using failures = std::vector<int>;
struct scenario {
  std::string_view name;
  std::vector<below> those;  // the calls that it makes
  std::function<void(failures&)> run;
  weft::hook_options options = {};

  bool makes(below one) const { return std::find(those.begin(), those.end(), one) != those.end(); }
};

// Until all letters are there. `receive` gives how many have come, or -1.
using receive = std::function<ssize_t(int from, char* into, std::size_t size)>;
scenario receives(std::string_view name, std::vector<below> those, receive call) {
  those.insert(those.end(), {below::epoll_ctl});
  return {name, std::move(those), [call = std::move(call)](failures& failed) {
            connection ends;
            test::concern({ends.here});
            std::thread other{[&] {
              for (const std::string_view piece : {"ab", "cde", "f", "ghij"}) {
                wait_until_it_waits();
                write_plain(ends.there, piece);
                wait_until_it_has_read(ends.here);
              }
            }};
            std::string got;
            while (got.size() < letters.size() && failed.size() < 20) {
              char each[16];
              const ssize_t size = call(ends.here, each, letters.size() - got.size());
              if (size < 0)
                failed.push_back(errno);
              else
                got.append(each, static_cast<std::size_t>(size));
            }
            other.join();
            test::concern({});
            EXPECT_EQ(got, letters);
          }};
}
// More than there is room for before the peer reads.
using send_from = std::function<ssize_t(int to, const char* from, std::size_t size)>;
scenario sends(std::string_view name, std::vector<below> those, send_from call) {
  those.insert(those.end(), {below::poll, below::epoll_ctl});
  return {name, std::move(those), [call = std::move(call)](failures& failed) {
            static const std::string data = [] {
              std::string all;
              while (all.size() < std::size_t{8} * room) all += letters;
              return all;
            }();
            connection ends;
            EXPECT_EQ(::setsockopt(ends.here, SOL_SOCKET, SO_SNDBUF, &room, sizeof room), 0);
            test::concern({ends.here});
            std::string got;
            std::thread other{[&] {
              wait_until_it_waits();
              got = read_plain(ends.there, data.size());
            }};
            std::size_t done = 0;
            while (done < data.size() && failed.size() < 20) {
              const ssize_t size = call(ends.here, data.data() + done, data.size() - done);
              if (size < 0)
                failed.push_back(errno);
              else
                done += static_cast<std::size_t>(size);
            }
            if (done != data.size()) ::syscall(SYS_shutdown, ends.here, SHUT_RDWR);
            other.join();
            test::concern({});
            EXPECT_TRUE(got == data);
          }};
}

// Through a pipe, with `size` bytes of room less than is written, so that the writer waits, too.
scenario pipes(std::string_view name, std::vector<below> those, bool vectored, bool has_nowait) {
  those.insert(those.end(), {below::epoll_ctl});
  return {name, std::move(those), [vectored, has_nowait](failures& failed) {
            int in[2], out[2];
            ASSERT_EQ(::pipe2(in, O_CLOEXEC), 0);
            ASSERT_EQ(::pipe2(out, O_CLOEXEC), 0);
            ::fcntl(out[1], F_SETPIPE_SZ, 4096);
            write_plain(out[1], std::string(4096, 'x'));
            test::concern({in[0], out[1]});
            test::refuse_nowait(!has_nowait);
            std::string got, came;
            std::thread other{[&] {
              wait_until_it_waits();
              write_plain(in[1], letters);
              wait_until_it_has_read(in[0]);
              wait_until_it_waits();
              came = read_plain(out[0], 4096 + letters.size());
            }};
            while (got.size() < letters.size() && failed.size() < 20) {
              char each[16];
              iovec parts[2] = {{each, 1}, {each + 1, letters.size() - got.size() - 1}};
              const ssize_t size =
                  vectored ? ::readv(in[0], parts, 2) : ::read(in[0], each, letters.size() - got.size());
              if (size < 0)
                failed.push_back(errno);
              else
                got.append(each, static_cast<std::size_t>(size));
            }
            std::size_t done = 0;
            while (done < letters.size() && failed.size() < 20) {
              char* const from = const_cast<char*>(letters.data()) + done;
              iovec parts[2] = {{from, 1}, {from + 1, letters.size() - done - 1}};
              const ssize_t size = vectored ? ::writev(out[1], parts, 2) : ::write(out[1], from, letters.size() - done);
              if (size < 0)
                failed.push_back(errno);
              else
                done += static_cast<std::size_t>(size);
            }
            ::syscall(SYS_close, out[1]);
            other.join();
            test::refuse_nowait(false);
            test::concern({});
            for (const int one : {in[0], in[1], out[0]}) ::syscall(SYS_close, one);
            EXPECT_EQ(got, letters);
            EXPECT_EQ(came, std::string(4096, 'x') + std::string{letters});
          }};
}

// Until it says that there is something. `wait` gives how many are ready.
scenario waits(std::string_view name, std::vector<below> those, std::function<int(int number, int other)> wait) {
  those.insert(those.end(), {below::epoll_ctl});
  return {name, std::move(those), [wait = std::move(wait)](failures& failed) {
            connection ends, quiet;
            test::concern({ends.here, quiet.here});
            std::thread other{[&] {
              wait_until_it_waits();
              write_plain(ends.there, "x");
            }};
            int ready = -1;
            while (ready < 0 && failed.size() < 20) {
              ready = wait(ends.here, quiet.here);
              if (ready < 0) failed.push_back(errno);
            }
            other.join();
            test::concern({});
            EXPECT_EQ(ready, 1);
          }};
}

scenario accepts(std::string_view name, below which, bool by_accept4) {
  return {name, {which, below::poll, below::epoll_ctl}, [by_accept4](failures& failed) {
            connection ends{false};
            test::concern({ends.listener});
            static_cast<void>(test::lost_connections());
            std::thread other{[&] {
              wait_until_it_waits();
              for (int left = 1; left > 0; left += test::lost_connections()) {
                const int mine = ends.connected();
                EXPECT_LE(read_plain(mine, 1), "x");  // nothing: it was taken by another one
                ::syscall(SYS_close, mine);
                --left;
              }
            }};
            int peer = -1;
            while (peer < 0 && failed.size() < 20) {
              peer = by_accept4 ? ::accept4(ends.listener, nullptr, nullptr, SOCK_CLOEXEC)
                                : ::accept(ends.listener, nullptr, nullptr);
              if (peer < 0) failed.push_back(errno);
            }
            write_plain(peer, "x");
            other.join();
            ::syscall(SYS_close, peer);
            test::concern({});
          }};
}

scenario connects() {
  return {"connect", {below::connect, below::poll, below::epoll_ctl}, [](failures& failed) {
            connection ends{false};
            int mine = -1;
            for (bool is_there = false; !is_there && failed.size() < 20;) {
              if (mine >= 0) ::syscall(SYS_close, mine);
              mine = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
              test::concern({mine});
              is_there = ::connect(mine, ends.address(), sizeof ends.where) == 0;
              if (!is_there) failed.push_back(errno);
            }
            test::concern({});
            EXPECT_EQ(::fcntl(mine, F_GETFL) & O_NONBLOCK, 0);
            ::syscall(SYS_close, mine);
          }};
}

// At a position; `at_a_place` makes the calls below.
struct positional {
  const char* name;
  std::vector<below> at_a_place;
  ssize_t (*read)(int from, char* into, std::size_t size, off_t at);
  ssize_t (*write)(int to, const char* data, std::size_t size, off_t at);
};
scenario files(std::string_view name, const positional& calls, bool elsewhere) {
  std::vector<below> those = calls.at_a_place;
  those.insert(those.end(), {below::read, below::write});
  return {
      name,
      std::move(those),
      [calls](failures& failed) {
        char path[] = "/tmp/weft-hook-XXXXXX";
        const int file = ::mkostemp(path, O_CLOEXEC);
        ::unlink(path);
        test::concern({file});
        const auto all = [&](auto call) {
          std::size_t done = 0;
          while (done < letters.size() && failed.size() < 20) {
            const ssize_t size = call(done, letters.size() - done);
            if (size < 0)
              failed.push_back(errno);
            else
              done += static_cast<std::size_t>(size);
          }
        };
        char got[16] = {}, again[16] = {};
        all([&](std::size_t at, std::size_t size) { return ::write(file, letters.data() + at, size); });
        all([&](std::size_t at, std::size_t size) {
          return calls.write(file, letters.data() + at, size, static_cast<off_t>(at));
        });
        all([&](std::size_t at, std::size_t size) { return calls.read(file, got + at, size, static_cast<off_t>(at)); });
        EXPECT_EQ(::lseek(file, 0, SEEK_SET), 0);
        all([&](std::size_t at, std::size_t size) { return ::read(file, again + at, size); });
        test::concern({});
        ::syscall(SYS_close, file);
        EXPECT_EQ(got, letters);
        EXPECT_EQ(again, letters);
      },
      {.files = elsewhere}};
}
// By preadv() and its like, in two parts.
template <auto call, auto... flags>
ssize_t in_parts(int number, const char* data, std::size_t size, off_t at) {
  char* const first = const_cast<char*>(data);
  const iovec parts[2] = {{first, 1}, {first + 1, size - 1}};
  return call(number, parts, 2, at, flags...);
}
template <auto call, auto... flags>
ssize_t into_parts(int number, char* into, std::size_t size, off_t at) {
  return in_parts<call, flags...>(number, into, size, at);
}
const positional at_a_position[] = {
    {"pread",
     {below::pread, below::pwrite},
     [](int from, char* into, std::size_t size, off_t at) { return ::pread(from, into, size, at); },
     [](int to, const char* data, std::size_t size, off_t at) { return ::pwrite(to, data, size, at); }},
    {"pread64",
     {below::pread64, below::pwrite64},
     [](int from, char* into, std::size_t size, off_t at) { return ::pread64(from, into, size, at); },
     [](int to, const char* data, std::size_t size, off_t at) { return ::pwrite64(to, data, size, at); }},
    {"preadv", {below::preadv, below::pwritev}, into_parts<::preadv>, in_parts<::pwritev>},
    {"preadv64", {below::preadv64, below::pwritev64}, into_parts<::preadv64>, in_parts<::pwritev64>},
    {"preadv2", {below::by_preadv2, below::by_pwritev2}, into_parts<::preadv2, 0>, in_parts<::pwritev2, 0>},
    {"preadv64v2",
     {below::by_preadv64v2, below::by_pwritev64v2},
     into_parts<::preadv64v2, 0>,
     in_parts<::pwritev64v2, 0>},
};

std::vector<scenario> all_scenarios() {
  std::vector<scenario> all;
  const auto message = [](iovec* parts, std::size_t count) {
    msghdr one{};
    one.msg_iov = parts;
    one.msg_iovlen = count;
    return one;
  };
  all.push_back(receives("read", {below::recv}, ::read));
  all.push_back(receives("readv", {below::recvmsg}, [](int from, char* into, std::size_t size) {
    iovec parts[2] = {{into, 1}, {into + 1, size - 1}};
    return ::readv(from, parts, 2);
  }));
  for (const int flags : {0, int{MSG_WAITALL}})
    all.push_back(receives(
        flags == 0 ? "recv" : "recv all", flags == 0 ? std::vector{below::recv} : std::vector{below::recv, below::poll},
        [flags](int from, char* into, std::size_t size) { return ::recv(from, into, size, flags); }));
  all.push_back(receives("recvfrom", {below::recvfrom}, [](int from, char* into, std::size_t size) {
    return ::recvfrom(from, into, size, 0, nullptr, nullptr);
  }));
  all.push_back(receives("recvmsg", {below::recvmsg}, [message](int from, char* into, std::size_t size) {
    iovec part{into, size};
    msghdr one = message(&part, 1);
    return ::recvmsg(from, &one, 0);
  }));
  all.push_back(receives("recvmmsg", {below::recvmmsg}, [message](int from, char* into, std::size_t size) {
    iovec part{into, size};
    mmsghdr one{.msg_hdr = message(&part, 1), .msg_len = 0};
    const int got = ::recvmmsg(from, &one, 1, 0, nullptr);
    return got == 1 ? static_cast<ssize_t>(one.msg_len) : -1;
  }));
  all.push_back(sends("write", {below::send}, ::write));
  all.push_back(sends("writev", {below::sendmsg}, [](int to, const char* data, std::size_t size) {
    char* const from = const_cast<char*>(data);
    iovec parts[2] = {{from, 1}, {from + 1, size - 1}};
    return ::writev(to, parts, 2);
  }));
  all.push_back(sends("send", {below::send},
                      [](int to, const char* data, std::size_t size) { return ::send(to, data, size, MSG_NOSIGNAL); }));
  all.push_back(sends("sendto", {below::sendto}, [](int to, const char* data, std::size_t size) {
    return ::sendto(to, data, size, MSG_NOSIGNAL, nullptr, 0);
  }));
  all.push_back(sends("sendmsg", {below::sendmsg}, [message](int to, const char* data, std::size_t size) {
    char* const from = const_cast<char*>(data);
    iovec parts[2] = {{from, 1}, {from + 1, size - 1}};
    const msghdr one = message(parts, 2);
    return ::sendmsg(to, &one, MSG_NOSIGNAL);
  }));
  all.push_back(
      sends("sendmmsg", {below::sendmmsg, below::sendmsg}, [message](int to, const char* data, std::size_t size) {
        char* const from = const_cast<char*>(data);
        iovec parts[2] = {{from, size / 2}, {from + size / 2, size - size / 2}};
        mmsghdr those[2] = {{message(&parts[0], 1), 0}, {message(&parts[1], 1), 0}};
        const int sent = ::sendmmsg(to, those, 2, MSG_NOSIGNAL);
        if (sent < 0) return ssize_t{-1};
        return static_cast<ssize_t>(those[0].msg_len + (sent == 2 ? those[1].msg_len : 0));
      }));
  all.push_back(pipes("read and write of pipes", {below::preadv2, below::pwritev2}, false, true));
  all.push_back(pipes("readv and writev of pipes", {below::preadv2, below::pwritev2}, true, true));
  all.push_back(
      pipes("read and write of files that can't say that they would block", {below::read, below::write}, false, false));
  all.push_back(pipes("readv and writev of files that can't say that they would block", {below::readv, below::writev},
                      true, false));
  all.push_back(waits("poll", {below::poll}, [](int number, int) {
    pollfd one{number, POLLIN, 0};
    return ::poll(&one, 1, -1);
  }));
  all.push_back(waits("poll of two", {below::poll, below::epoll_create1}, [](int number, int other) {
    pollfd two[2] = {{number, POLLIN, 0}, {other, POLLIN, 0}};
    return ::poll(two, 2, 600'000);
  }));
  all.push_back(waits("select", {below::poll, below::select, below::epoll_create1}, [](int number, int other) {
    fd_set in;
    FD_ZERO(&in);
    FD_SET(number, &in);
    FD_SET(other, &in);
    return ::select(std::max(number, other) + 1, &in, nullptr, nullptr, nullptr);
  }));
  all.push_back(waits("epoll_wait", {below::epoll_wait}, [](int number, int) {
    const int set = ::epoll_create1(EPOLL_CLOEXEC);
    epoll_event one{.events = EPOLLIN, .data = {}};
    EXPECT_EQ(::syscall(SYS_epoll_ctl, set, EPOLL_CTL_ADD, number, &one), 0);
    test::concern({set});
    const int ready = ::epoll_wait(set, &one, 1, -1);
    const int error = errno;
    ::syscall(SYS_close, set);
    errno = error;
    return ready;
  }));
  all.push_back(accepts("accept", below::accept, false));
  all.push_back(accepts("accept4", below::accept4, true));
  all.push_back(connects());
  all.push_back({"getaddrinfo", {below::getaddrinfo}, [](failures& failed) {
                   addrinfo* found = nullptr;
                   while (found == nullptr && failed.size() < 20)
                     if (::getaddrinfo("localhost", nullptr, nullptr, &found) == EAI_SYSTEM) failed.push_back(errno);
                   ::freeaddrinfo(found);
                 }});
  for (const positional& calls : at_a_position) {
    all.push_back(files("files", calls, false));
    all.push_back(files("files elsewhere", calls, true));
  }
  return all;
}

const std::vector<fault_below>& all_faults() {
  static const std::vector<fault_below> all = [] {
    std::vector<fault_below> those;
    for (const below one : {below::recv, below::recvfrom, below::recvmsg, below::recvmmsg}) {
      those.push_back({one, {EAGAIN}});
      those.push_back({one, {EAGAIN, EAGAIN, EAGAIN}});
      those.push_back({one, {ENOMEM}});
      those.push_back({one, {EAGAIN, ENOBUFS}});
      those.push_back({one, {EINTR}});
    }
    for (const below one : {below::send, below::sendto, below::sendmsg, below::sendmmsg}) {
      those.push_back({one, {EAGAIN}});
      those.push_back({one, {EAGAIN, EAGAIN, EAGAIN}});
      those.push_back({one, {ENOBUFS}});
      those.push_back({one, {EAGAIN, ENOMEM}});
      those.push_back({one, {one_byte}});
      those.push_back({one, {one_byte, EAGAIN, ENOBUFS}});
    }
    for (const below one : {below::recv, below::recvfrom}) those.push_back({one, {one_byte, one_byte}});
    // EAGAIN comes by itself, and nothing has the system report of a pipe anew.
    for (const below one : {below::preadv2, below::pwritev2}) {
      those.push_back({one, {ENOMEM}});
      those.push_back({one, {EOPNOTSUPP}});
      those.push_back({one, {EOPNOTSUPP, EOPNOTSUPP, EOPNOTSUPP}});
    }
    for (const below one : {below::read, below::write, below::pread, below::pwrite, below::pread64, below::pwrite64}) {
      those.push_back({one, {EIO}});
      those.push_back({one, {one_byte, EINTR}});
    }
    for (const below one :
         {below::readv, below::writev, below::preadv, below::pwritev, below::preadv64, below::pwritev64,
          below::by_preadv2, below::by_pwritev2, below::by_preadv64v2, below::by_pwritev64v2})
      those.push_back({one, {EIO}});
    for (const below one : {below::accept, below::accept4}) {
      those.push_back({one, {ECONNABORTED}});
      those.push_back({one, {EMFILE, ENOMEM}});
      those.push_back({one, {EAGAIN, EAGAIN}});
    }
    for (const int error : {ECONNREFUSED, ENETUNREACH, EAGAIN, EADDRNOTAVAIL, EINTR})
      those.push_back({below::connect, {error}});
    those.push_back({below::poll, {ENOMEM}});
    those.push_back({below::poll, {EINTR, EINTR}});
    those.push_back({below::select, {ENOMEM}});
    those.push_back({below::epoll_wait, {EINTR}});
    those.push_back({below::getaddrinfo, {EIO, EMFILE}});
    those.push_back({below::epoll_ctl, {ENOMEM}});
    those.push_back({below::epoll_ctl, {ENOSPC}});
    those.push_back({below::epoll_create1, {EMFILE}});
    return those;
  }();
  return all;
}

// ---- the sweep ------------------------------------------------------------------------------------------------------------------

class hook_faults : public testing::TestWithParam<io_backend> {
 protected:
  weft::runtime rt_{{.threads = 1, .io = GetParam()}};

  // How many of the faults have struck.
  std::size_t run_once(const scenario& one, const fault_below& what, std::size_t before) {
    failures failed;
    std::size_t struck = 0;
    std::atomic<bool> is_over{false};
    const auto in_fiber = [&] {
      const test::injection_below injected{what, before};
      strikes = &injected;
      one.run(failed);
      struck = injected.struck();
      is_over = true;
    };
    const auto in_another = [&] {
      for (; !is_over; ::usleep(20)) ++turns_of_another;
    };
    const auto both = [&](weft::scope& inside) -> weft::task<> {
      inside.fork(weft::hooked(one.options, in_fiber));
      inside.fork(weft::hooked(in_another));
      co_return;
    };
    const auto all = [&]() -> weft::task<> { co_await weft::with_scope(both); };
    const std::size_t open = test::open_descriptors();
    rt_.run(weft::start_on(rt_.workers().worker(0), all()));
    EXPECT_EQ(test::open_descriptors(), open);
    EXPECT_EQ(rt_.stats().watched, 0U);
    for (const int error : failed) {
      const auto* const end = what.results.begin() + struck;
      EXPECT_TRUE(std::find(what.results.begin(), end, error) != end) << std::strerror(error);
      EXPECT_TRUE(what.at == below::connect || error != EAGAIN) << "a call that blocks has said so";
      EXPECT_TRUE(what.at != below::epoll_ctl && what.at != below::epoll_create1) << "it is no error of the call's";
    }
    EXPECT_LE(failed.size(), struck);
    if (what.at == below::connect) {
      EXPECT_EQ(failed.size(), struck) << "a connection that has failed was made";
    }
    return struck;
  }
};
std::vector<io_backend> back_ends() {
  if (weft::runtime{{.threads = 1}}.backend() == io_backend::epoll) return {io_backend::epoll};
  return {io_backend::epoll, io_backend::uring};
}
std::string name_of(const testing::TestParamInfo<io_backend>& one) {
  return one.param == io_backend::epoll ? "epoll" : "uring";
}
INSTANTIATE_TEST_SUITE_P(on, hook_faults, testing::ValuesIn(back_ends()), name_of);

TEST_P(hook_faults, end_a_call_with_the_right_value_or_that_error) {
  for (const scenario& one : all_scenarios()) {
    run_once(one, {below::none, {0}}, 0);  // what is made once is made
    for (const fault_below& what : all_faults()) {
      if (!one.makes(what.at)) continue;
      // A ring watches a number without a call; what waits for several has an epoll set all the same.
      if (what.at == below::epoll_ctl && GetParam() == io_backend::uring && !one.makes(below::epoll_create1)) continue;
      for (std::size_t before = 0;; ++before) {
        const testing::ScopedTrace trace{
            __FILE__, __LINE__,
            std::string{one.name} + ", " + what.to_string() + " behind " + std::to_string(before) + " calls"};
        const std::size_t struck = run_once(one, what, before);
        if (HasFailure()) return;
        if (struck == 0) {
          EXPECT_GT(before, 0U) << "no such call is made";
        }
        if (struck == 0 || before == 12) break;
      }
    }
  }
}

// By poll(), for the next call: only a send that goes on after a part does.
TEST_P(hook_faults, a_send_that_is_done_at_once_does_not_look_for_an_error) {
  connection ends;
  test::concern({ends.here});
  const auto sends = [&] {
    const test::injection_below injected{{below::poll, {ENOMEM}}};
    char* const from = const_cast<char*>(letters.data());
    iovec parts[2] = {{from, 1}, {from + 1, letters.size() - 1}};
    msghdr message{};
    message.msg_iov = parts;
    message.msg_iovlen = 2;
    const auto all = static_cast<ssize_t>(letters.size());
    EXPECT_EQ(::write(ends.here, letters.data(), letters.size()), all);
    EXPECT_EQ(::writev(ends.here, parts, 2), all);
    EXPECT_EQ(::sendmsg(ends.here, &message, 0), all);
    EXPECT_EQ(injected.struck(), 0U);
  };
  rt_.run(weft::start_on(rt_.workers().worker(0), weft::hooked(sends)));
  test::concern({});
}

}  // namespace
