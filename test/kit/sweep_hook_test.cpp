// Hooked calls, with a stop at each place of each wait, and without memory: what was received is the program's, and nothing is
// watched when they have ended.
#include <weft/hook.hpp>

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <weft/scope.hpp>
#include <weft/with.hpp>

#include "support/sweep.hpp"

namespace {

using namespace test::in_sweeps;

class both_ends {
 public:
  both_ends() {
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, at_) != 0) std::abort();
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

}  // namespace
