// Long because it has all of the family, as its header.
#include <weft/sync.hpp>

#include <mutex>
#include <weft/detail/core/async_stack.hpp>
#include <weft/with.hpp>

#include "core/claim.hpp"

namespace weft {
namespace detail {

gate::~gate() {
  const std::lock_guard guard{lock_};
  WEFT_EXPECTS(line_.empty(), "a mutex, semaphore or the like was destroyed while somebody waits in it");
}

std::size_t length(const waiter_line& line) noexcept {
  std::size_t count = 0;
  for (const waiter* one = line.first(); one != nullptr; one = one->next) ++count;
  return count;
}

sync_stats gate::stats() const noexcept {
  const std::lock_guard guard{lock_};
  return {length(line_), waits_};
}

void gate::wait(root& self, gate_waiter& one) noexcept { wait(self, one, line_); }

void gate::wait(root& self, gate_waiter& one, waiter_line& line) noexcept {
  line.push(one);
  ++waits_;
  wait_on(self, one, line);
}

void gate::wait_on(root& self, gate_waiter& one, waiter_line& line) noexcept {
  if (claim_here::park(self, one)) [[likely]]
    return lock_.unlock();
  line.remove(one);
  lock_.unlock();
  end_stopped(self);
}

on_stop gate_waiter::leave_line(waiter& self) noexcept {
  gate& from = *static_cast<gate_waiter&>(self).gate_;
  const std::lock_guard guard{from.lock_};
  from.line_.remove(self);
  return on_stop::left;
}

std::size_t gate_waiter::leave_together(waiter* const* those, std::size_t count) noexcept {
  const auto gate_of = [](waiter& one) noexcept { return static_cast<gate_waiter&>(one).gate_; };
  gate& from = *gate_of(*those[0]);
  const std::lock_guard guard{from.lock_};
  std::size_t left = 0;
  do from.line_.remove(*those[left]);
  while (++left != count && stop_here::is_like(*those[left], *those[0]) && gate_of(*those[left]) == &from);
  return left;
}

}  // namespace detail

using detail::end_stopped;
using detail::root;

// ---- mutex ----------------------------------------------------------------------------------------------------------------

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

// ---- shared_mutex -----------------------------------------------------------------------------------------------------------

namespace {

// Under the lock, or for a guess.
bool is_held(const detail::atomic<std::uintptr_t>& by) noexcept { return by.load(std::memory_order_relaxed) != 0; }
void hold(detail::atomic<std::uintptr_t>& it, std::uintptr_t by) noexcept { it.store(by, std::memory_order_relaxed); }

}  // namespace

// Those that share it are counted, not known.
void shared_mutex::waiter_for::tell(const waiter& self, const char* what, detail::wait_subjects& into) noexcept {
  const auto& mine = static_cast<const waiter_for&>(self);
  auto& m = static_cast<const shared_mutex&>(*mine.gate_);
  std::uintptr_t by = m.alone_.load(std::memory_order_relaxed);  // as of a mutex
  if (by == 0 && mine.how_ != mode::shared) by = m.upgradable_.load(std::memory_order_relaxed);
  into.add(what, &m, detail::holder::of(by));
}

shared_mutex::~shared_mutex() {
  const std::lock_guard guard{lock_};
  WEFT_EXPECTS(line_.empty() && writers_.empty() && upgrading_ == nullptr,
               "a shared_mutex was destroyed while somebody waits in it");
  WEFT_EXPECTS(sharing_ == 0 && !is_held(alone_) && !is_held(upgradable_),
               "a shared_mutex was destroyed while somebody holds it");
}

sync_stats shared_mutex::stats() const noexcept {
  const std::lock_guard guard{lock_};
  return {detail::length(line_) + detail::length(writers_) + (upgrading_ != nullptr ? 1 : 0), waits_};
}

bool shared_mutex::is_open(mode how) const noexcept {
  if (is_held(alone_)) return false;
  switch (how) {
    case mode::shared: return upgrading_ == nullptr;
    case mode::upgradable: return upgrading_ == nullptr && !is_held(upgradable_);
    case mode::alone: break;
  }
  return sharing_ == 0 && !is_held(upgradable_);
}

// Nobody has it alone, or waits.
bool shared_mutex::is_open_to_all() const noexcept {
  return !is_held(alone_) && line_.empty() && writers_.empty() && upgrading_ == nullptr;
}

// Nobody waits who would go before.
bool shared_mutex::goes_first(mode how) const noexcept {
  return writers_.empty() && (line_.empty() || (options_.prefer_writers && how == mode::alone));
}

void shared_mutex::take(mode how, std::uintptr_t by) noexcept {
  switch (how) {
    case mode::shared: ++sharing_; break;
    case mode::upgradable: hold(upgradable_, by); break;
    case mode::alone: hold(alone_, by); break;
  }
}

bool shared_mutex::try_take(mode how) noexcept {
  const std::lock_guard guard{lock_};
  if (!goes_first(how) || !is_open(how)) return false;
  take(how, detail::holder::somebody);
  return true;
}

bool shared_mutex::waiter_for::suspend(root& self) noexcept {
  if (self.sleeper::stop_requested()) [[unlikely]]
    return (end_stopped(self), true);
  shared_mutex& m = of();
  m.lock_.lock();
  if (how_ == mode::shared && m.is_open_to_all()) [[likely]] {
    ++m.sharing_;
    m.lock_.unlock();
    return false;
  }
  return take_or_wait(self);
}

bool shared_mutex::waiter_for::seems_ready() const noexcept {
  const auto& m = static_cast<const shared_mutex&>(*gate_);
  return !is_held(m.alone_) && (how_ == mode::shared || !is_held(m.upgradable_));
}

bool shared_mutex::waiter_for::done_at_once(const root& self) noexcept {
  if (self.sleeper::stop_requested()) return false;
  const std::lock_guard guard{of().lock_};
  return try_locked(detail::holder::is(&self));
}

bool shared_mutex::waiter_for::try_locked(std::uintptr_t by) noexcept {
  shared_mutex& m = of();
  if (!m.goes_first(how_) || !m.is_open(how_)) return false;
  m.take(how_, by);
  return true;
}

// With the lock, which it gives back.
[[gnu::noinline]] bool shared_mutex::waiter_for::take_or_wait(root& self) noexcept {
  shared_mutex& m = of();
  if (m.goes_first(how_) && m.is_open(how_)) {
    m.take(how_, detail::holder::is(&self));
    m.lock_.unlock();
    return false;
  }
  m.wait(self, *this, m.line_of(how_));
  return true;
}

detail::on_stop shared_mutex::waiter_for::leave(detail::waiter& self) noexcept {
  auto& mine = static_cast<waiter_for&>(self);
  shared_mutex& m = mine.of();
  let_through through;  // those behind it may have waited for it alone
  const std::lock_guard guard{m.lock_};
  m.line_of(mine.how_).remove(mine);
  m.grant(through);
  return detail::on_stop::left;
}

// Who is let through next: the first of `line`; of a select, which may have several places in it, one behind the other, the
// first that is open, since it does not hold itself up. Null: it has to wait, and all behind it, or there is none.
shared_mutex::waiter_for* shared_mutex::next_in(const waiter_line& line) const noexcept {
  const detail::waiter* const first = line.first();
  for (detail::waiter* one = line.first(); one != nullptr && one->whose() == first->whose(); one = one->next)
    if (auto* const mine = static_cast<waiter_for*>(one); is_open(mine->how_)) return mine;
  return nullptr;
}

// False: nobody of `line` is let through.
bool shared_mutex::grant_first(waiter_line& line, let_through& through) noexcept {
  waiter_for* const one = next_in(line);
  if (one == nullptr) return false;
  const mode how = one->how_;
  line.remove(*one);
  if (through.add(*one)) take(how, detail::holder::is(one->whose()));
  return true;
}

void shared_mutex::grant(let_through& through) noexcept {
  if (upgrading_ != nullptr && sharing_ == 0) {
    detail::waiter& one = *std::exchange(upgrading_, nullptr);
    if (through.add(one)) {
      hold(upgradable_, 0);
      hold(alone_, detail::holder::is(one.whose()));
    }
  }
  while (grant_first(writers_, through)) {
  }
  while ((writers_.empty() || (!line_.empty() && writers_.is_all_of(*line_.first()))) && grant_first(line_, through)) {
  }
}

void shared_mutex::release(mode how) noexcept {
  lock_.lock();
  switch (how) {
    case mode::shared: --sharing_; break;
    case mode::upgradable: hold(upgradable_, 0); break;
    case mode::alone: hold(alone_, 0); break;
  }
  if (line_.empty() && writers_.empty() && upgrading_ == nullptr) [[likely]]
    return lock_.unlock();
  grant_and_unlock();
}

// With the lock, which it gives back.
[[gnu::noinline]] void shared_mutex::grant_and_unlock() noexcept {
  let_through through;
  const std::lock_guard guard{lock_, std::adopt_lock};
  grant(through);
}

void shared_mutex::downgrade(mode from) noexcept {
  let_through through;
  const std::lock_guard guard{lock_};
  hold(from == mode::alone ? alone_ : upgradable_, 0);
  ++sharing_;
  grant(through);
}

shared_mutex::upgrade_awaiter::upgrade_awaiter(upgradable_guard& from, std::size_t) noexcept
    : gate_waiter{owned_by(from), type}, from_{from} {}

// Which may have given it back since it was told to upgrade.
shared_mutex& shared_mutex::upgrade_awaiter::owned_by(upgradable_guard& from) noexcept {
  WEFT_EXPECTS(from.of_ != nullptr, "a guard that owns no mutex was upgraded");
  return *from.of_;
}

bool shared_mutex::upgrade_awaiter::suspend(root& self) noexcept {
  if (self.sleeper::stop_requested()) return (end_stopped(self), true);
  shared_mutex& m = of();
  m.lock_.lock();
  if (m.sharing_ == 0) {
    hold(m.upgradable_, 0);
    hold(m.alone_, detail::holder::is(&self));
    m.lock_.unlock();
    return false;
  }
  m.upgrading_ = this;
  ++m.waits_;
  if (self.park(*this)) return (m.lock_.unlock(), true);
  m.upgrading_ = nullptr;
  m.lock_.unlock();
  end_stopped(self);
  return true;
}

bool shared_mutex::upgrade_awaiter::done_at_once(const root& self) noexcept {
  if (self.sleeper::stop_requested()) return false;
  const std::lock_guard guard{of().lock_};
  return try_locked(detail::holder::is(&self));
}

bool shared_mutex::upgrade_awaiter::try_locked(std::uintptr_t by) noexcept {
  shared_mutex& m = of();
  if (m.sharing_ != 0) return false;
  hold(m.upgradable_, 0);
  hold(m.alone_, by);
  return true;
}

detail::on_stop shared_mutex::upgrade_awaiter::leave(detail::waiter& self) noexcept {
  shared_mutex& m = static_cast<upgrade_awaiter&>(self).of();
  let_through through;  // those that would share it waited behind it
  const std::lock_guard guard{m.lock_};
  if (m.upgrading_ == &self) m.upgrading_ = nullptr;
  m.grant(through);
  return detail::on_stop::left;
}

// ---- semaphore --------------------------------------------------------------------------------------------------------------

std::size_t semaphore::available() const noexcept {
  const std::lock_guard guard{lock_};
  return available_;
}

semaphore::permit semaphore::try_acquire(std::size_t count) noexcept {
  const std::lock_guard guard{lock_};
  if (!line_.empty() || available_ < count) return {};
  available_ = available_ - count;
  return permit{this, count};
}

void semaphore::release(std::size_t count) noexcept {
  lock_.lock();
  WEFT_EXPECTS(count <= std::size_t(-1) - available_, "a semaphore was given more permits than it can count");
  available_ = available_ + count;
  if (line_.empty()) [[likely]]
    return lock_.unlock();
  let_through through;
  const std::lock_guard guard{lock_, std::adopt_lock};
  grant(through);
}

// As shared_mutex::next_in.
semaphore::awaiter* semaphore::next() const noexcept {
  const detail::waiter* const first = line_.first();
  for (detail::waiter* one = line_.first(); one != nullptr && one->whose() == first->whose(); one = one->next)
    if (auto* const mine = static_cast<awaiter*>(one); mine->count_ <= available_) return mine;
  return nullptr;
}

void semaphore::grant(let_through& through) noexcept {
  while (awaiter* const one = next()) {
    const std::size_t count = one->count_;
    line_.remove(*one);
    if (through.add(*one)) available_ = available_ - count;
  }
}

bool semaphore::awaiter::suspend(root& self) noexcept {
  if (self.sleeper::stop_requested()) return (end_stopped(self), true);
  semaphore& s = of();
  s.lock_.lock();
  if (s.line_.empty() && s.available_ >= count_) {
    s.available_ = s.available_ - count_;
    s.lock_.unlock();
    return false;
  }
  s.wait(self, *this);
  return true;
}

bool semaphore::awaiter::done_at_once(const root& self) noexcept {
  if (self.sleeper::stop_requested()) return false;
  const std::lock_guard guard{of().lock_};
  return try_locked(detail::holder::is(&self));
}

bool semaphore::awaiter::try_locked(std::uintptr_t) noexcept {
  semaphore& s = of();
  if (!s.line_.empty() || s.available_ < count_) return false;
  s.available_ = s.available_ - count_;
  return true;
}

detail::on_stop semaphore::awaiter::leave(detail::waiter& self) noexcept {
  auto& mine = static_cast<awaiter&>(self);
  semaphore& s = mine.of();
  let_through through;  // it may have wanted many, and held up those that want few
  const std::lock_guard guard{s.lock_};
  s.line_.remove(mine);
  s.grant(through);
  return detail::on_stop::left;
}

// ---- events, latch, barrier ---------------------------------------------------------------------------------------------------

void event::set() noexcept {
  let_through through;
  const std::lock_guard guard{lock_};
  set_.store(true, std::memory_order_release);  // -> set
  through.add_all(line_);
}

void event::reset() noexcept {
  const std::lock_guard guard{lock_};
  set_.store(false, std::memory_order_relaxed);  // nobody learns anything from this
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

// One that a stop has claimed, but that has not left yet, has arrived: it passes, and ends stopped where it waits next.
void barrier::pass(let_through& through, bool tells_last) noexcept {
  arrived_ = 0;
  while (auto* one = static_cast<awaiter*>(line_.pop())) {
    one->last_ = tells_last && line_.empty();
    if (!through.add(*one)) one->finish();  // carried out by the stopper, which waits for the lock
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
  if (!b.line_.remove(mine)) return detail::on_stop::forwarded;  // its phase has passed, and has ended this wait
  b.arrived_ = b.arrived_ - 1;
  return detail::on_stop::left;
}

// ---- once -------------------------------------------------------------------------------------------------------------------

// By who is about to wait. No frame is taken for one that lay there before and was at it: that has written `open`, or who
// came later something else, before its memory was used again.
void once::expect_others(std::coroutine_handle<> caller) const noexcept {
  const std::uintptr_t at_it = state_.load(std::memory_order_relaxed);  // as declared
  if (at_it <= done) return;
  const root& self = *detail::current_root();
  for (detail::stack_walk walk{self, caller}; walk.next() != nullptr && walk.is_in(self);)
    WEFT_EXPECTS(walk.last_frame() != at_it,
                 "the function of a once called that once, and would wait for itself: it has not been done yet");
}

// ---- condition_variable -------------------------------------------------------------------------------------------------------

// In line before the mutex is free, so that no notification is missed.
bool condition_variable::awaiter::suspend(root& self) noexcept {
  if (self.sleeper::stop_requested()) return (held_.unlock(), end_stopped(self), true);
  mutex::guard held = std::move(held_);  // `this` may be gone when the lock is
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
  held.unlock();  // whom that wakes may run here and now, so it comes before the run loop is told where to go on
  if (!waits) end_stopped(self);
  return true;
}

task<> condition_variable::wait(mutex::guard& held) {
  WEFT_EXPECTS(static_cast<bool>(held), "a condition_variable waits with a guard that owns its mutex");
  mutex& m = *held.of_;
  co_await detail::at_gate<awaiter, condition_variable, mutex::guard*>{*this, &held};
  const detail::shield_guard shielded;  // a notification is not lost to a stop
  held = co_await m.lock();
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
