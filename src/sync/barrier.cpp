// latch and barrier: waits for a number of arrivals.
#include <weft/barrier.hpp>
#include <weft/latch.hpp>

#include <mutex>

namespace weft {

using detail::end_stopped;
using detail::root;

bool latch::is_open() const noexcept {
  const std::lock_guard guard{lock_};
  return left_ == 0;
}

void latch::count_down(std::size_t by, let_through& through) noexcept {
  WEFT_EXPECTS(by <= left_, "a latch was counted down by more than was left");
  left_ = left_ - by;
  if (left_ == 0) through.add_all(line_);
}

void latch::count_down(std::size_t by) noexcept {
  let_through through;
  const std::lock_guard guard{lock_};
  count_down(by, through);
}

bool latch::awaiter::suspend(root& self) noexcept {
  if (self.sleeper::stop_requested()) return (end_stopped(self), true);
  latch& l = static_cast<latch&>(*gate_);
  let_through through;
  l.lock_.lock();
  l.count_down(arrives_, through);
  if (l.left_ == 0) return (l.lock_.unlock(), false);
  l.gate::wait(self, *this);
  return true;
}

bool latch::awaiter::done_at_once(const root& self) noexcept {
  if (self.sleeper::stop_requested()) return false;
  latch& l = static_cast<latch&>(*gate_);
  let_through through;
  const std::lock_guard guard{l.lock_};
  if (l.left_ != arrives_) return false;
  l.count_down(arrives_, through);
  return true;
}

// Lets all that have arrived through. A waiter that a stop has claimed, but that has not left the line yet, has arrived: it
// passes, and ends stopped at its next wait.
void barrier::pass(let_through& through, bool tells_last) noexcept {
  arrived_ = 0;
  while (auto* one = static_cast<awaiter*>(line_.pop())) {
    one->last_ = tells_last && line_.empty();
    if (!through.add(*one)) one->finish();  // the stopper has claimed it, and waits for the lock to end it
  }
}

void barrier::drop() noexcept {
  let_through through;
  const std::lock_guard guard{lock_};
  WEFT_EXPECTS(parties_ > arrived_, "a party of a barrier was dropped that has arrived already, or never was");
  parties_ = parties_ - 1;
  if (parties_ == arrived_ && arrived_ != 0) pass(through, true);
}

bool barrier::awaiter::suspend(root& self) noexcept {
  if (self.sleeper::stop_requested()) return (end_stopped(self), true);
  barrier& b = static_cast<barrier&>(*gate_);
  let_through through;
  b.lock_.lock();
  b.arrived_ = b.arrived_ + 1;
  if (b.arrived_ == b.parties_) {
    last_ = true;
    b.pass(through, false);
    b.lock_.unlock();
    return false;
  }
  WEFT_EXPECTS(b.arrived_ < b.parties_, "more came to a barrier than it has parties");
  b.line_.push(*this);
  ++b.waits_;
  if (self.park(*this)) return (b.lock_.unlock(), true);
  b.line_.remove(*this);
  b.arrived_ = b.arrived_ - 1;
  b.lock_.unlock();
  end_stopped(self);
  return true;
}

bool barrier::awaiter::seems_ready() const noexcept {
  const auto& b = static_cast<const barrier&>(*gate_);
  return b.arrived_.peek() + 1 == b.parties_.peek();
}

bool barrier::awaiter::done_at_once(const root& self) noexcept {
  if (self.sleeper::stop_requested()) return false;
  barrier& b = static_cast<barrier&>(*gate_);
  let_through through;
  const std::lock_guard guard{b.lock_};
  if (b.arrived_ + 1 != b.parties_) return false;
  last_ = true;
  b.pass(through, false);
  return true;
}

detail::on_stop barrier::awaiter::leave(detail::waiter& self) noexcept {
  auto& mine = static_cast<awaiter&>(self);
  barrier& b = static_cast<barrier&>(*mine.gate_);
  const std::lock_guard guard{b.lock_};
  if (!b.line_.remove(mine)) return detail::on_stop::forwarded;  // its phase is over, and pass() has ended this wait
  b.arrived_ = b.arrived_ - 1;
  return detail::on_stop::left;
}

}  // namespace weft
