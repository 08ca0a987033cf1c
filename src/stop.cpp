#include <weft/stop.hpp>

#include "detail/spin.hpp"
#include "detail/thread_id.hpp"

namespace weft {
void stop_source::lock() noexcept {
  detail::spin_wait wait;
  for (;;) {
    std::uint32_t state = state_.load(std::memory_order_relaxed);  // a guess; the exchange decides
    if ((state & locked) == 0 && state_.compare_exchange_weak(state, state | locked,
                                                              std::memory_order_acquire,  // <- list
                                                              std::memory_order_relaxed))
      return;
    wait.once();
  }
}

void stop_source::unlock(std::uint32_t set) noexcept {
  const std::uint32_t state = state_.load(std::memory_order_relaxed);  // ours while locked
  state_.store((state & ~locked) | set, std::memory_order_release);    // -> list, asked
}

stop_source::~stop_source() {
  WEFT_EXPECTS(nodes_ == nullptr,
               "a stop_source was destroyed before a stop_callback on it: the source must live longer");
}

bool stop_source::add(detail::stop_node& node) noexcept {
  lock();
  if ((state_.load(std::memory_order_relaxed) & requested) != 0) {  // under the lock
    unlock();
    return false;
  }
  node.next_ = nodes_;
  node.link_ = &nodes_;
  if (nodes_ != nullptr) nodes_->link_ = &node.next_;
  nodes_ = &node;
  unlock();
  return true;
}

void stop_source::remove(detail::stop_node& node) noexcept {
  lock();
  if (node.link_ != nullptr) {
    *node.link_ = node.next_;
    if (node.next_ != nullptr) node.next_->link_ = node.link_;
    unlock();
    return;
  }
  const bool running = running_ == &node;
  const bool here = runner_ == detail::this_thread_id();
  if (running && here) *node.destroyed_ = true;  // it destroys itself: the runner touches it no more
  unlock();
  if (running && here) return;
  // It has run or is running on another thread: wait until that is over.
  detail::spin_wait wait;
  while (!node.ended_.load(std::memory_order_acquire)) wait.once();  // <- ran
}

bool stop_source::request_stop(stop_cause cause) noexcept {
  lock();
  if ((state_.load(std::memory_order_relaxed) & requested) != 0) {  // under the lock
    unlock();
    return false;
  }
  cause_ = cause;
  if (nodes_ == nullptr) {  // nobody is to be called: who comes later finds it requested
    unlock(requested);
    return true;
  }
  runner_ = detail::this_thread_id();
  unlock(requested);

  for (;;) {
    lock();
    detail::stop_node* node = nodes_;
    running_ = node;
    if (node == nullptr) {
      unlock();
      return true;
    }
    nodes_ = node->next_;
    if (nodes_ != nullptr) nodes_->link_ = &nodes_;
    node->link_ = nullptr;
    bool destroyed = false;
    node->destroyed_ = &destroyed;
    unlock();
    node->run_(*node);
    if (!destroyed) node->ended_.store(true, std::memory_order_release);  // -> ran: may be gone after this line
  }
}

}  // namespace weft
