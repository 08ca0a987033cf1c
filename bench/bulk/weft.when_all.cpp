// when_all of as many tasks, made here and now, which the pool's threads share by halves.
#include "workload.hpp"

#include "../harness/harness.hpp"

#include <vector>
#include <weft/combine.hpp>
#include <weft/pool.hpp>

namespace {

weft::task<> nothing() { co_return; }

auto as_many() {
  std::vector<weft::task<>> all;
  all.reserve(bench::bulk_tasks);
  for (std::size_t i = 0; i != bench::bulk_tasks; ++i) all.push_back(nothing());
  return weft::when_all(std::move(all));
}

weft::task<std::size_t> from_inside() { co_return (co_await as_many()).size(); }

}  // namespace

void bench::run(bench::state& state) {
  const weft::pool pool{{.threads = static_cast<unsigned>(threads_of(state.size()))}};
  weft::executor& there = pool.executor();
  if (is_from_inside(state.size()))
    state.measure(bulk_tasks, bulk_tasks, [&] { return weft::sync_wait(weft::start_on(there, from_inside())); });
  else
    state.measure(bulk_tasks, bulk_tasks, [&] { return weft::sync_wait(weft::start_on(there, as_many())).size(); });
}
