// As its sample_benchmark_coroutine_stack_pool.cpp.
#include "workload.hpp"

#include <libcopp/coroutine/coroutine_context_container.h>
#include <libcopp/stack/stack_pool.h>

#include <vector>

namespace {

using pool = copp::stack_pool<copp::allocator::default_statck_allocator>;
using allocator = copp::allocator::stack_allocator_pool<pool>;
using coroutine = copp::coroutine_context_container<allocator>;

class coroutines {
 public:
  coroutines(std::size_t count, std::size_t stack) {
    static const pool::ptr_t stacks = pool::create();
    stacks->set_min_stack_number(count);
    all_.reserve(count);
    for (std::size_t i = 0; i != count; ++i) {
      allocator from{stacks};
      all_.push_back(coroutine::create(coroutine::callback_t{[](void*) -> int {
                                         auto* const self = copp::this_coroutine::get_coroutine();
                                         for (std::size_t left = bench::switches_of_each; left != 0; --left)
                                           self->yield();
                                         return 0;
                                       }},
                                       from, stack));
    }
  }

  std::size_t resume_all() {
    std::size_t yielded = 0;
    for (auto& one : all_) {
      if (one->is_finished()) continue;
      one->resume();
      yielded += one->is_finished() ? 0 : 1;
    }
    return yielded;
  }

 private:
  std::vector<coroutine::ptr_t> all_;
};

}  // namespace

void bench::run(bench::state& state) { measure_libcopps<coroutines>(state); }
