#include <weft/channel.hpp>

#include <mutex>

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

channel_waiter* channel_core::pop_claimed(waiter_line& line) noexcept {
  while (auto* one = static_cast<channel_waiter*>(line.pop()))
    if (one->try_claim()) {
      if (one->select != nullptr) one->select->chosen = one->index;
      return one;
    }
  return nullptr;
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

void channel_core::wait(root& self, channel_waiter& one, waiter_line& line) noexcept {
  line.push(one);
  ++waits;
  if (self.park(one)) return lock.unlock();
  line.remove(one);
  lock.unlock();
  end_stopped(self);
}

void channel_core::leave(waiter& one, waiter_line& line) noexcept {
  const std::lock_guard guard{lock};
  line.remove(one);
}

}  // namespace detail
}  // namespace weft
