// Hooked calls, with a stop at each place of each wait, and without memory: what was received is the program's, and nothing is
// watched when they have ended.
#include <weft/hook.hpp>

#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <weft/scope.hpp>
#include <weft/with.hpp>

#include "hook/fortified.hpp"
#include "support/sweep.hpp"

namespace {

using namespace test::in_sweeps;

class both_ends {
 public:
  explicit both_ends(int type = SOCK_STREAM) {
    if (::socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, at_) != 0) std::abort();
  }
  both_ends(const both_ends&) = delete;
  ~both_ends() {
    ::close(at_[0]);
    ::close(at_[1]);
  }
  int operator[](int which) const { return at_[which]; }

 private:
  int at_[2];
};

// A call that failed has failed so because of the sweep.
bool is_given_up(ssize_t result) { return result < 0 && (errno == ECANCELED || errno == ENOMEM); }

template <class By>
struct talks {
  both_ends ends;
  int read = 0, written = 0;

  void hear() {
    pollfd one{ends[0], POLLIN, 0};
    const int ready = ::poll(&one, 1, 1'000'000);
    if (is_given_up(ready)) return;
    require(ready == 1 && (one.revents & POLLIN) != 0, "poll is wrong");
    char got;
    const ssize_t size = ::read(ends[0], &got, 1);
    if (size == 0 || is_given_up(size)) return;
    require(size == 1 && got == 'a', "a byte is wrong");
    ++read;
    const ssize_t more = ::recv(ends[0], &got, 1, 0);
    if (more == 0 || is_given_up(more)) return;
    require(more == 1 && got == 'b', "a byte is wrong");
    ++read;
  }
  void say() {
    for (const char* const letter : {"a", "b"}) {
      if (::usleep(10) != 0) return;
      const ssize_t size = ::write(ends[1], letter, 1);
      if (is_given_up(size)) return;
      require(size == 1, "a byte was not written");
      ++written;
    }
  }
  part<By> run() {
    const auto body = [this](weft::scope& inside) -> weft::task<> {
      const auto hears = [this] { hear(); };
      const auto says = [this] {
        say();
        if (written != 2) ::shutdown(ends[1], SHUT_WR);  // who listens would wait for ever
      };
      inside.fork(weft::hooked(hears));
      inside.fork(weft::hooked(says));
      co_return;
    };
    co_await weft::with_scope(body);
  }
  void check() const { require(read <= written, "a byte came from nowhere"); }
};
TEST(sweep, hooked) {
  sweep_both<talks>("hooked", {.inline_completion = false});  // hooks want an executor
}

// ---- each call that may wait --------------------------------------------------------------------------------------------------
// tools/check_swept looks for its name here.

struct places {
  both_ends stream, full{}, datagrams{SOCK_DGRAM};
  int pipe[2], full_pipe[2], listener = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0),
                             peer = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0),
                             in_line = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0),
                             set = ::epoll_create1(EPOLL_CLOEXEC), file = ::memfd_create("weft", MFD_CLOEXEC),
                             accepted = -1;
  sockaddr_un where{.sun_family = AF_UNIX, .sun_path = {}};
  socklen_t size = sizeof where;
  char bytes[16] = {};
  iovec part{bytes, 4};
  mmsghdr message{};
  timespec soon{0, 10'000}, late{1000, 0};
  pollfd two[2] = {{stream[0], POLLIN, 0}, {datagrams[0], POLLIN, 0}};
  fd_set in;

  places() {
    message.msg_hdr.msg_iov = &part;
    message.msg_hdr.msg_iovlen = 1;
    FD_ZERO(&in);
    FD_SET(stream[0], &in);
    epoll_event one{.events = EPOLLIN, .data = {}};
    require(::pipe2(pipe, O_CLOEXEC) == 0 && ::pipe2(full_pipe, O_CLOEXEC) == 0, "no pipe");
    require(::bind(listener, address(), sizeof(sa_family_t)) == 0 && ::listen(listener, 0) == 0, "no listener");
    require(::getsockname(listener, address(), &size) == 0, "no name");
    require(::epoll_ctl(set, EPOLL_CTL_ADD, stream[0], &one) == 0, "no set");
    require(::write(file, "abcd", 4) == 4, "no file");
    for (const int number : {full[0], full_pipe[1]}) {
      require(::fcntl(number, F_SETFL, O_NONBLOCK) == 0, "no flag");
      static constexpr char page[4096] = {};
      for (const std::size_t most : {sizeof page, std::size_t{1}})
        while (::syscall(SYS_write, number, page, most) > 0) {
        }
      require(::fcntl(number, F_SETFL, 0) == 0, "no flag");
    }
  }
  places(const places&) = delete;
  ~places() {
    for (const int one : {pipe[0], pipe[1], full_pipe[0], full_pipe[1], listener, peer, in_line, set, file, accepted})
      if (one >= 0) ::close(one);
  }
  sockaddr* address() { return reinterpret_cast<sockaddr*>(&where); }
};

