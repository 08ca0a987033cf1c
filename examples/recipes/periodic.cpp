// Periodic work that does not drift, and ends with what it is for: a heartbeat beside the real work. The loop is a fork, so
// a stop finds it in its wait, and nothing of it is left when its scope has ended.
#include <cstdio>
#include <weft/test.hpp>
#include <weft/weft.hpp>

namespace w = weft;
using namespace std::chrono_literals;

w::task<> beat(int& beats) {
  for (w::interval every{5s};;) {
    co_await every.next();        // missed ticks are left out, unless another missed_ticks is given
    co_await w::sleep_for(20ms);  // what is to be done; the next tick comes no later for it
    ++beats;
  }
}

w::task<> run() {
  int beats = 0;
  const auto work = [&](w::scope& s) -> w::task<> {
    w::fork<> beating = s.fork(beat(beats));
    co_await w::sleep_for(1h + 1s);  // stands for the real work
    beating.request_stop();
  };
  co_await w::with_scope(work);
  std::printf("%d beats in %d minutes\n", beats, static_cast<int>(w::test::elapsed() / 1min));
}

int main() { w::test::run(run); }
