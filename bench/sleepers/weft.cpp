#include "workload.hpp"

#include <weft/clock.hpp>
#include <weft/hop.hpp>
#include <weft/pool.hpp>
#include <weft/scope.hpp>

namespace {

weft::task<> sleeper(std::size_t& begun) {
  ++begun;
  co_await weft::sleep_for(bench::asleep);
}

weft::task<std::size_t> all(std::size_t count) {
  std::size_t begun = 0;
  auto body = [&](weft::scope& s) -> weft::task<> {
    for (std::size_t i = 0; i != count; ++i) s.fork(sleeper(begun));
    s.request_stop();
    co_return;
  };
  static_cast<void>(co_await weft::as_result(weft::with_scope(body)));
  co_return begun;
}

}  // namespace

void bench::run(bench::state& state) {
  const weft::pool workers{{.threads = 1}};
  state.measure(state.size(), state.size(),
                [&] { return weft::sync_wait(weft::start_on(workers.executor(), all(state.size()))); });
}
