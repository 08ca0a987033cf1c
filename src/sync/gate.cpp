// The gate, which all primitives are made of: a lock and a line of waiters. Each primitive has a source of its own.
#include <weft/detail/sync/gate.hpp>

#include <mutex>

#include "core/claim.hpp"

namespace weft::detail {

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

}  // namespace weft::detail
