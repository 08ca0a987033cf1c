// As its sample_benchmark_coroutine_stack_pool.cpp.
#include "workload.hpp"

#include <libcopp/coroutine/coroutine_context_container.h>
#include <libcopp/stack/stack_pool.h>

namespace {

using pool = copp::stack_pool<copp::allocator::default_statck_allocator>;
using allocator = copp::allocator::stack_allocator_pool<pool>;
using coroutine = copp::coroutine_context_container<allocator>;

std::size_t turns = 0;

}  // namespace

void bench::run(bench::state& state) {
  const pool::ptr_t stacks = pool::create();
  stacks->set_min_stack_number(state.size());
  std::vector<coroutine::ptr_t> all;
  for (std::size_t i = 0; i != state.size(); ++i) {
    allocator from{stacks};
    all.push_back(coroutine::create(coroutine::callback_t{[](void*) -> int {
                                      auto* const self = copp::this_coroutine::get_coroutine();
                                      for (;; self->yield()) ++turns;
                                      return 0;
                                    }},
                                    from, switch_stack));
    all.back()->start();
  }
  measure_switches(state, turns, [&] {
    for (auto& one : all) one->resume();
  });
}
