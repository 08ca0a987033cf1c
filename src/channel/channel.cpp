#include <weft/channel.hpp>

#include <functional>
#include <mutex>
#include <weft/detail/channel/select_wait.hpp>

#include "core/claim.hpp"
#include "sync/lock_here.hpp"

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

// Takes the first waiter of a line whose wait it can claim. Waiters that a stop has claimed are taken out and dropped.
inline channel_waiter* first_claimed(waiter_line& line) noexcept {
  do {
    auto* const one = static_cast<channel_waiter*>(line.pop_first());
    if (claim_here::try_claim(*one)) [[likely]] {
      if (one->select != nullptr) one->select->chosen = one->index;
      return one;
    }
  } while (!line.empty());
  return nullptr;
}

// Prefetches what a fiber needs to go on. It waits on a stack that may be in no cache: above its waiter are the callers of
// the wait, up to the fiber itself, below it the saved registers. With thousands of fibers, to load these one after the
// other was most of a round trip.
inline void fetch_around(std::uintptr_t at) noexcept {
  for (std::uintptr_t line = at - 128; line <= at + 384; line += 64)
    __builtin_prefetch(reinterpret_cast<const void*>(line), 1);
}

// The same for the fiber that is served after the next, if they lie at a constant stride, as the last ones did. A processor
// does so by itself for addresses close together, as those of tasks are, but not for stacks in pages far apart.
inline void fetch_fiber(worker& here, const waiter& one) noexcept {
  const auto at = reinterpret_cast<std::uintptr_t>(&one);
  fetch_around(at);
  if (here.channels.served.goes_on_at(at)) fetch_around(at + 2 * here.channels.served.step);
}

}  // namespace

channel_waiter* channel_core::pop_claimed(waiter_line& line) noexcept {
  if (waits_on_stack) fetch_fiber(this_worker(), *line.first());
  return first_claimed(line);
}

channel_waiter* channel_core::lock_or_claim(waiter_line& line) noexcept {
  worker& here = this_worker();
  const std::uintptr_t entrance = lock.enter_on(here);
  if (!line.empty()) [[likely]] {
    changes = changes + 1;
    if (waits_on_stack) fetch_fiber(here, *line.first());
    if (channel_waiter* const one = first_claimed(line); one != nullptr) [[likely]] {
      lock.leave_by(entrance);
      return one;
    }
  }
  lock.keep(entrance);
  return nullptr;
}

void channel_core::close() noexcept {
  let_through through;
  const std::lock_guard guard{lock};
  closed = true;
  for (waiter_line* line : {&receivers, &senders})
    while (channel_waiter* one = pop(*line)) {
      (one->select != nullptr ? one->select->choose_at(*this) : *one).closed = true;
      through.push(*one);
    }
}

// Gets in line, and unlocks the lock that was entered by `entrance`.
[[gnu::always_inline]] inline void channel_core::wait_here(root& self, channel_waiter& one, waiter_line& line,
                                                           std::uintptr_t entrance) noexcept {
  line.push(one);
  ++waits;
  // A fiber itself lies above all that it calls, a coroutine's frame begins below what is in it.
  waits_on_stack = std::less<const void*>{}(&one, std::coroutine_handle<>{self.top}.address());
  if (claim_here::park(self, one)) [[likely]]
    return lock.leave_by(entrance);
  lock.keep(entrance);
  end_wait_stopped(self, one, line);
}

WEFT_SELDOM void channel_core::end_wait_stopped(root& self, channel_waiter& one, waiter_line& line) noexcept {
  line.remove(one);
  lock.unlock();
  end_stopped(self);
}

void channel_core::wait(root& self, channel_waiter& one, waiter_line& line) noexcept {
  wait_here(self, one, line, lock.entrance());
}

bool channel_core::lock_or_wait(root& self, channel_waiter& one, const peeked<std::uint32_t>& values) noexcept {
  const std::uintptr_t entrance = lock.enter_on(this_worker());
  if (values != 0 || !senders.empty() || closed) {
    lock.keep(entrance);
    return false;
  }
  wait_here(self, one, receivers, entrance);
  return true;
}

void channel_core::leave(waiter& one, waiter_line& line) noexcept {
  const std::lock_guard guard{lock};
  changes = changes + 1;
  line.remove(one);
}

}  // namespace detail
}  // namespace weft
