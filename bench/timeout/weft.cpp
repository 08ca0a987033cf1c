#include "workload.hpp"

#include <weft/channel.hpp>
#include <weft/combine.hpp>
#include <weft/pool.hpp>
#include <weft/timed.hpp>

namespace {

using channel = weft::channel<std::size_t>;

weft::task<> echo(channel& there, channel& back) {
  while (const auto number = co_await there.receive()) co_await back.send(*number + 1);
}

weft::task<std::size_t> call(channel& there, channel& back, std::chrono::seconds limit) {
  std::size_t number = 0;
  for (std::size_t i = 0; i != bench::timeout_rounds; ++i) {
    co_await there.send(number);
    if (limit.count() != 0)
      number = (co_await weft::timeout(limit, back.receive())).value();
    else
      number = (co_await back.receive()).value();
  }
  there.close();
  co_return number;
}

weft::task<std::size_t> both(std::chrono::seconds limit) {
  channel there{0}, back{0};
  auto [nothing, number] = co_await weft::when_all(echo(there, back), call(there, back, limit));
  co_return number;
}

}  // namespace

void bench::run(bench::state& state) {
  const weft::pool workers{{.threads = 1}};
  const std::chrono::seconds limit{state.size()};
  state.measure(timeout_rounds, timeout_rounds,
                [&] { return weft::sync_wait(weft::start_on(workers.executor(), both(limit))); });
}
