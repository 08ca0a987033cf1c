#include "workload.hpp"

#include <weft/scope.hpp>

namespace {

weft::task<> trivial() { co_return; }

weft::task<std::size_t> forks(weft::scope& s, std::size_t count) {
  std::size_t made = 0;
  for (; made != count; ++made) s.fork(trivial());
  s.reclaim();
  co_return made;
}

}  // namespace

void bench::run(bench::state& state) {
  measure_pooled_forks(state, [](std::pmr::memory_resource* memory, std::size_t count) {
    return weft::sync_wait(weft::with_scope({.memory = memory}, forks, count));
  });
}
