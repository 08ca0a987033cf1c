#include <weft/semaphore.hpp>

#include <mutex>

namespace weft {

using detail::end_stopped;
using detail::root;

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

// The waiter that is granted its permits next: the first in line; of a select with several places there, the first for
// which there are enough. Null: none.
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
  let_through through;  // it may have held up waiters that want fewer permits
  const std::lock_guard guard{s.lock_};
  s.line_.remove(mine);
  s.grant(through);
  return detail::on_stop::left;
}

}  // namespace weft
