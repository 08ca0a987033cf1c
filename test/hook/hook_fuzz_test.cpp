// Calls with arguments at random, plain and with hooks, on files that are alike: they give the same, fail alike, and leave the
// same in the program's memory.
#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "hook/fortified.hpp"
#include "hook/places.hpp"
#include "support/fuzz.hpp"

namespace {

// None waits for ever: what blocks has a limit of its own, or fails, or is ready. Each is made when it is first asked for: most
// inputs ask for a few, and to make them all took longer than the calls.
class files {
 public:
  files() { all_.fill(not_made); }
  files(const files&) = delete;
  ~files() {
    for (const int one : all_)
      if (one >= 0) ::close(one);
    if (set_ >= 0) ::close(set_);
  }
  // Or one that is none.
  int at(std::size_t which) {
    if (which >= all_.size()) return which % 2 == 0 ? -1 : 1 << 19;
    if (all_[which] == not_made) make(which);
    return all_[which];
  }
  static constexpr std::size_t size() { return sockets_to_connect + 5; }
  // A set of every third of those that there are by now or come to be.
  int set() {
    if (set_ >= 0) return set_;
    set_ = ::epoll_create1(EPOLL_CLOEXEC);
    for (std::size_t i = 0; i != all_.size(); ++i) into_set(i);
    return set_;
  }
  const sockaddr* listens_at() {
    at(listener);
    return reinterpret_cast<const sockaddr*>(&listens_at_);
  }
  socklen_t listens_at_size() const { return listens_at_size_; }

  int close(std::size_t which) {
    const int number = at(which);
    if (which < all_.size()) all_[which] = -1;
    return ::close(number);
  }
  // Takes the place of `which`, as every result of dup() does, whatever its number. How: by dup(), fcntl(), dup2() or dup3().
  int duplicate(std::size_t which, std::size_t into, std::size_t how) {
    const int from = at(which), to = at(into);
    const int made = how == 0   ? ::dup(from)
                     : how == 1 ? ::fcntl(from, F_DUPFD_CLOEXEC, 3)
                     : how == 2 ? ::dup2(from, to)
                                : ::dup3(from, to, O_CLOEXEC);
    if (made < 0) return made;
    if (into >= all_.size()) {
      ::close(made);
    } else if (made != to) {
      if (to >= 0) ::close(to);
      all_[into] = made;
    }
    return 0;
  }

 private:
  static constexpr int not_made = -2;
  // Pairs of three kinds, without waiting and with a limit; a pipe; what is no socket; and those to connect: one by TCP, of which
  // nobody listens, and Unix ones, for which there is a listener.
  static constexpr std::size_t pipe = 12, others = 14, sockets_to_connect = 17, listener = sockets_to_connect + 4;

  static int limited(int number) {
    const timeval limit{0, 1000};
    ::setsockopt(number, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    ::setsockopt(number, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    return number;
  }

  void make(std::size_t which) {
    if (which < others) {
      const std::size_t first = which & ~std::size_t{1};
      const bool waits = which % 4 >= 2 && which < pipe;
      int ends[2];
      if (which < pipe) {
        static constexpr int types[] = {SOCK_STREAM, SOCK_DGRAM, SOCK_SEQPACKET};
        if (::socketpair(AF_UNIX, types[which / 4] | (waits ? 0 : SOCK_NONBLOCK), 0, ends) != 0) std::abort();
      } else if (::pipe2(ends, O_NONBLOCK) != 0) {
        std::abort();
      }
      for (std::size_t i = 0; i != 2; ++i) made(first + i, waits ? limited(ends[i]) : ends[i]);
      return;
    }
    switch (which) {
      case others: return made(which, ::eventfd(3, EFD_NONBLOCK));
      // Or it takes memory that is none, and ASan then looks at it.
      case others + 1: return made(which, ::open("/dev/null", O_RDONLY));
      case others + 2: return made(which, ::memfd_create("weft-hook", MFD_CLOEXEC));
      case sockets_to_connect: return made(which, limited(::socket(AF_INET, SOCK_STREAM, 0)));
      case sockets_to_connect + 1: return made(which, ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0));
      case sockets_to_connect + 2: return made(which, limited(::socket(AF_UNIX, SOCK_STREAM, 0)));
      case sockets_to_connect + 3: return made(which, ::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0));
      default: return made(which, listens());
    }
  }
  int listens() {
    const int one = limited(::socket(AF_UNIX, SOCK_STREAM, 0));
    socklen_t size = sizeof listens_at_;
    listens_at_.sun_family = AF_UNIX;
    const auto address = reinterpret_cast<sockaddr*>(&listens_at_);
    if (::bind(one, address, sizeof(sa_family_t)) != 0 || ::listen(one, 256) != 0 ||
        ::getsockname(one, address, &size) != 0)
      std::abort();
    listens_at_size_ = size;
    return one;
  }
  void made(std::size_t which, int number) {
    all_[which] = number;
    into_set(which);
  }
  void into_set(std::size_t which) {
    if (set_ < 0 || all_[which] < 0 || which % 3 != 0) return;
    epoll_event one{.events = EPOLLIN, .data = {.u64 = which}};
    ::epoll_ctl(set_, EPOLL_CTL_ADD, all_[which], &one);
  }

