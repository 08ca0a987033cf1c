#include "workload.hpp"

#include <weft/channel.hpp>
#include <weft/combine.hpp>
#include <weft/pool.hpp>

namespace {

weft::task<> send_all(weft::channel<std::size_t>& to) {
  for (std::size_t i = 0; i != bench::spsc_numbers; ++i) co_await to.send(i);
  to.close();
}

weft::task<std::size_t> receive_all(weft::channel<std::size_t>& from) {
  std::size_t sum = 0;
  while (const auto number = co_await from.receive()) sum += *number;
  co_return sum;
}

weft::task<std::size_t> both() {
  weft::channel<std::size_t> numbers{bench::spsc_room};
  auto [nothing, sum] = co_await weft::when_all(send_all(numbers), receive_all(numbers));
  co_return sum;
}

}  // namespace

void bench::run(bench::state& state) {
  const weft::pool workers{{.threads = static_cast<unsigned>(state.size())}};
  state.measure(spsc_numbers, spsc_sum, [&] { return weft::sync_wait(weft::start_on(workers.executor(), both())); });
}
