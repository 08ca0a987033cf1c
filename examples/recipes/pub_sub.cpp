// Publish and subscribe: each subscriber gets every value that is sent while it is subscribed. The publisher waits for the
// slowest one once the ring is full; `.slow` may have that one miss values, or be cut off, instead.
#include <cstdio>
#include <weft/test.hpp>
#include <weft/weft.hpp>

namespace w = weft;
using namespace std::chrono_literals;

using prices = w::broadcast<int>;

w::task<long> sum(prices::receiver from, std::chrono::milliseconds each) {
  long all = 0;
  while (auto price = co_await from.receive()) {
    all += *price;
    co_await w::sleep_for(each);
  }
  co_return all;
}

w::task<> publish(prices& to, int last = 100) {
  for (int price = 1; price <= last; ++price) co_await to.send(price);
  to.close();  // subscribers still get what was sent
}

w::task<> run() {
  prices all{{.capacity = 8}};
  auto [quick, slow, sent] = co_await w::when_all(sum(all.subscribe(), 1ms), sum(all.subscribe(), 10ms), publish(all));
  std::printf("the quick one has %ld, the slow one %ld\n", quick, slow);
}

int main() { w::test::run(run); }
