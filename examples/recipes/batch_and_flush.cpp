// Batch and flush: collects what comes, and writes it when there are a hundred, or when the oldest of them has waited for
// 50 ms, whichever is first. The deadline is a case of the select, so no timer has to be cancelled, and none comes too late.
#include <cstdio>
#include <optional>
#include <vector>
#include <weft/test.hpp>
#include <weft/weft.hpp>

namespace w = weft;
using namespace std::chrono_literals;

w::task<> write_batch(const std::vector<int>& batch) {
  std::printf("%4d ms: %zu\n", static_cast<int>(w::test::elapsed() / 1ms), batch.size());
  co_await w::sleep_for(5ms);  // what comes meanwhile waits in the channel
}

template <class Write>
w::task<> collect(w::receiver<int> from, Write write) {
  std::vector<int> batch;
  while (auto first = co_await from.receive()) {
    batch.assign(1, *first);
    const auto due = w::current_clock().now() + 50ms;
    while (batch.size() != 100) {
      auto got = co_await w::select(w::on_receive(from), w::at(due));
      if (got.index == 1) break;
      const std::optional<int> next = std::get<0>(got.value);
      if (!next) break;  // it is closed: this is the last one
      batch.push_back(*next);
    }
    co_await w::shielded(write(batch));  // a stop waits until they are written
  }
}

w::task<> produce(w::sender<int> to) {
  for (int i = 0; i != 250; ++i) co_await to.send(i);  // as fast as it can
  co_await w::sleep_for(1s);
  for (int i = 250; i != 254; ++i) {  // now and then
    co_await to.send(i);
    co_await w::sleep_for(20ms);
  }
  co_await to.send(254);
  to.close();
}

w::task<> run() {
  w::channel<int> entries{16};
  co_await w::when_all(collect(entries, write_batch), produce(entries));
}

int main() { w::test::run(run); }
