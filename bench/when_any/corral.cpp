#include "workload.hpp"

#include "../harness/corral_loop.hpp"

namespace {

corral::Task<std::size_t> slow(corral::Event& never) {
  co_await never;
  co_return 0;
}
corral::Task<std::size_t> quick() { co_return 1; }

corral::Task<std::size_t> race() {
  corral::Event never;
  std::size_t won = 0;
  for (std::size_t i = 0; i != bench::races; ++i) {
    const auto [none, value] = co_await corral::anyOf(slow(never), quick());
    won += value.has_value() && !none.has_value() ? *value : 0;
  }
  co_return won;
}

}  // namespace

void bench::run(bench::state& state) {
  bench::no_events loop;
  state.measure(races, races, [&] { return corral::run(loop, race()); });
}
