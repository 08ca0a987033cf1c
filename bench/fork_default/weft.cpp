#include "workload.hpp"

#include <weft/scope.hpp>

namespace {

weft::task<> trivial() { co_return; }

weft::task<std::size_t> forks(weft::scope& s, std::size_t count) {
  std::size_t ended = 0;
  for (; ended != count; ++ended) co_await s.fork(trivial());
  co_return ended;
}

}  // namespace

void bench::run(bench::state& state) {
  state.measure(state.size(), state.size(), [&] { return weft::sync_wait(weft::with_scope(forks, state.size())); });
}
