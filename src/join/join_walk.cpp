// What a walk over all roots finds in a join or a group. Who calls this, and when, is told in core/walk.hpp.
//
// The records of the children stay until the wait ends, and so does the list of them. So the walk counts as one more child, and
// then goes along the list.
#include <mutex>
#include <weft/detail/core/walk.hpp>
#include <weft/detail/join/join.hpp>

#include "core/peek.hpp"
#include "core/stop_turn.hpp"

namespace weft::detail {
namespace {

// Whether all its frames have returned or were unwound. Its thread may write `top` meanwhile.
bool has_ended(root& one) noexcept { return one.is_end(peek(one.top)); }

wait_children::answer counted_if(bool is_counted) noexcept {
  return is_counted ? wait_children::answer::counted : wait_children::answer::none;
}

// A child that has not waited yet, whose record may be made anew at this moment, is not touched.
void add(root& one, bool is_starting, child_batch& into) noexcept {
  if (is_starting)
    into.add_untouched(one, root_kind::child);
  else if (!has_ended(one))
    into.add(one, nullptr, root_kind::child);
}

}  // namespace

const wait_children group::walk{
    .count_in = [](waiter& of) noexcept { return counted_if(count_one_more(static_cast<group&>(of).pending_)); },
    .how =
        [](const waiter& of) noexcept {
          const group::deciding* const kind = static_cast<const group&>(of).kind_;
          if (kind == nullptr) return wait_children::ends::with_all;
          return kind->about_to_wait != nullptr ? wait_children::ends::in_time : wait_children::ends::with_any;
        },
    .parent = [](waiter& of) noexcept -> root& { return static_cast<group&>(of).parent(); },
    .next =
        [](waiter& of, walk_place& at, child_batch& into) noexcept {
          auto& mine = static_cast<group&>(of);
          const bool is_first = !std::exchange(at.has_begun, true);
          auto* one = is_first ? mine.children_.load(std::memory_order_acquire)  // <- open (no model: as declared)
                               : static_cast<child*>(at.next);
          bool is_starting = is_first && at.is_opening;
          for (; one != nullptr && !into.is_full(); one = peek(one->sibling), is_starting = false)
            add(*one, is_starting, into);
          at.next = one;
          return one != nullptr;
        },
    .leave =
        [](waiter& of) noexcept {
          auto& mine = static_cast<group&>(of);
          return mine.pending_.fetch_sub(1, std::memory_order_acq_rel) == 1;  // -> join, <- join (no model: as a child)
        },
    .ended =
        [](waiter& of) noexcept {
          auto& mine = static_cast<group&>(of);
          mine.finish(mine.how());
        },
};

const wait_children join::walk{
    .count_in =
        [](waiter& of) noexcept {
          return count_one_more(static_cast<wait&>(of).all->pending_) ? wait_children::answer::counted
                                                                      : wait_children::answer::unclear;
        },
    .how = [](const waiter&) noexcept { return wait_children::ends::with_all; },
    .parent = [](waiter& of) noexcept -> root& { return *static_cast<wait&>(of).all->owner; },
    .next =
        [](waiter& of, walk_place& at, child_batch& into) noexcept {
          join& mine = *static_cast<wait&>(of).all;
          auto* one = static_cast<join_child*>(at.next);
          if (!std::exchange(at.has_begun, true)) {
            const std::lock_guard guard{mine.lock_};
            one = mine.children_;
          }
          for (; one != nullptr && !into.is_full(); one = one->before_) add(*one, false, into);
          at.next = one;
          return one != nullptr;
        },
    .leave =
        [](waiter& of) noexcept {
          join& mine = *static_cast<wait&>(of).all;
          return mine.pending_.fetch_sub(1, std::memory_order_acq_rel) == 1;  // -> join, <- join (no model: as a child)
        },
    .ended = [](waiter& of) noexcept { static_cast<wait&>(of).all->finish(); },
};

}  // namespace weft::detail