// By the system's calls, whatever became of hooked ones.
void write_to(int number) { require(::syscall(SYS_write, number, "abcd", 4) == 4, "nothing was written"); }
void read_all(int number) {
  char some[4096];
  require(::fcntl(number, F_SETFL, O_NONBLOCK) == 0, "no flag");
  while (::syscall(SYS_read, number, some, sizeof some) > 0) {
  }
}
void send_stream(places& at) { write_to(at.stream[1]); }
void send_datagram(places& at) { write_to(at.datagrams[1]); }
void fill_pipe(places& at) { write_to(at.pipe[1]); }
void make_room(places& at) { read_all(at.full[1]); }
void make_room_in_pipe(places& at) { read_all(at.full_pipe[0]); }
void connect_to(places& at) {
  require(::syscall(SYS_connect, at.peer, at.address(), at.size) == 0, "it was not connected");
}
void nobody(places&) {}

struct one_call {
  const char* name;
  long (*call)(places&);
  void (*ends_the_wait)(places&);
  long right = 4;  // what it gives
};

long is_taken(places& at, int number) {
  at.accepted = number;
  return number < 0 ? -1 : 0;
}
const one_call all_calls[] = {
    {"read", [](places& at) -> long { return ::read(at.stream[0], at.bytes, 4); }, send_stream},
    {"__read_chk", [](places& at) -> long { return __read_chk(at.pipe[0], at.bytes, 4, sizeof at.bytes); }, fill_pipe},
    {"readv", [](places& at) -> long { return ::readv(at.pipe[0], &at.part, 1); }, fill_pipe},
    {"preadv2", [](places& at) -> long { return ::preadv2(at.stream[0], &at.part, 1, -1, RWF_HIPRI); }, send_stream},
    {"preadv64v2", [](places& at) -> long { return ::preadv64v2(at.pipe[0], &at.part, 1, -1, 0); }, fill_pipe},
    {"recv", [](places& at) -> long { return ::recv(at.stream[0], at.bytes, 4, MSG_WAITALL); }, send_stream},
    {"__recv_chk", [](places& at) -> long { return __recv_chk(at.stream[0], at.bytes, 4, sizeof at.bytes, MSG_PEEK); },
     send_stream},
    {"recvfrom", [](places& at) -> long { return ::recvfrom(at.datagrams[0], at.bytes, 4, 0, nullptr, nullptr); },
     send_datagram},
    {"__recvfrom_chk",
     [](places& at) -> long {
       return __recvfrom_chk(at.datagrams[0], at.bytes, 4, sizeof at.bytes, 0, nullptr, nullptr);
     },
     send_datagram},
    {"recvmsg", [](places& at) -> long { return ::recvmsg(at.stream[0], &at.message.msg_hdr, 0); }, send_stream},
    {"recvmmsg", [](places& at) -> long { return ::recvmmsg(at.datagrams[0], &at.message, 1, 0, &at.late); },
     send_datagram, 1},
    {"write", [](places& at) -> long { return ::write(at.full_pipe[1], at.bytes, 4); }, make_room_in_pipe},
    {"writev", [](places& at) -> long { return ::writev(at.full[0], &at.part, 1); }, make_room},
    {"pwritev2", [](places& at) -> long { return ::pwritev2(at.full_pipe[1], &at.part, 1, -1, RWF_DSYNC); },
     make_room_in_pipe},
    {"pwritev64v2", [](places& at) -> long { return ::pwritev64v2(at.full[0], &at.part, 1, -1, 0); }, make_room},
    {"send", [](places& at) -> long { return ::send(at.full[0], at.bytes, 4, 0); }, make_room},
    {"sendto", [](places& at) -> long { return ::sendto(at.full[0], at.bytes, 4, 0, nullptr, 0); }, make_room},
    {"sendmsg", [](places& at) -> long { return ::sendmsg(at.full[0], &at.message.msg_hdr, 0); }, make_room},
    {"sendmmsg", [](places& at) -> long { return ::sendmmsg(at.full[0], &at.message, 1, 0); }, make_room, 1},
    {"accept", [](places& at) { return is_taken(at, ::accept(at.listener, nullptr, nullptr)); }, connect_to, 0},
    {"accept4", [](places& at) { return is_taken(at, ::accept4(at.listener, nullptr, nullptr, SOCK_CLOEXEC)); },
     connect_to, 0},
    {"connect",
     [](places& at) -> long {
       require(::syscall(SYS_connect, at.in_line, at.address(), at.size) == 0, "the line is full");
       return ::connect(at.peer, at.address(), at.size);
     },
     [](places& at) {
       require(::fcntl(at.listener, F_SETFL, O_NONBLOCK) == 0, "no flag");
       at.accepted = static_cast<int>(::syscall(SYS_accept4, at.listener, nullptr, nullptr, SOCK_CLOEXEC));
     },
     0},
    {"poll", [](places& at) -> long { return ::poll(at.two, 2, -1); }, send_stream, 1},
    {"ppoll", [](places& at) -> long { return ::ppoll(at.two, 2, &at.late, nullptr); }, send_datagram, 1},
    {"__poll_chk", [](places& at) -> long { return __poll_chk(at.two, 2, -1, sizeof at.two); }, send_stream, 1},
    {"__ppoll_chk", [](places& at) -> long { return __ppoll_chk(at.two, 1, nullptr, nullptr, sizeof at.two); },
     send_stream, 1},
    {"select", [](places& at) -> long { return ::select(at.stream[0] + 1, &at.in, nullptr, nullptr, nullptr); },
     send_stream, 1},
    {"pselect",
     [](places& at) -> long { return ::pselect(at.stream[0] + 1, &at.in, nullptr, nullptr, &at.late, nullptr); },
     send_stream, 1},
    {"epoll_wait",
     [](places& at) -> long {
       epoll_event got;
       return ::epoll_wait(at.set, &got, 1, -1);
     },
     send_stream, 1},
    {"epoll_pwait",
     [](places& at) -> long {
       epoll_event got;
       return ::epoll_pwait(at.set, &got, 1, 1'000'000, nullptr);
     },
     send_stream, 1},
    {"usleep", [](places&) -> long { return ::usleep(10); }, nobody, 0},
    {"nanosleep", [](places& at) -> long { return ::nanosleep(&at.soon, nullptr); }, nobody, 0},
    {"clock_nanosleep",
     [](places& at) -> long {
       errno = ::clock_nanosleep(CLOCK_MONOTONIC, 0, &at.soon, nullptr);
       return errno == 0 ? 0 : -1;
     },
     nobody, 0},
    {"sleep",
     [](places&) -> long {
       errno = 0;
       return ::sleep(1) == 0 ? 0 : -1;
     },
     nobody, 0},
    {"pread", [](places& at) -> long { return ::pread(at.file, at.bytes, 4, 0); }, nobody},
    {"pread64", [](places& at) -> long { return ::pread64(at.file, at.bytes, 4, 0); }, nobody},
    {"__pread_chk", [](places& at) -> long { return __pread_chk(at.file, at.bytes, 4, 0, sizeof at.bytes); }, nobody},
    {"__pread64_chk", [](places& at) -> long { return __pread64_chk(at.file, at.bytes, 4, 0, sizeof at.bytes); },
     nobody},
    {"preadv", [](places& at) -> long { return ::preadv(at.file, &at.part, 1, 0); }, nobody},
    {"preadv64", [](places& at) -> long { return ::preadv64(at.file, &at.part, 1, 0); }, nobody},
    {"pwrite", [](places& at) -> long { return ::pwrite(at.file, at.bytes, 4, 0); }, nobody},
    {"pwrite64", [](places& at) -> long { return ::pwrite64(at.file, at.bytes, 4, 0); }, nobody},
    {"pwritev", [](places& at) -> long { return ::pwritev(at.file, &at.part, 1, 0); }, nobody},
    {"pwritev64", [](places& at) -> long { return ::pwritev64(at.file, &at.part, 1, 0); }, nobody},
    {"getaddrinfo",
     [](places&) -> long {
       addrinfo* found = nullptr;
       errno = 0;
       const int failed = ::getaddrinfo("127.0.0.1", "80", nullptr, &found);
       if (failed == EAI_MEMORY) errno = ENOMEM;
       if (failed == 0) ::freeaddrinfo(found);
       return failed == 0 ? 0 : -1;
     },
     nobody, 0},
};

const one_call* swept = nullptr;
int right_results = 0;

struct waits_once {
  places at;

  weft::task<> run() {
    const auto body = [this](weft::scope& inside) -> weft::task<> {
      const auto waits = [this] {
        const long got = swept->call(at);
        require(got == swept->right || is_given_up(got), "it gave what is not right");
        if (got == swept->right) ++right_results;
      };
      const auto ends = [this] {
        ::usleep(10);
        swept->ends_the_wait(at);
      };
      inside.fork(weft::hooked({.files = true}, waits));
      inside.fork(weft::hooked(ends));
      co_return;
    };
    co_await weft::with_scope(body);
  }
};
TEST(sweep, each_hooked_call) {
  for (const one_call& one : all_calls) {
    SCOPED_TRACE(one.name);
    swept = &one;
    right_results = 0;
    test::sweep<waits_once>("hooked", {.inline_completion = false});
    EXPECT_NE(right_results, 0);
  }
}

}  // namespace
