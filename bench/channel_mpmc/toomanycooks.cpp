// Its channel has room for all.
#include "workload.hpp"

#define TMC_PRIORITY_COUNT 1
#define TMC_TRIVIAL_TASK
#define TMC_IMPL
#include <array>
#include <numeric>
#include <tmc/all_headers.hpp>

namespace {

using channel = tmc::chan_tok<std::size_t>;

tmc::task<std::size_t> send(channel to, std::size_t first, std::size_t end) {
  for (; first != end; ++first) co_await to.push(first);
  co_return end;
}

tmc::task<std::size_t> send_all(channel to, std::size_t count) {
  std::array<tmc::task<std::size_t>, bench::mpmc_senders> senders;
  const std::size_t each = count / senders.size();
  for (std::size_t i = 0; i != senders.size(); ++i) senders[i] = send(to, i * each, (i + 1) * each);
  co_await tmc::spawn_many<bench::mpmc_senders>(senders.begin());
  to.close();
  co_return 0;
}

tmc::task<std::size_t> receive(channel from) {
  std::size_t sum = 0;
  while (const auto number = co_await from.pull()) sum += *number;
  co_return sum;
}

tmc::task<std::size_t> receive_all(channel from) {
  std::array<tmc::task<std::size_t>, bench::mpmc_receivers> receivers;
  for (auto& one : receivers) one = receive(from);
  const auto sums = co_await tmc::spawn_many<bench::mpmc_receivers>(receivers.begin());
  co_return std::accumulate(sums.begin(), sums.end(), std::size_t{0});
}

tmc::task<std::size_t> all(std::size_t count) {
  channel numbers = tmc::make_channel<std::size_t>();
  auto [nothing, sum] = co_await tmc::spawn_tuple(send_all(numbers, count), receive_all(numbers));
  co_return sum;
}

}  // namespace

void bench::run(bench::state& state) {
  tmc::cpu_executor().set_thread_count(mpmc_threads).init();
  state.measure(state.size(), sum_of_numbers(state.size()),
                [&] { return tmc::post_waitable(tmc::cpu_executor(), all(state.size()), 0).get(); });
  tmc::cpu_executor().teardown();
}
