#include "workload.hpp"

#include "../harness/libcopp.hpp"

#include <vector>

void bench::run(bench::state& state) {
  libcopp_stacks stacks{state.size(), switch_stack};
  std::size_t turns = 0;
  std::vector<libcopp_stacks::coroutine::ptr_t> all;
  for (std::size_t i = 0; i != state.size(); ++i) {
    all.push_back(stacks.make([&] {
      auto* const self = copp::this_coroutine::get_coroutine();
      for (;; self->yield()) ++turns;
    }));
    all.back()->start();
  }
  measure_switches(state, turns, [&] {
    for (auto& one : all) one->resume();
  });
}
