// Calls with arguments at random, plain and with hooks, on files that are alike: they give the same, fail alike, and leave the
// same in the program's memory.
#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "hook/places.hpp"
#include "support/fuzz.hpp"

namespace {

// None waits for ever: what blocks has a limit of its own, or fails, or is ready.
class files {
 public:
  files() {
    const timeval limit{0, 1000};
    for (const int type : {SOCK_STREAM, SOCK_DGRAM, SOCK_SEQPACKET}) {
      pair(type | SOCK_NONBLOCK);
      pair(type);
      for (const std::size_t one : {all_.size() - 2, all_.size() - 1}) {
        ::setsockopt(all_[one], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
        ::setsockopt(all_[one], SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
      }
    }
    int ends[2];
    if (::pipe2(ends, O_NONBLOCK) != 0) std::abort();
    all_.insert(all_.end(), ends, ends + 2);
    all_.push_back(::eventfd(3, EFD_NONBLOCK));
    all_.push_back(::open("/dev/null", O_RDWR));
    char name[] = "/tmp/weft-hook-XXXXXX";
    all_.push_back(::mkstemp(name));
    ::unlink(name);
  }
  files(const files&) = delete;
  ~files() {
    for (const int one : all_) ::close(one);
  }
  // Or one that is none.
  int at(std::size_t which) const { return which < all_.size() ? all_[which] : which % 2 == 0 ? -1 : 1 << 19; }
  std::size_t size() const { return all_.size(); }

 private:
  void pair(int type) {
    int ends[2];
    if (::socketpair(AF_UNIX, type, 0, ends) != 0) std::abort();
    all_.insert(all_.end(), ends, ends + 2);
  }
  std::vector<int> all_;
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
      std::uint64_t memory = 0;
      for (const char byte : memory_) memory = memory * 31 + static_cast<unsigned char>(byte);
      all.push_back({result, error, memory, call_});
    }
    return all;
  }

 private:
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

  long one() {
    const int which = number();
    char* const at = address();
    const std::size_t bytes = size(at);
    iovec parts[3] = {{at, bytes / 2}, {memory_.data(), 0}, {at, bytes - bytes / 2}};
    const int count = static_cast<int>(pick(5)) - 1;
    const unsigned what = pick(11);
    call_ = std::to_string(what) + " of " + std::to_string(which) + ", " + std::to_string(bytes) + " bytes, count " +
            std::to_string(count) + (at == memory_.data() ? "" : ", no address");
    switch (what) {
      case 0: return ::read(which, at, bytes);
      case 1: return ::write(which, at, bytes);
      case 2: return ::recv(which, at, bytes, flags());
      case 3: return ::send(which, at, bytes, flags());
      case 4: return ::readv(which, pick(9) == 0 ? nullptr : parts, count);
      case 5: return ::writev(which, pick(9) == 0 ? nullptr : parts, count);
      case 6: {
        msghdr all{};
        all.msg_iov = parts;
        all.msg_iovlen = static_cast<std::size_t>(count);
        return pick(2) == 0 ? ::recvmsg(which, &all, flags()) : ::sendmsg(which, &all, flags());
      }
      case 7: {
        pollfd those[2] = {{which, static_cast<short>(pick(0x40)), 0}, {number(), POLLOUT, 0}};
        const int ready = ::poll(at == memory_.data() ? those : reinterpret_cast<pollfd*>(at), 1 + pick(2), 1);
        return ready < 0 ? ready : ready * 0x10000 + those[0].revents * 0x100 + those[1].revents;
      }
      case 8: return ::pread(which, at, bytes, static_cast<off_t>(pick(3)) - 1);
      case 9: return ::recvfrom(which, at, bytes, flags(), nullptr, nullptr);
      default: return ::accept(which, nullptr, nullptr);
    }
  }

  std::string call_;
  test::choices chosen_;
  files files_;
  std::array<char, 65536> memory_{};
};

WEFT_FUZZ(arguments_of_hooked_calls, 100, 300) {
  std::signal(SIGPIPE, SIG_IGN);
  const std::vector<outcome> plain = calls{chosen}.run();
  std::vector<outcome> hooked;
  test::run_hooked([&] { hooked = std::make_unique<calls>(chosen)->run(); });
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
