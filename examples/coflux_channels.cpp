// A bounded channel between a producer and two consumers, and one that is a rendezvous: what Coflux's README does with its
// channels. Nobody is told how many values come: the channel is closed.
#include <cstdio>
#include <vector>
#include <weft/weft.hpp>

namespace w = weft;

w::task<> produce(w::channel<int>& to) {
  for (int i = 1; i <= 6; ++i) co_await to.send(i * i);
  to.close();
}

w::task<int> consume(w::channel<int>& from) {
  int sum = 0;
  while (auto value = co_await from.receive()) sum += *value;
  co_return sum;
}

w::task<> ping(w::channel<int>& there, w::channel<int>& back) {
  int ball = 0;
  for (int i = 0; i != 3; ++i) {
    co_await there.send(int{ball});
    ball = *co_await back.receive();
    std::printf("the ball was hit %d times\n", ball);
  }
  there.close();
}

w::task<> pong(w::channel<int>& there, w::channel<int>& back) {
  while (auto ball = co_await there.receive()) co_await back.send(*ball + 2);
}

w::task<> run() {
  w::channel<int> squares{2};
  auto [produced, one, two] = co_await w::when_all(produce(squares), consume(squares), consume(squares));
  std::printf("both consumers together: %d\n", one + two);

  w::channel<int> there{0}, back{0};
  co_await w::when_all(ping(there, back), pong(there, back));

  there.close();  // again: nothing
  const auto refused = co_await w::as_result(there.send(1));
  std::printf("sending: %s\n", refused.error().message().c_str());
}

int main() { w::sync_wait(run()); }