  std::array<int, sockets_to_connect + 5> all_;
  int set_ = -1;
  sockaddr_un listens_at_{};
  socklen_t listens_at_size_ = 0;
};

// What was called.
struct made_call {
  unsigned what;
  int number;
  std::size_t bytes;
  int count;
  bool has_address;

  std::string text() const {
    return std::to_string(what) + " of " + std::to_string(number) + ", " + std::to_string(bytes) + " bytes, count " +
           std::to_string(count) + (has_address ? "" : ", no address");
  }
};

struct outcome {
  long result;
  int error;
  std::uint64_t memory;
  made_call call;
};

char* volatile no_address = reinterpret_cast<char*>(8);

class calls {
 public:
  explicit calls(const test::choices& chosen) : chosen_{chosen} {}

  std::vector<outcome> run() {
    std::vector<outcome> all;
    while (chosen_.are_left()) {
      errno = 0;
      const long result = one();
      const int error = result < 0 ? errno : 0;
      all.push_back({result, error, sum_of_memory(256) ^ sum_of_memory(memory_.size(), addresses), call_});
    }
    if (!all.empty()) all.back().memory ^= sum_of_memory(memory_.size());
    return all;
  }

 private:
  // Behind each call of where most of them write, behind the last one of all: to sum up all of it took longer than most calls.
  std::uint64_t sum_of_memory(std::size_t end, std::size_t begin = 0) const noexcept {
    return std::hash<std::string_view>{}({memory_.data() + begin, end - begin});
  }

