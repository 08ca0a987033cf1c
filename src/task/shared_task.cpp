#include <weft/shared_task.hpp>

#include <mutex>

namespace weft::detail {

shared_root::shared_root(std::coroutine_handle<> outermost, promise_base& promise) noexcept
    : top_root{root_kind::shared, &own_env_, ended} {
  adopt(outermost, promise);
}

// Under the lock, or before other threads know of the task.
inline void shared_root::transition_to_running() noexcept {
  phase_.store(phase::running, std::memory_order_relaxed);  // carries nothing: `ended` has the edge
  list();
}

bool shared_root::wait(waiter& one, root& self) noexcept {
  std::unique_lock guard{lock_};
  const phase seen = phase_.load(std::memory_order_relaxed);  // under the lock
  if (seen == phase::ended) return false;
  if (&self == this) [[unlikely]] {
    guard.unlock();
    fail("a shared_task awaited itself, by a copy of its own handle: it would never end");
  }
  if (seen == phase::stopped || !self.park(one)) {
    guard.unlock();
    end_stopped(self);
    return true;
  }
  line_.push(one);
  if (seen != phase::unstarted) return true;
  transition_to_running();
  retain();
  if (self.env != nullptr)
    own_env_ = weft::env{.executor = blocking_root::lasting_executor(self), .clock = self.env->clock};
  guard.unlock();  // a stop may end `self` from here on
  run_next(top, *this);
  return true;
}

void shared_root::start_here() noexcept {
  runs_for_nobody_ = true;
  transition_to_running();
  retain();
  run_here();
}

on_stop shared_root::leave(waiter& one) noexcept {
  {
    std::lock_guard guard{lock_};
    if (!line_.remove(one)) return on_stop::left;  // taken out by ended(), which could not claim it
    if (!line_.empty() || joiner_ != nullptr || runs_for_nobody_) return on_stop::left;
    joiner_ = &one;
  }
  request_stop();
  return on_stop::forwarded;
}

void shared_root::ended(root& self, bool stopped) noexcept {
  auto& mine = static_cast<shared_root&>(self);
  const wake_up how = stopped ? wake_up::stopped : wake_up::completed;
  if (!stopped) mine.settle();
  waiter_line awake;
  waiter* joiner;
  {
    std::lock_guard guard{mine.lock_};
    mine.phase_.store(stopped ? phase::stopped : phase::ended, std::memory_order_release);  // -> ended
    while (waiter* one = mine.line_.pop())
      if (one->try_claim()) awake.push(*one);
    joiner = mine.joiner_;
  }
  while (waiter* one = awake.pop()) one->wake(how);
  if (joiner != nullptr) joiner->finish(wake_up::stopped);
  if (mine.release()) mine.destroy();
}

}  // namespace weft::detail
