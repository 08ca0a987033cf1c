// A barging mutex: unlocking it wakes the first in line, which takes the mutex if nobody has taken it meanwhile. A waiter
// that was overtaken once is handed the mutex by the next unlock.
#include <weft/mutex.hpp>

#include <mutex>

namespace weft {

using detail::end_stopped;
using detail::root;

mutex::~mutex() {
  const std::uintptr_t found = state_.load(std::memory_order_relaxed);  // the last holder is done, or comes too late
  WEFT_EXPECTS((found & woken) == 0, "a mutex was destroyed while somebody waits in it");
  if (!is_held(found)) [[likely]]
    return;
  const std::lock_guard guard{lock_};
  WEFT_EXPECTS(line_.empty(), "a mutex was destroyed while somebody waits in it");
  WEFT_EXPECTS(false, "a mutex was destroyed while somebody holds it");
}

// The first look was out of date: it was taken, unlocked or marked since.
bool mutex::try_take_again(std::uintptr_t by) noexcept {
  std::uintptr_t found = state_.load(std::memory_order_relaxed);  // a guess: the exchange decides
  while (!is_held(found))
    if (state_.compare_exchange_weak(found, found | by, std::memory_order_acquire,  // <- held
                                     std::memory_order_relaxed))                    // tried again
      return true;
  return false;
}

// By the holder, whose guard is moved. Only marks are set and cleared meanwhile.
void mutex::forget_holder() noexcept {
  std::uintptr_t found = state_.load(std::memory_order_relaxed);  // a guess: the exchange decides
  while (!state_.compare_exchange_weak(found, (found & marks) | detail::holder::somebody,
                                       std::memory_order_relaxed,     // it is held before and after
                                       std::memory_order_relaxed)) {  // tried again
  }
}

// Unlocks it where it is marked, or was while unlock() looked.
void mutex::unlock_marked() noexcept {
  std::uintptr_t found = state_.load(std::memory_order_relaxed);  // a guess: the exchange decides
  do {
    if ((found & marks) == awaited) return wake_next();
  } while (!state_.compare_exchange_weak(found, found & marks, std::memory_order_release,  // -> held
                                         std::memory_order_relaxed));  // tried again
}

// Under the lock. Takes it for `by`, if it is free; else marks it as awaited. True: it was taken. In both cases the marks in
// `without` are cleared.
bool mutex::take_or_mark(std::uintptr_t by, std::uintptr_t without) noexcept {
  static_assert(alignof(detail::sleeper) > marks, "the marks are below the address of who took it");
  std::uintptr_t found = state_.load(std::memory_order_relaxed);  // a guess: the exchange decides
  for (;;) {
    const std::uintptr_t rest = found & ~without;
    if (state_.compare_exchange_weak(found, is_held(found) ? rest | awaited : rest | by,
                                     std::memory_order_acquire,   // <- held
                                     std::memory_order_relaxed))  // tried again
      return !is_held(found);
  }
}

bool mutex::awaiter::suspend(root& self) noexcept {
  if (self.sleeper::stop_requested()) return (end_stopped(self), true);
  mutex& m = of();
  m.lock_.lock();
  if (m.take_or_mark(detail::holder::is(&self), 0)) return (m.lock_.unlock(), false);
  self_ = &self;
  then_ = self.top;
  overtaken_ = false;
  m.wait(self, *this);
  return true;
}

// By whoever has claimed the wait. It goes on in retry(), not in the task that waits.
void mutex::awaiter::wake_to_retry() noexcept {
  resume = retry;
  self_->top = handle();
}

// By a waiter that was woken without the mutex: takes it, or waits again, as the first in line.
void mutex::awaiter::retry(frame* frame) {
  auto& mine = static_cast<awaiter&>(*frame);
  mutex& m = mine.of();
  root& self = *mine.self_;
  self.top = mine.then_;
  m.lock_.lock();
  if (m.take_or_mark(detail::holder::is(&self), woken)) {
    m.lock_.unlock();
    return detail::run_next(self.top);
  }
  mine.overtaken_ = true;
  m.line_.push_first(mine);
  m.wait_on(self, mine, m.line_);
}

void mutex::awaiter::tell(const waiter& self, const char* what, detail::wait_subjects& into) noexcept {
  auto& m = static_cast<const mutex&>(*static_cast<const awaiter&>(self).gate_);
  const std::uintptr_t by = m.state_.load(std::memory_order_relaxed) & ~marks;  // an address, which nobody follows
  into.add(what, &m, detail::holder::of(by));
}

// Unlocks it where somebody may be in line and nobody was woken: wakes the first in line, or hands it the mutex if it was
// overtaken.
void mutex::wake_next() noexcept {
  let_through through;
  const std::lock_guard guard{lock_};
  while (auto* one = static_cast<awaiter*>(line_.pop()))
    if (through.add(*one)) {
      const std::uintptr_t others = line_.empty() ? 0 : awaited;
      if (one->overtaken_) return transition_to_held_by(detail::holder::is(one->whose()), others);
      one->wake_to_retry();
      return transition_to_free(woken | others);
    }
  transition_to_free(0);
}

// Under the lock, by the holder, to the waiter that it has claimed.
inline void mutex::transition_to_held_by(std::uintptr_t next, std::uintptr_t marked) noexcept {
  state_.store(next | marked, std::memory_order_relaxed);  // its wake-up carries what the holder did
}

// Under the lock, by the holder.
inline void mutex::transition_to_free(std::uintptr_t marked) noexcept {
  state_.store(free | marked, std::memory_order_release);  // -> held
}

}  // namespace weft
