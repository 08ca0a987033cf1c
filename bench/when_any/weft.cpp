#include "workload.hpp"

#include <weft/combine.hpp>
#include <weft/sync.hpp>

namespace {

weft::task<std::size_t> slow(weft::event& never) {
  co_await never.wait();
  co_return 0;
}
weft::task<std::size_t> quick() { co_return 1; }

weft::task<std::size_t> race() {
  weft::event never;
  std::size_t won = 0;
  for (std::size_t i = 0; i != bench::races; ++i) won += (co_await weft::when_any(slow(never), quick())).index;
  co_return won;
}

}  // namespace

void bench::run(bench::state& state) {
  state.measure(races, races, [] { return weft::sync_wait(race()); });
}
