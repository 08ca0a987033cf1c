#include <weft/shared_mutex.hpp>

#include <mutex>
#include <utility>

namespace weft {

using detail::end_stopped;
using detail::root;

namespace {

// Relaxed: under the lock; or a guess, which is looked at again under the lock.
bool is_held(const detail::atomic<std::uintptr_t>& by) noexcept { return by.load(std::memory_order_relaxed) != 0; }
// Relaxed: under the lock, which carries what the last holder did.
void hold(detail::atomic<std::uintptr_t>& it, std::uintptr_t by) noexcept { it.store(by, std::memory_order_relaxed); }

}  // namespace

// Names the holder, if it is held alone or upgradably: those that share it are only counted.
void shared_mutex::waiter_for::tell(const waiter& self, const char* what, detail::wait_subjects& into) noexcept {
  const auto& mine = static_cast<const waiter_for&>(self);
  auto& m = static_cast<const shared_mutex&>(*mine.gate_);
  std::uintptr_t by = m.alone_.load(std::memory_order_relaxed);  // an address, which nobody follows
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

// Whether nobody holds it alone and nobody waits.
bool shared_mutex::is_open_to_all() const noexcept {
  return !is_held(alone_) && line_.empty() && writers_.empty() && upgrading_ == nullptr;
}

// Whether nobody waits who comes before a newcomer.
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

// Called with the lock, which it unlocks.
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
  let_through through;  // those behind it may have waited only for it
  const std::lock_guard guard{m.lock_};
  m.line_of(mine.how_).remove(mine);
  m.grant(through);
  return detail::on_stop::left;
}

// The waiter of `line` that is let through next: the first one. A select may have several places there, one behind the
// other, and does not hold itself up: of those it is the first that can be granted. Null: the line is empty, or its first
// has to wait, and so have all behind it.
shared_mutex::waiter_for* shared_mutex::next_in(const waiter_line& line) const noexcept {
  const detail::waiter* const first = line.first();
  for (detail::waiter* one = line.first(); one != nullptr && one->whose() == first->whose(); one = one->next)
    if (auto* const mine = static_cast<waiter_for*>(one); is_open(mine->how_)) return mine;
  return nullptr;
}

// Lets the first of `line` through. False: nobody can be.
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

// Called with the lock, which it unlocks.
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

// The mutex of the guard, which may have been unlocked since upgrade() was called.
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
  let_through through;  // waiters that want to share it may have waited behind it
  const std::lock_guard guard{m.lock_};
  if (m.upgrading_ == &self) m.upgrading_ = nullptr;
  m.grant(through);
  return detail::on_stop::left;
}

}  // namespace weft
