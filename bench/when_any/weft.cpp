#include "workload.hpp"

#include <weft/clock.hpp>
#include <weft/combine.hpp>
#include <weft/scope.hpp>

namespace {

weft::task<std::size_t> slow(weft::fork_view<> never) {
  co_await never;
  co_return 0;
}
weft::task<std::size_t> quick() { co_return 1; }

weft::task<> for_ever() { co_await weft::sleep_for(std::chrono::hours{1}); }

weft::task<std::size_t> race(weft::scope& s) {
  const weft::fork_view<> never = s.fork(for_ever()).view();
  std::size_t won = 0;
  for (std::size_t i = 0; i != bench::races; ++i) won += (co_await weft::when_any(slow(never), quick())).index;
  s.request_stop();
  co_return won;
}

}  // namespace

void bench::run(bench::state& state) {
  state.measure(races, races, [] { return weft::sync_wait(weft::with_scope(race)); });
}
