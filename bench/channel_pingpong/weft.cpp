#include "workload.hpp"

#include <weft/channel.hpp>
#include <weft/combine.hpp>
#include <weft/pool.hpp>

namespace {

using channel = weft::channel<std::size_t>;

weft::task<> echo(channel& there, channel& back) {
  while (const auto number = co_await there.receive()) co_await back.send(*number + 1);
}

weft::task<std::size_t> call(channel& there, channel& back) {
  std::size_t number = 0;
  for (std::size_t i = 0; i != bench::pingpong_rounds; ++i) {
    co_await there.send(number);
    const auto next = co_await back.receive();
    number = next.value();
  }
  there.close();
  co_return number;
}

weft::task<std::size_t> both() {
  channel there{0}, back{0};
  auto [nothing, number] = co_await weft::when_all(echo(there, back), call(there, back));
  co_return number;
}

}  // namespace

void bench::run(bench::state& state) {
  const weft::pool workers{{.threads = static_cast<unsigned>(state.size())}};
  state.measure(pingpong_rounds, pingpong_rounds,
                [&] { return weft::sync_wait(weft::start_on(workers.executor(), both())); });
}
