// Testing what takes time: three tasks that send 600 messages at 10 a second are tested in some milliseconds, and to the
// millisecond, since the kit's clock jumps to the next timer when nothing can run. So it is in ten orders of who runs next, and
// then with a stop at each await.
#include <cstdint>
#include <cstdio>
#include <weft/test.hpp>
#include <weft/weft.hpp>

namespace w = weft;
using namespace std::chrono_literals;

struct sender {
  w::token_bucket rate{{.rate = 10, .burst = 5}};
  int sent = 0;
  w::clock::time_point last{};  // when

  w::task<> send(int messages) {
    for (int i = 0; i != messages; ++i) {
      co_await rate.take();
      ++sent;
      last = w::current_clock().now();
    }
  }
};

w::task<> three_share_a_rate() {
  sender mine;
  co_await w::when_all(mine.send(200), mine.send(200), mine.send(200));
  w::test::require(mine.sent == 600, "some were not sent");
  w::test::require(w::test::elapsed() == 59'500ms, "595 of them have to wait, 100 ms each");
}

struct sends_and_is_stopped {  // made anew for each run
  sender mine;
  w::task<> run() { co_await w::when_all(mine.send(4), mine.send(4)); }
  void check() const {  // wherever the stop was; that nobody waits on, and no frame is left, the kit sees by itself
    const auto tokens = 5 + (mine.last - w::test::virtual_clock::begin()) / 100ms;
    w::test::require(mine.sent == 0 || mine.sent <= tokens, "they were faster than the rate allows");
  }
};

int main() {
  w::test::for_each_seed(10, [](std::uint64_t seed) { w::test::run({.seed = seed}, three_share_a_rate); });
  w::test::cancellation_sweep<sends_and_is_stopped>("two who send");
  std::printf("ok\n");
}
