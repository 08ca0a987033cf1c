#include "workload.hpp"

#include <numeric>
#include <vector>
#include <weft/broadcast.hpp>
#include <weft/channel.hpp>
#include <weft/combine.hpp>
#include <weft/pool.hpp>

namespace {

using numbers = weft::broadcast<std::size_t>;

weft::task<> send_all(numbers& to) {
  for (std::size_t i = 0; i != bench::broadcast_numbers; ++i) co_await to.send(i);
  to.close();
}

weft::task<std::size_t> receive_all(numbers::receiver from) {
  std::size_t sum = 0;
  while (const auto number = co_await from.receive()) sum += *number;
  co_return sum;
}

weft::task<std::size_t> all() {
  numbers to_all{{.capacity = bench::broadcast_room, .slow = weft::slow_receiver::wait}};
  std::vector<weft::task<std::size_t>> receivers;
  for (std::size_t i = 0; i != bench::broadcast_receivers; ++i) receivers.push_back(receive_all(to_all.subscribe()));
  auto [nothing, sums] = co_await weft::when_all(send_all(to_all), weft::when_all(std::move(receivers)));
  co_return std::accumulate(sums.begin(), sums.end(), std::size_t{0});
}

}  // namespace

void bench::run(bench::state& state) {
  const weft::pool workers{{.threads = static_cast<unsigned>(state.size())}};
  state.measure(broadcast_numbers, broadcast_sum,
                [&] { return weft::sync_wait(weft::start_on(workers.executor(), all())); });
}
