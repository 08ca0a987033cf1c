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
#include <memory>
#include <string>
#include <vector>

#include "hook/fortified.hpp"
#include "hook/places.hpp"
#include "support/fuzz.hpp"

namespace {

// None waits for ever: what blocks has a limit of its own, or fails, or is ready.
class files {
 public:
  files() {
    for (const int type : {SOCK_STREAM, SOCK_DGRAM, SOCK_SEQPACKET}) {
      pair(type | SOCK_NONBLOCK);
      pair(type);
      for (const std::size_t one : {all_.size() - 2, all_.size() - 1}) limited(all_[one]);
    }
    int ends[2];
    if (::pipe2(ends, O_NONBLOCK) != 0) std::abort();
    all_.insert(all_.end(), ends, ends + 2);
    all_.push_back(::eventfd(3, EFD_NONBLOCK));
    all_.push_back(::open("/dev/null", O_RDONLY));  // or it takes memory that is none, and ASan then looks at it
    all_.push_back(::memfd_create("weft-hook", MFD_CLOEXEC));
    // Sockets to connect: one by TCP, of which nobody listens, and Unix ones, for which there is a listener.
    all_.push_back(limited(::socket(AF_INET, SOCK_STREAM, 0)));
    all_.push_back(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0));
    all_.push_back(limited(::socket(AF_UNIX, SOCK_STREAM, 0)));
    all_.push_back(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0));
    const int listener = limited(::socket(AF_UNIX, SOCK_STREAM, 0));
    socklen_t size = sizeof listens_at_;
    listens_at_.sun_family = AF_UNIX;
    const auto address = reinterpret_cast<sockaddr*>(&listens_at_);
    if (::bind(listener, address, sizeof(sa_family_t)) != 0 || ::listen(listener, 256) != 0 ||
        ::getsockname(listener, address, &size) != 0)
      std::abort();
    listens_at_size_ = size;
    all_.push_back(listener);
    set_ = ::epoll_create1(EPOLL_CLOEXEC);
    for (std::size_t i = 0; i < all_.size(); i += 3) {
      epoll_event one{.events = EPOLLIN, .data = {.u64 = i}};
      ::epoll_ctl(set_, EPOLL_CTL_ADD, all_[i], &one);
    }
  }
  files(const files&) = delete;
  ~files() {
    for (const int one : all_)
      if (one >= 0) ::close(one);
    ::close(set_);
  }
  // Or one that is none.
  int at(std::size_t which) const { return which < all_.size() ? all_[which] : which % 2 == 0 ? -1 : 1 << 19; }
  std::size_t size() const { return all_.size(); }
  int set() const { return set_; }
  const sockaddr* listens_at() const { return reinterpret_cast<const sockaddr*>(&listens_at_); }
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
  static int limited(int number) {
    const timeval limit{0, 1000};
    ::setsockopt(number, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    ::setsockopt(number, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    return number;
  }
  void pair(int type) {
    int ends[2];
    if (::socketpair(AF_UNIX, type, 0, ends) != 0) std::abort();
    all_.insert(all_.end(), ends, ends + 2);
  }
  std::vector<int> all_;
  int set_ = -1;
  sockaddr_un listens_at_{};
  socklen_t listens_at_size_ = 0;
};

struct outcome {
  long result;
  int error;
  std::uint64_t memory;
  std::string call;
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
      all.push_back({result, error, sum_of_memory(), call_});
    }
    return all;
  }

 private:
  std::uint64_t sum_of_memory() const noexcept {
    std::uint64_t sum = 0, word = 0;
    for (std::size_t at = 0; at != memory_.size(); at += sizeof word) {
      std::memcpy(&word, memory_.data() + at, sizeof word);
      sum = (sum ^ word) * 0x9e3779b97f4a7c15;
      sum ^= sum >> 29;
    }
    return sum;
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
  int flags() {
    static constexpr int each[] = {0, 0, 0, MSG_DONTWAIT, MSG_PEEK, MSG_WAITALL, MSG_OOB, MSG_TRUNC, 1 << 30};
    return each[pick(9)] | MSG_NOSIGNAL;
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
    call_ = std::to_string(what) + " of " + std::to_string(which) + ", " + std::to_string(bytes) + " bytes, count " +
            std::to_string(count) + (at == memory_.data() ? "" : ", no address");
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
      case 4: size = files_.listens_at_size(); return files_.listens_at();
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
    auto* const from = reinterpret_cast<sockaddr*>(into == memory_.data() ? memory_.data() + 20'000 : into);
    const long got = ::recvfrom(all.number, all.at, all.bytes, flags(), from, from == nullptr ? nullptr : &size);
    return got < 0 ? got : got * 0x100 + static_cast<long>(size);
  }

  long accepts(int which) {
    const int made =
        pick(2) == 0 ? ::accept(which, nullptr, nullptr) : ::accept4(which, nullptr, nullptr, SOCK_CLOEXEC);
    return made < 0 ? made : ::close(made);
  }

  long several_messages(const given& all) {
    iovec second{memory_.data() + 20'200, 100};
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
  std::string call_;
  test::choices chosen_;
  files files_;
  std::array<char, 20'480> memory_{};  // each call has it summed up
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
    const std::string which = "call " + std::to_string(i) + ", " + plain[i].call + ": ";
    test::must(hooked[i].result == plain[i].result,
               which + std::to_string(hooked[i].result) + ", errno " + std::to_string(hooked[i].error) + ", for " +
                   std::to_string(plain[i].result) + ", errno " + std::to_string(plain[i].error));
    test::must(hooked[i].error == plain[i].error,
               which + "errno " + std::to_string(hooked[i].error) + " for " + std::to_string(plain[i].error));
    test::must(hooked[i].memory == plain[i].memory, which + "other memory");
  }
}

}  // namespace
