// The start of a fork on another executor, which is posted there; and the environments of such forks, which share one where they
// are for the same executor. The state of a fork, and who may read and write it, is described in scope/scope_core.hpp.
#include <mutex>
#include <new>
#include <weft/scope.hpp>

#include "core/run_loop.hpp"
#include "core/turns.hpp"
#include "core/worker.hpp"
#include "scope/fork_end.hpp"

namespace weft::detail {

std::uintptr_t scope_core::start_on(executor& where, std::coroutine_handle<> frame, promise_base& promise,
                                    failure_function failure_of) {
  WEFT_EXPECTS(env_.frames == nullptr || env_.frames->is_shared() || &where == env_.executor,
               "fork_on to another executor below a scope with memory that was not declared shared: set "
               ".memory_is_shared, and give a resource that is");
  fork_record* one = is_limited_ ? nullptr : start_in_free_record(where, frame, promise, failure_of);
  if (one == nullptr) {
    bool has_place = false;
    try {
      if (is_limited_ && !(has_place = take_place())) throw error{make_error_code(errc::no_room), "fork_on"};
      const fork_record::own_env& its = env_on(where);
      try {
        one = &take_record();
      } catch (...) {
        std::unique_lock guard{lock_};
        const fork_record::own_env* const unused = let_go_of_env(&its);
        guard.unlock();
        delete unused;
        throw;
      }
      one->env = &its;
    } catch (...) {
      frame.destroy();
      if (has_place) leave_place();
      throw;
    }
    one->has_default_memory = env_.frames == nullptr;
    begin(*one, frame, promise, failure_of);
    if (env_.frames != nullptr) [[unlikely]]
      note_post(*one);
    link(*one);
  } else if (source_.stop_requested()) {
    one->request_stop();  // as link() does
  }
  one->schedule();
  return reinterpret_cast<std::uintptr_t>(one) | has_record;
}

// The fast path of fork_on: where a record is free and the last fork_on was for the same executor, all is done under one
// lock. Null: it is not so.
inline fork_record* scope_core::start_in_free_record(executor& where, std::coroutine_handle<> frame,
                                                     promise_base& promise, failure_function failure_of) noexcept {
  const fork_record::own_env* unused;
  fork_record* one;
  {
    std::lock_guard guard{lock_};
    const fork_record::own_env* const its = last_env_;
    if (free_ == nullptr || its == nullptr || its->executor != &where) return nullptr;
    one = free_;
    free_ = one->next_;
    its->users = its->users + 1;
    unused = let_go_of_env(*one);
    ::new (static_cast<void*>(one)) fork_record{*this};
    one->env = its;
    one->has_default_memory = env_.frames == nullptr;
    begin(*one, frame, promise, failure_of);
    if (env_.frames != nullptr) [[unlikely]]
      note_post(*one);
    count_in(*one);
  }
  delete unused;
  return one;
}

// The environment for forks on this executor: that of the last fork_on if it fits, else a new one. Counts one more user.
const fork_record::own_env& scope_core::env_on(executor& where) {
  {
    std::lock_guard guard{lock_};
    if (last_env_ != nullptr && last_env_->executor == &where) {
      last_env_->users = last_env_->users + 1;
      return *last_env_;
    }
  }
  const ambient_memory of_scope{env_.frames};
  auto* const made = new fork_record::own_env{env_};
  made->executor = &where;
  made->users = 2;
  const fork_record::own_env* unused = nullptr;
  {
    std::lock_guard guard{lock_};
    if (last_env_ != nullptr) unused = let_go_of_env(last_env_);
    last_env_ = made;
  }
  delete unused;
  return *made;
}

}  // namespace weft::detail
