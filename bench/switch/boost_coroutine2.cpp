#include "workload.hpp"

#include <boost/coroutine2/coroutine.hpp>

void bench::run(bench::state& state) {
  using coroutine = boost::coroutines2::coroutine<void>;
  std::size_t turns = 0;
  std::vector<coroutine::pull_type> all;
  for (std::size_t i = 0; i != state.size(); ++i)
    all.emplace_back(boost::coroutines2::fixedsize_stack{switch_stack}, [&](coroutine::push_type& yield) {
      for (;; yield()) ++turns;
    });
  measure_switches(state, turns, [&] {
    for (auto& one : all) one();
  });
}
