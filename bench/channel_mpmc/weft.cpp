#include "workload.hpp"

#include <numeric>
#include <vector>
#include <weft/channel.hpp>
#include <weft/combine.hpp>
#include <weft/pool.hpp>

namespace {

using channel = weft::channel<std::size_t>;

weft::task<> send(channel& to, std::size_t first, std::size_t end) {
  for (; first != end; ++first) co_await to.send(first);
}

weft::task<> send_all(channel& to, std::size_t count) {
  std::vector<weft::task<>> senders;
  const std::size_t each = count / bench::mpmc_senders;
  for (std::size_t i = 0; i != bench::mpmc_senders; ++i) senders.push_back(send(to, i * each, (i + 1) * each));
  co_await weft::when_all(std::move(senders));
  to.close();
}

weft::task<std::size_t> receive(channel& from) {
  std::size_t sum = 0;
  while (const auto number = co_await from.receive()) sum += *number;
  co_return sum;
}

weft::task<std::size_t> receive_all(channel& from) {
  std::vector<weft::task<std::size_t>> receivers;
  for (std::size_t i = 0; i != bench::mpmc_receivers; ++i) receivers.push_back(receive(from));
  const std::vector<std::size_t> sums = co_await weft::when_all(std::move(receivers));
  co_return std::accumulate(sums.begin(), sums.end(), std::size_t{0});
}

weft::task<std::size_t> all(std::size_t count) {
  channel numbers{bench::mpmc_room};
  auto [nothing, sum] = co_await weft::when_all(send_all(numbers, count), receive_all(numbers));
  co_return sum;
}

}  // namespace

void bench::run(bench::state& state) {
  const weft::pool workers{{.threads = mpmc_threads}};
  state.measure(state.size(), sum_of_numbers(state.size()),
                [&] { return weft::sync_wait(weft::start_on(workers.executor(), all(state.size()))); });
}
