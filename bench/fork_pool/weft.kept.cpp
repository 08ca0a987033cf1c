// All forks live until the end, as Coflux' do: each takes a block of the resource, and all blocks are given back together.
#include "workload.hpp"

#include <vector>
#include <weft/scope.hpp>

namespace {

weft::task<> trivial() { co_return; }

weft::task<std::size_t> forks(weft::scope& s, std::vector<weft::fork<>>& all, std::size_t count) {
  for (std::size_t made = 0; made != count; ++made) all.push_back(s.fork(trivial()));
  const std::size_t made = all.size();
  all.clear();
  co_return made;
}

}  // namespace

void bench::run(bench::state& state) {
  std::vector<weft::fork<>> all;
  all.reserve(state.size());
  measure_pooled_forks(state, [&](std::pmr::memory_resource* memory, std::size_t count) {
    return weft::sync_wait(weft::with_scope({.memory = memory}, forks, std::ref(all), count));
  });
}
