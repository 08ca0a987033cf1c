#include <weft/channel.hpp>

#include <mutex>

#include "detail/claim.hpp"
#include "detail/lock_here.hpp"

namespace weft {
namespace detail {

channel_core::~channel_core() {
  const std::lock_guard guard{lock};
  WEFT_EXPECTS(senders.empty() && receivers.empty(), "a channel was destroyed while somebody waits in it");
}

sync_stats channel_core::stats() const noexcept {
  const std::lock_guard guard{lock};
  return {length(senders) + length(receivers), waits};
}

bool channel_core::is_closed() const noexcept {
  const std::lock_guard guard{lock};
  return closed;
}

namespace {

// Those whom a stop has claimed are out of the line, and forgotten.
inline channel_waiter* first_claimed(waiter_line& line) noexcept {
  while (auto* one = static_cast<channel_waiter*>(line.pop()))
    if (claim_here::try_claim(*one)) [[likely]] {
      if (one->select != nullptr) one->select->chosen = one->index;
      return one;
    }
  return nullptr;
}

}  // namespace

channel_waiter* channel_core::pop_claimed(waiter_line& line) noexcept { return first_claimed(line); }

channel_waiter* channel_core::lock_or_claim(waiter_line& line) noexcept {
  lock.lock_on(this_worker());
  if (line.empty()) return nullptr;
  changes = changes + 1;
  channel_waiter* const one = first_claimed(line);
  if (one != nullptr) [[likely]]
    lock.unlock();
  return one;
}

void channel_core::close() noexcept {
  let_through through;
  const std::lock_guard guard{lock};
  closed = true;
  for (waiter_line* line : {&receivers, &senders})
    while (channel_waiter* one = pop(*line)) {
      one->closed = true;
      through.push(*one);
    }
}

[[gnu::always_inline]] inline void channel_core::wait_here(root& self, channel_waiter& one,
                                                           waiter_line& line) noexcept {
  line.push(one);
  ++waits;
  if (claim_here::park(self, one)) [[likely]]
    return lock.unlock();
  end_wait_stopped(self, one, line);
}

WEFT_SELDOM void channel_core::end_wait_stopped(root& self, channel_waiter& one, waiter_line& line) noexcept {
  line.remove(one);
  lock.unlock();
  end_stopped(self);
}

void channel_core::wait(root& self, channel_waiter& one, waiter_line& line) noexcept { wait_here(self, one, line); }

bool channel_core::lock_or_wait(root& self, channel_waiter& one, const peeked<std::uint32_t>& values) noexcept {
  lock.lock_on(this_worker());
  if (values != 0 || !senders.empty() || closed) return false;
  wait_here(self, one, receivers);
  return true;
}

void channel_core::leave(waiter& one, waiter_line& line) noexcept {
  const std::lock_guard guard{lock};
  line.remove(one);
}

}  // namespace detail
}  // namespace weft