  unsigned pick(unsigned below) { return static_cast<unsigned>(chosen_.up_to(below - 1)); }
  int number() { return files_.at(pick(static_cast<unsigned>(files_.size()) + 2)); }
  char* address() {
    const unsigned which = pick(12);
    return which == 0 ? nullptr : which == 1 ? no_address : memory_.data();
  }
  std::size_t size(const char* at) {
    static constexpr std::size_t sizes[] = {0, 1, 4, 8, 9, 100, 4096, 5000, 20'000, SIZE_MAX, SIZE_MAX / 2};
    return sizes[pick(at == memory_.data() ? 9 : 11)];
  }
  // Where an urgent byte may be, none peeks, or waits for all: a Linux of 6.18 was seen to spin in such a peek at a Unix socket for
  // half a minute, and to receive such a byte with the others or not, as it had waited or not.
  int flags() {
    static constexpr int each[] = {0, 0, 0, MSG_DONTWAIT, MSG_PEEK, MSG_WAITALL, MSG_OOB, MSG_TRUNC, 1 << 30};
    const int one = each[pick(9)];
    sent_urgent_ |= one == MSG_OOB;
    return (sent_urgent_ && (one == MSG_PEEK || one == MSG_WAITALL) ? 0 : one) | MSG_NOSIGNAL;
  }

  // What a call does with what it is given: all of these are drawn for each call, whichever it is.
  struct given {
    int number;
    char* at;
    std::size_t bytes;
    int count;
    iovec* parts;
  };

  long one() {
    const int which = number();
    char* const at = address();
    const std::size_t bytes = size(at);
    iovec parts[3] = {{at, bytes / 2}, {memory_.data(), 0}, {at, bytes - bytes / 2}};
    const int count = static_cast<int>(pick(5)) - 1;
    const given all{which, at, bytes, count, parts};
    const unsigned what = pick(16);
    call_ = {what, which, bytes, count, at == memory_.data()};
    switch (what) {
      case 0: return pick(2) == 0 ? ::read(which, at, bytes) : fortified(all);
      case 1: return ::write(which, at, bytes);
      case 2: return ::recv(which, at, bytes, flags());
      case 3: return ::send(which, at, bytes, flags());
      case 4: return ::readv(which, pick(9) == 0 ? nullptr : parts, count);
      case 5: return ::writev(which, pick(9) == 0 ? nullptr : parts, count);
      case 6: {
        msghdr one{};
        one.msg_iov = parts;
        one.msg_iovlen = static_cast<std::size_t>(count);
        return pick(2) == 0 ? ::recvmsg(which, &one, flags()) : ::sendmsg(which, &one, flags());
      }
      case 7: return polls(all);
      case 8: return at_an_offset(all);
      case 9: return by_address(all);
      case 10: return accepts(which);
      case 11: return several_messages(all);
      case 12: return selects(all);
      case 13: return connects(which);
      case 14: return pick(2) == 0 ? waits_for_a_set(all) : sleeps(at);
      default: return pick(3) == 0 ? looks_up() : changes_numbers();
    }
  }

  // A limit of a millisecond, or a second and more which makes no sense, or none, where that does not wait.
  timespec* limit() {
    static constexpr long nanoseconds[] = {0, 1'000'000, 1'000'000'000, -1};
    time_ = {.tv_sec = 0, .tv_nsec = nanoseconds[pick(4)]};
    return &time_;
  }

  long fortified([[maybe_unused]] const given& all) {
#if defined(__GLIBC__)
    pollfd one{all.number, POLLIN | POLLOUT, 0};
    switch (pick(7)) {
      case 0: return __read_chk(all.number, all.at, all.bytes, SIZE_MAX);
      case 1: return __recv_chk(all.number, all.at, all.bytes, SIZE_MAX, flags());
      case 2: return __recvfrom_chk(all.number, all.at, all.bytes, SIZE_MAX, flags(), nullptr, nullptr);
      case 3: return __pread_chk(all.number, all.at, all.bytes, static_cast<off_t>(pick(3)) - 1, SIZE_MAX);
      case 4: return __pread64_chk(all.number, all.at, all.bytes, static_cast<off64_t>(pick(3)) - 1, SIZE_MAX);
      case 5: return __poll_chk(&one, 1, 1, sizeof one) * 0x10000 + one.revents;
      default: {
        const int ready = __ppoll_chk(&one, 1, limit(), nullptr, sizeof one);
        return ready < 0 ? ready : ready * 0x10000 + one.revents;
      }
    }
#else
    return 0;
#endif
  }

  long polls(const given& all) {
    pollfd those[2] = {{all.number, static_cast<short>(pick(0x40)), 0}, {number(), POLLOUT, 0}};
    pollfd* const where = all.at == memory_.data() ? those : reinterpret_cast<pollfd*>(all.at);
    const nfds_t count = 1 + pick(2);
    sigset_t none;
    sigemptyset(&none);
    int ready = 0;
    switch (pick(3)) {
      case 0: ready = ::poll(where, count, 1); break;
      case 1: ready = ::ppoll(where, count, limit(), nullptr); break;
      default: ready = ::ppoll(where, count, limit(), &none); break;
    }
    return ready < 0 ? ready : ready * 0x10000 + those[0].revents * 0x100 + those[1].revents;
  }

  long at_an_offset(const given& all) {
    const off_t offset = static_cast<off_t>(pick(3)) - 1;
    const iovec* const parts = pick(9) == 0 ? nullptr : all.parts;
    static constexpr int ways[] = {0, 0, RWF_HIPRI, RWF_DSYNC, RWF_APPEND, 1 << 30};
    switch (pick(6)) {
      case 0: return ::pread(all.number, all.at, all.bytes, offset);
      case 1: return ::pwrite(all.number, all.at, all.bytes, offset);
      case 2: return ::preadv(all.number, parts, all.count, offset);
      case 3: return ::pwritev(all.number, parts, all.count, offset);
      case 4: return ::preadv2(all.number, parts, all.count, offset, ways[pick(6)]);
      default: return ::pwritev2(all.number, parts, all.count, offset, ways[pick(6)]);
    }
  }

  // An address at random, some of which nobody has, or which are none.
  const sockaddr* to_somebody(socklen_t& size) {
    inet_ = {};
    inet_.sin_family = AF_INET;
    inet_.sin_port = htons(1);
    inet_.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    size = sizeof inet_;
    switch (pick(6)) {
      case 0: return nullptr;
      case 1: return reinterpret_cast<const sockaddr*>(no_address);
      case 2: inet_.sin_family = AF_UNSPEC; break;
      case 3: size = 3; break;
      case 4: {
        const sockaddr* const at = files_.listens_at();
        size = files_.listens_at_size();
        return at;
      }
      default: break;
    }
    return reinterpret_cast<const sockaddr*>(&inet_);
  }

  long by_address(const given& all) {
    socklen_t size = static_cast<socklen_t>(pick(3)) * 8;
    if (pick(2) == 0) {
      const sockaddr* const to = to_somebody(size);
      return ::sendto(all.number, all.at, all.bytes, flags(), to, size);
    }
    char* const into = address();
    auto* const from = reinterpret_cast<sockaddr*>(into == memory_.data() ? memory_.data() + addresses : into);
    const long got = ::recvfrom(all.number, all.at, all.bytes, flags(), from, from == nullptr ? nullptr : &size);
    return got < 0 ? got : got * 0x100 + static_cast<long>(size);
  }

  long accepts(int which) {
    const int made =
        pick(2) == 0 ? ::accept(which, nullptr, nullptr) : ::accept4(which, nullptr, nullptr, SOCK_CLOEXEC);
    return made < 0 ? made : ::close(made);
  }

  long several_messages(const given& all) {
    iovec second{memory_.data() + addresses + 200, 100};
    mmsghdr those[2]{};
    those[0].msg_hdr.msg_iov = all.parts;
    those[0].msg_hdr.msg_iovlen = 3;
    those[1].msg_hdr.msg_iov = &second;
    those[1].msg_hdr.msg_iovlen = 1;
    mmsghdr* const where = pick(9) == 0 ? reinterpret_cast<mmsghdr*>(no_address) : those;
    const unsigned count = pick(3);
    int done = 0;
    if (pick(2) == 0)
      done = ::sendmmsg(all.number, where, count, flags());
    else
      done = ::recvmmsg(all.number, where, count, flags() | (pick(2) == 0 ? MSG_WAITFORONE : 0), nullptr);
    if (done <= 0) return done;
    return done + 0x10 * (those[0].msg_len + (done == 2 ? 0x10000L * those[1].msg_len : 0));
  }

  long selects(const given& all) {
    const int other = number();
    fd_set sets[3];
    for (fd_set& one : sets) {
      FD_ZERO(&one);
      for (const int each : {all.number, other})
        if (each >= 0 && each < FD_SETSIZE && pick(3) != 0) FD_SET(each, &one);
    }
    fd_set* const in = all.at == memory_.data() ? &sets[0] : reinterpret_cast<fd_set*>(all.at);
    const unsigned how = pick(9);
    const int most = how == 0 ? -1 : how == 1 ? 0 : std::clamp(std::max(all.number, other) + 1, 0, FD_SETSIZE);
    timespec* const until = limit();
    timeval time{.tv_sec = 0,
                 .tv_usec = until->tv_nsec < 0 ? -1 : until->tv_nsec / 1'000'000};  // a second would be one
    const int found = pick(2) == 0 ? ::select(most, in, &sets[1], &sets[2], &time)
                                   : ::pselect(most, in, &sets[1], &sets[2], until, nullptr);
    long all_bits = found;
    if (found >= 0)
      for (const fd_set& one : sets)
        for (const int each : {all.number, other})
          all_bits = 2 * all_bits + (each >= 0 && each < FD_SETSIZE && FD_ISSET(each, &one) ? 1 : 0);
    return all_bits;
  }

  long connects(int which) {
    socklen_t size = 0;
    const sockaddr* const to = to_somebody(size);
    return ::connect(which, to, size);
  }

  long waits_for_a_set(const given& all) {
    std::array<epoll_event, 64> found{};
    const int set = pick(4) == 0 ? all.number : files_.set();
    const int most = all.count <= 0 ? all.count : static_cast<int>(found.size());  // which of several is not said
    epoll_event* const into = all.at == no_address ? reinterpret_cast<epoll_event*>(all.at) : found.data();
    const int count = pick(2) == 0 ? ::epoll_wait(set, into, most, 1) : ::epoll_pwait(set, into, most, 1, nullptr);
    if (count < 0) return count;
    long sum = count;  // in any order
    for (int i = 0; i != count && into == found.data(); ++i)
      sum += 0x100 * static_cast<long>((1 + found[static_cast<std::size_t>(i)].data.u64) *
                                       found[static_cast<std::size_t>(i)].events);
    return sum;
  }

  long sleeps(const char* at) {
    const timespec* const wanted = at == memory_.data() ? limit() : reinterpret_cast<const timespec*>(at);
    if (wanted == &time_ && time_.tv_nsec == 1'000'000) time_.tv_nsec = 1000;
    switch (pick(4)) {
      case 0: return ::usleep(pick(20));
      case 1: return ::nanosleep(wanted, nullptr);
      case 2: return ::clock_nanosleep(CLOCK_MONOTONIC, pick(2) == 0 ? 0 : TIMER_ABSTIME, wanted, nullptr);
      default: return ::clock_nanosleep(static_cast<clockid_t>(pick(2) == 0 ? CLOCK_REALTIME : 77), 0, wanted, nullptr);
    }
  }

  // Of what is numbers, or would be none.
  long looks_up() {
    static constexpr const char* hosts[] = {nullptr, "127.0.0.1", "::1", "1.2.3", "no number", ""};
    static constexpr const char* services[] = {nullptr, "80", "http", "-1", ""};
    addrinfo hints{};
    hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | (pick(2) == 0 ? AI_PASSIVE : 0);
    hints.ai_family = pick(3) == 0 ? AF_UNSPEC : pick(3) == 0 ? AF_INET6 : AF_INET;
    hints.ai_socktype = pick(3) == 0 ? 77 : pick(2) == 0 ? SOCK_STREAM : 0;
    addrinfo* found = nullptr;
    const int failed = ::getaddrinfo(hosts[pick(6)], services[pick(5)], &hints, &found);
    if (failed != 0) return 1000 - failed;  // positive, since errno says nothing then
    long sum = 0;
    for (const addrinfo* one = found; one != nullptr; one = one->ai_next)
      sum = sum * 8 + one->ai_family + one->ai_socktype;
    ::freeaddrinfo(found);
    return sum;
  }

  long changes_numbers() {
    const std::size_t which = pick(static_cast<unsigned>(files_.size()) + 2);
    if (pick(3) == 0) return files_.close(which);
    const std::size_t into = pick(static_cast<unsigned>(files_.size()) + 2);
    return files_.duplicate(which, into, pick(4));
  }

  timespec time_{};
  sockaddr_in inet_{};
  made_call call_{};
  bool sent_urgent_ = false;
  test::choices chosen_;
  files files_;
  static constexpr std::size_t addresses = 20'000;  // begin there, behind data
  std::array<char, addresses + 480> memory_{};
};

WEFT_FUZZ(arguments_of_hooked_calls, 100, 300) {
  std::signal(SIGPIPE, SIG_IGN);
  const std::vector<outcome> plain = calls{chosen}.run();
  // By a signal from outside, such as that of libFuzzer's clock. Hooked calls are made by another thread, which gets none.
  if (std::ranges::any_of(plain, [](const outcome& one) { return one.error == EINTR; })) return;
  static const weft::worker_group worker{1};  // for all inputs: its end takes longer than most of them
  std::vector<outcome> hooked;
  weft::sync_wait(
      weft::start_on(worker.worker(0), test::at_once({[&] { hooked = std::make_unique<calls>(chosen)->run(); }})));
  test::must(plain.size() == hooked.size(), "another number of calls");
  for (std::size_t i = 0; i != plain.size(); ++i) {
    if (hooked[i].result == plain[i].result && hooked[i].error == plain[i].error && hooked[i].memory == plain[i].memory)
      continue;
    const auto told = [](const outcome& one) {
      return std::to_string(one.result) + ", errno " + std::to_string(one.error) + ", memory " +
             std::to_string(one.memory);
    };
    test::must(false, "call " + std::to_string(i) + ", " + plain[i].call.text() + ": " + told(hooked[i]) + " for " +
                          told(plain[i]));
  }
}

}  // namespace
