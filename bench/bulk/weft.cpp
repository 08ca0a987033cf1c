// Forks of a scope. From outside the scope's body runs on the caller's thread, and its forks on the pool.
#include "workload.hpp"

#include "../harness/harness.hpp"

#include <weft/combine.hpp>
#include <weft/pool.hpp>
#include <weft/scope.hpp>

namespace {

weft::task<> nothing() { co_return; }

weft::task<std::size_t> from_inside(weft::scope& s) {
  std::size_t made = 0;
  for (; made != bench::bulk_tasks; ++made) s.fork(nothing());
  co_return made;
}

weft::task<std::size_t> from_outside(weft::scope& s, weft::executor& there) {
  std::size_t made = 0;
  for (; made != bench::bulk_tasks; ++made) s.fork_on(there, nothing());
  co_return made;
}

}  // namespace

void bench::run(bench::state& state) {
  const weft::pool pool{{.threads = static_cast<unsigned>(threads_of(state.size()))}};
  weft::executor& there = pool.executor();
  if (is_from_inside(state.size()))
    state.measure(bulk_tasks, bulk_tasks,
                  [&] { return weft::sync_wait(weft::with_scope({.executor = &there}, from_inside)); });
  else
    state.measure(bulk_tasks, bulk_tasks,
                  [&] { return weft::sync_wait(weft::with_scope(from_outside, std::ref(there))); });
}
