// The definitions of sleeping_inbox, an inbox whose reader sleeps on it, for sources that instantiate it; see
// weft/detail/base/inbox.hpp.
#pragma once

#include <chrono>
#include <cstdint>
#include <weft/detail/base/inbox.hpp>

#include "base/futex.hpp"

namespace weft::detail {

template <class Node>
Node* asleep() noexcept {
  return reinterpret_cast<Node*>(std::uintptr_t{1});  // no node's address
}

template <class Node>
void sleeping_inbox<Node>::put(Node& one) noexcept {
  const pointer_futex sleeps_on{newest_};
  Node* newest = newest_.load(std::memory_order_relaxed);  // a guess: the exchange decides
  do {
    one.next = newest == asleep<Node>() ? nullptr : newest;
  } while (!newest_.compare_exchange_weak(newest, &one,
                                          std::memory_order_release,  // -> put
                                          std::memory_order_relaxed));  // only the address is used
  if (newest == asleep<Node>()) sleeps_on.wake();  // the inbox may be gone
}

template <class Node>
Node* sleeping_inbox<Node>::take() noexcept {
  Node* newest = newest_.exchange(nullptr, std::memory_order_acquire);  // <- put
  return newest == asleep<Node>() ? nullptr : inbox<Node>::turned_round(newest);
}

template <class Node>
void sleeping_inbox<Node>::sleep(std::chrono::milliseconds most) noexcept {
  Node* nobody = nullptr;
  if (newest_.compare_exchange_strong(nobody, asleep<Node>(),
                                      std::memory_order_relaxed,   // a flag: take() has the edge
                                      std::memory_order_relaxed))  // something was put
    pointer_futex{newest_}.wait(asleep<Node>(), most);
}

}  // namespace weft::detail
