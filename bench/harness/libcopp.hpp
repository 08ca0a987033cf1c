// What adapters of libcopp have in common: its coroutines, whose stacks come from its pool of them, as in its
// sample_benchmark_coroutine_stack_pool.cpp. Below each is a guard.
#pragma once

#include <libcopp/coroutine/coroutine_context_container.h>
#include <libcopp/stack/stack_pool.h>

#include <cstddef>
#include <new>
#include <utility>

namespace bench {

/// `Origin`: where its pool has stacks from.
template <class Origin>
class basic_libcopp_stacks {
 public:
  using pool = copp::stack_pool<Origin>;
  using coroutine = copp::coroutine_context_container<copp::allocator::stack_allocator_pool<pool>>;

  /// Of `bytes`; of coroutines that have ended, the stacks of `kept` are there for the next ones.
  basic_libcopp_stacks(std::size_t kept, std::size_t bytes) {
    pool_->set_min_stack_number(kept);
    pool_->set_stack_size(bytes);  // it does not look at what size is asked for
  }

  /// One that is to run `f`, and has not begun.
  template <class F>
  typename coroutine::ptr_t make(F f) {
    copp::allocator::stack_allocator_pool<pool> from{pool_};
    auto made = coroutine::create(call_of(std::move(f)), from, pool_->get_stack_size());
    if (!made) throw std::bad_alloc{};
    return made;
  }

  template <class F>
  static typename coroutine::callback_t call_of(F f) {
    return [f = std::move(f)](void*) mutable -> int { return f(), 0; };
  }

 private:
  typename pool::ptr_t pool_ = pool::create();
};

using libcopp_stacks = basic_libcopp_stacks<copp::allocator::default_statck_allocator>;

}  // namespace bench
