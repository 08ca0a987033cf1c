#include "workload.hpp"

#include <libcopp/coroutine/coroutine_context_container.h>
#include <libcopp/stack/stack_pool.h>

void bench::run(bench::state& state) {
  using pool = copp::stack_pool<copp::allocator::default_statck_allocator>;
  using allocator = copp::allocator::stack_allocator_pool<pool>;
  using coroutine = copp::coroutine_context_container<allocator>;
  const pool::ptr_t stacks = pool::create();
  stacks->set_min_stack_number(state.size());
  std::vector<coroutine::ptr_t> all;
  all.reserve(state.size());
  measure_creation(state, [&](std::size_t count) {
    std::size_t ended = 0;
    for (std::size_t i = 0; i != count; ++i) {
      allocator from{stacks};
      all.push_back(coroutine::create(coroutine::callback_t{[&](void*) { return ++ended, 0; }}, from, created_stack));
    }
    for (auto& one : all) one->start();
    all.clear();
    return ended;
  });
}
