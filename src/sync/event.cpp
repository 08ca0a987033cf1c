// event, which stays set until it is reset, and auto_event, which lets one waiter through.
#include <weft/event.hpp>

#include <mutex>

namespace weft {

using detail::end_stopped;
using detail::root;

void event::set() noexcept {
  let_through through;
  const std::lock_guard guard{lock_};
  set_.store(true, std::memory_order_release);  // -> set
  through.add_all(line_);
}

void event::reset() noexcept {
  const std::lock_guard guard{lock_};
  set_.store(false, std::memory_order_relaxed);  // it publishes nothing
}

bool event::awaiter::suspend(root& self) noexcept {
  if (self.sleeper::stop_requested()) return (end_stopped(self), true);
  event& e = static_cast<event&>(*gate_);
  if (e.is_set()) return false;
  e.lock_.lock();
  if (e.is_set()) return (e.lock_.unlock(), false);
  e.gate::wait(self, *this);
  return true;
}

void auto_event::set() noexcept {
  let_through through;
  const std::lock_guard guard{lock_};
  while (detail::waiter* one = line_.pop())
    if (through.add(*one)) return;
  set_ = true;
}

bool auto_event::awaiter::suspend(root& self) noexcept {
  if (self.sleeper::stop_requested()) return (end_stopped(self), true);
  auto_event& e = static_cast<auto_event&>(*gate_);
  e.lock_.lock();
  if (e.set_) return (e.set_ = false, e.lock_.unlock(), false);
  e.gate::wait(self, *this);
  return true;
}

bool auto_event::awaiter::done_at_once(const root& self) noexcept {
  if (self.sleeper::stop_requested()) return false;
  const std::lock_guard guard{static_cast<auto_event&>(*gate_).lock_};
  return try_locked(detail::holder::is(&self));
}

bool auto_event::awaiter::try_locked(std::uintptr_t) noexcept {
  auto_event& e = static_cast<auto_event&>(*gate_);
  if (!e.set_) return false;
  e.set_ = false;
  return true;
}

}  // namespace weft
