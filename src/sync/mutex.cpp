#include <weft/sync.hpp>

#include <mutex>

namespace weft {

using detail::end_stopped;
using detail::root;

mutex::~mutex() {
  const std::uintptr_t found =
      state_.load(std::memory_order_relaxed);  // who had it has given it back, or comes too late
  WEFT_EXPECTS((found & called) == 0, "a mutex was destroyed while somebody waits in it");
  if (!is_held(found)) [[likely]]
    return;
  const std::lock_guard guard{lock_};
  WEFT_EXPECTS(line_.empty(), "a mutex was destroyed while somebody waits in it");
  WEFT_EXPECTS(false, "a mutex was destroyed while somebody holds it");
}

// It has changed since the look: taken, given back, or marked.
bool mutex::try_take_again(std::uintptr_t by) noexcept {
  std::uintptr_t found = state_.load(std::memory_order_relaxed);  // a guess: the exchange decides
  while (!is_held(found))
    if (state_.compare_exchange_weak(found, found | by, std::memory_order_acquire,  // <- held
                                     std::memory_order_relaxed))                    // tried again
      return true;
  return false;
}

// Marked, or about to be.
void mutex::unlock_marked() noexcept {
  std::uintptr_t found = state_.load(std::memory_order_relaxed);  // as in try_take_again()
  do {
    if ((found & marks) == awaited) return hand_on();
  } while (!state_.compare_exchange_weak(found, found & marks, std::memory_order_release,  // -> held
                                         std::memory_order_relaxed));  // tried again
}

// Under the lock. True: it was free, and is `by`'s. False: it is marked as awaited. In both cases it is so without a mark.
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

// By who has claimed the wait.
void mutex::awaiter::go_and_take() noexcept {
  resume = called_to_take;
  self_->top = handle();
}

void mutex::awaiter::called_to_take(frame* frame) {
  auto& mine = static_cast<awaiter&>(*frame);
  mutex& m = mine.of();
  root& self = *mine.self_;
  self.top = mine.then_;
  m.lock_.lock();
  if (m.take_or_mark(detail::holder::is(&self), called)) {
    m.lock_.unlock();
    return detail::run_next(self.top);
  }
  mine.overtaken_ = true;
  m.line_.push_first(mine);
  m.wait_on(self, mine, m.line_);
}

void mutex::awaiter::tell(const waiter& self, const char* what, detail::wait_subjects& into) noexcept {
  auto& m = static_cast<const mutex&>(*static_cast<const awaiter&>(self).gate_);
  const std::uintptr_t by = m.state_.load(std::memory_order_relaxed) & ~marks;  // an address, which leads nowhere
  into.add(what, &m, detail::holder::of(by));
}

// By the holder, where somebody may be in line and nobody was called.
void mutex::hand_on() noexcept {
  let_through through;
  const std::lock_guard guard{lock_};
  while (auto* one = static_cast<awaiter*>(line_.pop()))
    if (through.add(*one)) {
      const std::uintptr_t others = line_.empty() ? 0 : awaited;
      if (one->overtaken_)  // Relaxed: the lock orders the mark, the wake-up all else.
        return state_.store(detail::holder::is(one->whose()) | others, std::memory_order_relaxed);
      one->go_and_take();
      return state_.store(called | others, std::memory_order_release);  // -> held
    }
  state_.store(free, std::memory_order_release);  // -> held
}

}  // namespace weft
