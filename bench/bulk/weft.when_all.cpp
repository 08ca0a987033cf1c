// when_all of as many tasks, made here and now, which the pool's threads share by halves.
#include "workload.hpp"

#include "../harness/harness.hpp"

#include <vector>
#include <weft/combine.hpp>
#include <weft/pool.hpp>

namespace {

weft::task<> mark(bench::marks& all, std::size_t which) {
  all.set(which);
  co_return;
}

auto as_many(bench::marks& marked) {
  std::vector<weft::task<>> all;
  all.reserve(bench::bulk_tasks);
  for (std::size_t i = 0; i != bench::bulk_tasks; ++i) all.push_back(mark(marked, i));
  return weft::when_all(std::move(all));
}

weft::task<> from_inside(bench::marks& marked) { co_await as_many(marked); }

}  // namespace

void bench::run(bench::state& state) {
  const weft::pool pool{{.threads = static_cast<unsigned>(threads_of(state.size()))}};
  weft::executor& there = pool.executor();
  marks all;
  state.measure(bulk_tasks, bulk_tasks, [&] {
    if (is_from_inside(state.size()))
      weft::sync_wait(weft::start_on(there, from_inside(all)));
    else
      weft::sync_wait(weft::start_on(there, as_many(all)));
    return all.take();
  });
}
