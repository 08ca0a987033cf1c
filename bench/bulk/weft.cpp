// Forks of a scope. From outside the scope's body runs on the caller's thread, and its forks on the pool.
#include "workload.hpp"

#include "../harness/harness.hpp"

#include <weft/combine.hpp>
#include <weft/pool.hpp>
#include <weft/scope.hpp>

namespace {

weft::task<> mark(bench::marks& all, std::size_t which) {
  all.set(which);
  co_return;
}

weft::task<> from_inside(weft::scope& s, bench::marks& all) {
  for (std::size_t i = 0; i != bench::bulk_tasks; ++i) s.fork(mark(all, i));
  co_return;
}

weft::task<> from_outside(weft::scope& s, weft::executor& there, bench::marks& all) {
  for (std::size_t i = 0; i != bench::bulk_tasks; ++i) s.fork_on(there, mark(all, i));
  co_return;
}

}  // namespace

void bench::run(bench::state& state) {
  const weft::pool pool{{.threads = static_cast<unsigned>(threads_of(state.size()))}};
  weft::executor& there = pool.executor();
  marks all;
  state.measure(bulk_tasks, bulk_tasks, [&] {
    if (is_from_inside(state.size()))
      weft::sync_wait(weft::with_scope({.executor = &there}, from_inside, std::ref(all)));
    else
      weft::sync_wait(weft::with_scope(from_outside, std::ref(there), std::ref(all)));
    return all.take();
  });
}
