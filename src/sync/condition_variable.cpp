#include <weft/condition_variable.hpp>

#include <mutex>
#include <weft/with.hpp>

namespace weft {

using detail::end_stopped;
using detail::root;

// Gets in line before it unlocks the mutex, so that no notification is missed.
bool condition_variable::awaiter::suspend(root& self) noexcept {
  if (self.sleeper::stop_requested()) return (held_.unlock(), end_stopped(self), true);
  mutex::guard held{held_.release()};  // `this` may be gone once the lock is free
  auto& changed = static_cast<condition_variable&>(*gate_);
  changed.lock_.lock();
  const auto* const first = static_cast<const awaiter*>(changed.line_.first());
  WEFT_EXPECTS(
      first == nullptr || first->with_ == with_,
      "a condition_variable was waited on with two mutexes: all that wait hold the same one, which guards what "
      "they wait for");
  changed.line_.push(*this);
  ++changed.waits_;
  const bool waits = self.park(*this);
  if (!waits) changed.line_.remove(*this);
  changed.lock_.unlock();
  held.unlock();  // before the run loop is told where to go on: the task that this wakes may run here and now
  if (!waits) end_stopped(self);
  return true;
}

task<> condition_variable::wait(mutex::guard& held) {
  WEFT_EXPECTS(static_cast<bool>(held), "a condition_variable waits with a guard that owns its mutex");
  mutex& m = *held.of_;
  co_await detail::at_gate<awaiter, condition_variable, mutex::guard*>{*this, &held};
  const detail::shield_guard shielded;  // a notification is not lost to a stop
  mutex::guard again = co_await m.lock();
  held.of_ = again.release();  // not a move, which would forget the holder
}

void condition_variable::notify_one() noexcept {
  let_through through;
  const std::lock_guard guard{lock_};
  while (detail::waiter* one = line_.pop())
    if (through.add(*one)) return;
}

void condition_variable::notify_all() noexcept {
  let_through through;
  const std::lock_guard guard{lock_};
  through.add_all(line_);
}

}  // namespace weft
