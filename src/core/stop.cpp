// The protocol of stop sources: callbacks are nodes in a list of the source's, and run under no lock.
//
// Source: the protocol of registration is that of std::stop_callback (N4868, 32.3.4), in place as P2300's
// inplace_stop_source has it.
#include <weft/stop.hpp>

#include "base/spin.hpp"
#include "base/thread_id.hpp"

namespace weft {

/// A request_stop() that is calling callbacks. It holds no lock meanwhile, and a callback may have the source destroyed, on
/// this thread or another. So it asks this record whether the source is still there. The record lies on its stack, and the
/// destructor of the source finds it through the source.
struct detail::stop_run {
  enum class place : std::uint32_t {
    in_callback,  // touches this record and its node, not the source: the destructor may let it go
    at_source,    // touches the source, for a moment: the destructor waits
    let_go,       // the source is gone
  };

  const plain<std::uintptr_t> thread = this_thread_id();
  plain<stop_node*> node = nullptr;  // whose callback it calls; under the source's lock
  plain<bool> node_is_gone = false;  // the callback has destroyed its own node, on this thread
  // Written by this thread after a callback, and else under the source's lock.
  //   edge let go  the destructor's last access to this record  ->  the return of request_stop()
  atomic<place> at{place::at_source};
};

void stop_source::lock() noexcept {
  detail::spin_wait wait;
  for (;;) {
    std::uint32_t state = state_.load(std::memory_order_relaxed);  // a guess; the exchange decides
    if ((state & locked) == 0 && state_.compare_exchange_weak(state, state | locked,
                                                              std::memory_order_acquire,   // <- list
                                                              std::memory_order_relaxed))  // tried again
      return;
    wait.once();
  }
}

void stop_source::unlock(std::uint32_t set) noexcept {
  const std::uint32_t state = state_.load(std::memory_order_relaxed);  // only the holder of the lock changes it
  state_.store((state & ~locked) | set, std::memory_order_release);    // -> list, asked
}

stop_source::~stop_source() {
  if ((state_.load(std::memory_order_acquire) & in_run) != 0) [[unlikely]]  // <- list
    let_go_of_run();
  WEFT_EXPECTS(nodes_ == nullptr,
               "a stop_source was destroyed before a stop_callback on it: the source must live longer");
}

void stop_source::let_go_of_run() noexcept {
  detail::spin_wait wait;
  for (;;) {
    lock();
    detail::stop_run* const run = run_;
    if (run == nullptr) return;
    WEFT_EXPECTS(run->thread != detail::this_thread_id() || run->node_is_gone,
                 "a stop_source was destroyed by a stop_callback that is still on it: the callback must go first");
    auto at = detail::stop_run::place::in_callback;
    if (run->at.compare_exchange_strong(at, detail::stop_run::place::let_go,
                                        std::memory_order_release,   // -> let go
                                        std::memory_order_relaxed))  // the runner waits for the lock
      return;
    unlock();
    wait.once();
  }
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
  if (run_ != nullptr && run_->node == &node && run_->thread == detail::this_thread_id()) {
    run_->node_is_gone = true;  // it destroys itself inside its callback: the runner does not touch it after that
    unlock();
    return;
  }
  unlock();
  // The callback has run, or runs on another thread: waits until it has returned.
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
  if (nodes_ == nullptr) {  // there are no callbacks; one that is registered later finds the stop requested
    unlock(requested);      // the source may be gone after this line
    return true;
  }
  detail::stop_run run;
  run_ = &run;
  while (detail::stop_node* const node = nodes_) {
    nodes_ = node->next_;
    if (nodes_ != nullptr) nodes_->link_ = &nodes_;
    node->link_ = nullptr;
    run.node = node;
    run.node_is_gone = false;
    run.at.store(detail::stop_run::place::in_callback, std::memory_order_relaxed);  // only for holders of the lock
    unlock(requested | in_run);
    node->run_(*node);  // the source may be gone after this line
    if (!run.node_is_gone) node->ended_.store(true, std::memory_order_release);  // -> ran: node may be gone, too
    if (run.at.exchange(detail::stop_run::place::at_source, std::memory_order_acquire) ==  // <- let go
        detail::stop_run::place::let_go)
      return true;
    lock();
  }
  run_ = nullptr;
  state_.store(requested, std::memory_order_release);  // -> list: the source may be gone after this line
  return true;
}

}  // namespace weft
