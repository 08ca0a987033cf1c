// Children of a when_all while they borrow their parent's root: all that runs as long as no child waits and none is stolen.
// How it works is described in join/join.hpp.
#include <weft/detail/join/join.hpp>

#include "core/run_loop.hpp"
#include "core/worker.hpp"
#include "sched/pool_worker.hpp"

namespace weft::detail {

// ---- children that are there ----------------------------------------------------------------------------------------

[[gnu::always_inline]] inline void join::offer(pool_worker& mine) noexcept {
  if (!mine.forks.push(*this)) [[unlikely]]
    return offer_beyond(mine);
  offered_to_ = &mine;
  if (mine.calls_for_one()) [[unlikely]]
    call_one(mine);
}
[[gnu::noinline]] void join::offer_beyond(pool_worker& mine) noexcept {
  if (mine.offer_beyond(*this)) offered_to_ = &mine;
}
[[gnu::noinline]] void join::call_one(pool_worker& mine) noexcept { mine.call_one(); }

// Puts the children that have not begun into the worker's deque as one job, if this runs on a pool and there is room. Rare
// cases are in functions of their own, so that the common path saves no registers.
[[gnu::noinline]] void join::offer_rest() noexcept {
  pool_worker* const mine = running_worker().of_pool;
  const weft::env* const env = owner->env;
  if (mine == nullptr || env == nullptr) return;
  if (env->executor != mine->home || env->frames != nullptr) [[unlikely]]
    return offer_if_shared(*mine);
  offer(*mine);
}
[[gnu::noinline]] void join::offer_if_shared(pool_worker& mine) noexcept {
  const weft::env& env = *owner->env;
  if (!mine.shares(env.executor)) return;
  WEFT_EXPECTS(env.frames == nullptr || env.frames->is_shared(),
               "when_all on a pool, below memory that was not declared shared: its children may run at once, so set "
               ".memory_is_shared, and give a resource that is");
  offer(mine);
}

// A child that borrows returns here. Goes on with the parent after the last child, else with the next child if older forks
// lie below this join in the worker's deque. Other cases are in functions of their own, so that this path saves no
// registers. Each load here is on the critical path between two children: one less, where the frames follow, is 2 % of fib
// and 9 % of skynet.
template <bool frames_follow>
void join::returned(frame* self) {
  join& mine = static_cast<join&>(*static_cast<boundary*>(self));
  const std::uint32_t index = mine.begun_;
  if (index == mine.count_) {
    mine.owner->before_wait = mine.was_lent_;
    mine.owner->top = mine.continuation;
    WEFT_JUMP_TO(mine.continuation);
  }
  if (mine.offered_to_ == nullptr) [[unlikely]]
    WEFT_GO_ON_IN(next_child, self);
  pool_worker& here = *mine.offered_to_;
  if (index + 1 == mine.count_) {
    if (!here.forks.pop_before_last(mine)) [[unlikely]]
      WEFT_GO_ON_IN(next_child, self);
    mine.begun_ = index + 1;
  } else {
    if (!here.forks.change_before_last(mine, [&] { mine.begun_ = index + 1; })) [[unlikely]]
      WEFT_GO_ON_IN(next_child, self);
    if (here.calls_for_one()) [[unlikely]]
      WEFT_GO_ON_IN(call_and_go_on, self);
  }
  WEFT_JUMP_TO(mine.lend((frames_follow ? mine.frames_behind() : mine.frames_)[index]));
}
template void join::returned<true>(frame* self);
template void join::returned<false>(frame* self);
[[gnu::noinline]] void join::call_and_go_on(frame* self) {
  join& mine = static_cast<join&>(*static_cast<boundary*>(self));
  mine.offered_to_->call_one();
  WEFT_JUMP_TO(mine.lend(mine.frames_[mine.begun_ - 1]));
}
void join::returned_to_slot(frame* self) {
  join& mine = static_cast<join&>(*static_cast<boundary*>(self));
  mine.kind_->settle(mine, mine.begun_ - 1, false);
  WEFT_GO_ON_IN(returned<false>, self);
}
[[gnu::noinline]] void join::next_child(frame* self) {
  join& mine = static_cast<join&>(*static_cast<boundary*>(self));
  if (mine.offered_to_ != nullptr) {
    auto& forks = mine.offered_to_->forks;
    if (!forks.pop(mine) && !forks.pop_stored(mine)) WEFT_JUMP_TO(mine.wait_for_others());
  }
  const std::uint32_t index = mine.begun_;
  mine.begun_ = index + 1;
  mine.offered_to_ = nullptr;
  if (mine.begun_ != mine.count_) mine.offer_rest();
  WEFT_JUMP_TO(mine.lend(mine.frames_[index]));
}

// ---- children that are made as they begin ---------------------------------------------------------------------------

[[gnu::noinline]] std::coroutine_handle<> join::start_later() noexcept {
  const std::coroutine_handle<> next = next_made();
  return next ? next : std::noop_coroutine();
}

// Makes the frame of a child. Making it may have given the parent a root of its own.
inline std::coroutine_handle<> join::make(std::size_t index) noexcept {
  const std::coroutine_handle<> child = kind_->make(*this, index);
  has_made_one();
  return child;
}

// Takes the next child if older forks lie below this join in the deque, as returned() does.
[[gnu::noinline]] bool join::begins_with_next(join& mine) {
  if (mine.offered_to_ == nullptr) [[unlikely]]
    return false;
  pool_worker& here = *mine.offered_to_;
  const std::uint32_t next = mine.begun_ + 1;
  if (next == mine.count_) {
    if (!here.forks.pop_before_last(mine)) [[unlikely]]
      return false;
    mine.begun_ = next;
  } else {
    if (!here.forks.change_before_last(mine, [&] { mine.begun_ = next; })) [[unlikely]]
      return false;
    if (here.calls_for_one()) [[unlikely]]
      WEFT_GO_ON_IN(calls_one, mine);
  }
  return true;
}
[[gnu::noinline]] bool join::calls_one(join& mine) {
  mine.offered_to_->call_one();
  return true;
}
[[gnu::noinline]] void join::make_next(frame* self) {
  WEFT_JUMP_TO(static_cast<join&>(*static_cast<boundary*>(self)).next_made());
}

// Where to go on: in the next child that can be made, or in the parent. Null: the parent waits.
[[gnu::noinline]] std::coroutine_handle<> join::next_made() noexcept {
  while (begun_ != count_) {
    if (offered_to_ != nullptr) {
      auto& forks = offered_to_->forks;
      if (!forks.pop(*this) && !forks.pop_stored(*this)) return wait_for_others();
    }
    const std::uint32_t index = begun_;
    begun_ = index + 1;
    offered_to_ = nullptr;
    if (begun_ != count_) offer_rest();
    if (const std::coroutine_handle<> child = make(index)) return lend_made(child);
  }
  owner->top = continuation;
  return continuation;
}

}  // namespace weft::detail
