// What a walk over all roots finds in a scope. Who calls this, and when, is told in core/walk.hpp.
//
// The walk counts as live, as a stopper does. It takes the forks out of the list of running ones, and moves them back sixteen
// at a time as it looks at them: so a fork that ends takes itself out of whichever list it is in, and one that is entered
// meanwhile is not looked at. A stopper that comes meanwhile takes those that are left, and the snapshot lacks them.
#include <mutex>
#include <weft/detail/core/walk.hpp>
#include <weft/scope.hpp>

#include "scope/fork_end.hpp"

namespace weft::detail {

bool note_id_of_fork(root& fork) noexcept {
  auto& one = static_cast<fork_record&>(fork);
  const auto code = reinterpret_cast<std::uintptr_t>(one.function_.load(std::memory_order_relaxed));  // as declared
  if ((code & fork_record::id_is_known) != 0) return true;
  one.function_.store(reinterpret_cast<const void*>(code | fork_record::id_is_known),
                      std::memory_order_relaxed);  // as declared
  return false;
}

const wait_children scope_core::walk{
    .count_in =
        [](waiter& of) noexcept {
          auto& mine = static_cast<scope_core&>(of);
          const std::unique_lock guard{mine.lock_, std::try_to_lock};
          if (!guard) return wait_children::answer::busy;
          if (mine.live_ == 0) return wait_children::answer::none;
          ++mine.live_;
          return wait_children::answer::counted;
        },
    .how = [](const waiter&) noexcept { return wait_children::ends::with_all; },
    .parent = [](waiter& of) noexcept -> root& { return *static_cast<scope_core&>(of).parent_; },
    .next =
        [](waiter& of, walk_place& at, child_batch& into) noexcept {
          auto& mine = static_cast<scope_core&>(of);
          const std::lock_guard guard{mine.lock_};
          into.deadline = mine.env_.deadline;
          if (mine.has_deadline_) into.deadline_set_at = mine.options_.where;
          if (const stop_cause* const cause = mine.source_.cause()) into.cause = *cause;
          return mine.add_walked(at, into);
        },
    .leave =
        [](waiter& of) noexcept {
          auto& mine = static_cast<scope_core&>(of);
          std::unique_lock guard{mine.lock_};
          while (mine.is_walked_) {  // the walk ends early
            for (std::size_t i = 0; i != child_batch::most && mine.telling_ != nullptr; ++i) {
              fork_record& one = *mine.telling_;
              mine.unlink(one);
              mine.add_running(one);
            }
            mine.is_walked_ = mine.telling_ != nullptr;
            guard.unlock();
            guard.lock();
          }
          return --mine.live_ == 0;
        },
    .ended =
        [](waiter& of) noexcept {
          auto& mine = static_cast<scope_core&>(of);
          mine.finish(mine.how());
        },
};

bool scope_core::add_walked(walk_place& at, child_batch& into) noexcept {
  if (!std::exchange(at.has_begun, true)) {
    if (!body_is_over_) into.add(body_, body_function_, root_kind::body);
    if (telling_ != nullptr) {  // a stopper is at it
      into.is_complete = false;
      return false;
    }
    move_list(telling_, running_);
    is_walked_ = telling_ != nullptr;
    if (!is_walked_) return false;
  } else if (!is_walked_) {  // a stopper has taken the rest
    into.is_complete = false;
    return false;
  }
  while (telling_ != nullptr && !into.is_full()) {
    fork_record& one = *telling_;
    unlink(one);
    add_running(one);
    into.add(one, one.function(), root_kind::fork);
  }
  is_walked_ = telling_ != nullptr;
  return is_walked_;
}

}  // namespace weft::detail
