// What any thread puts in, and one thread takes out, all at once: jobs for whoever runs them, frames on their way home.
//
// A stack of intrusive nodes. A take leaves nothing behind, so no node comes back while somebody looks at it, and a put
// needs no more than the address that it found.
//
// Rejected: a queue that keeps the order (a second exchange, and a node that is linked in only later). Who wants the
// oldest first turns round what was taken.
#pragma once

#include <atomic>
#include <weft/detail/base/atomic.hpp>
#include <weft/detail/base/forward.hpp>

namespace weft::detail {

/// `Node` has a member `next`, a pointer to Node, which is the inbox's while the node is inside.
template <class Node>
class inbox {
 public:
  /// Any thread. The inbox may be gone when this returns, if its owner goes by what it took.
  void put(Node& one) noexcept { put(one, one); }
  /// The same with nodes that are linked already.
  void put(Node& first, Node& last) noexcept {
    Node* newest = newest_.load(std::memory_order_relaxed);  // a guess: the exchange decides
    do {
      last.next = newest;
    } while (!newest_.compare_exchange_weak(newest, &first,
                                            std::memory_order_release,  // -> put
                                            std::memory_order_relaxed));  // only the address is used
  }

  /// Takes all, linked; the newest first. By one thread at a time.
  Node* take_newest_first() noexcept { return newest_.exchange(nullptr, std::memory_order_acquire); }  // <- put
  /// The same, the oldest first.
  Node* take() noexcept { return turned_round(take_newest_first()); }

  /// A hint, where others put.
  bool empty() const noexcept { return newest_.load(std::memory_order_relaxed) == nullptr; }  // a hint

  static Node* turned_round(Node* newest) noexcept {
    Node* oldest = nullptr;
    while (newest != nullptr) {
      Node* older = newest->next;
      newest->next = oldest;
      oldest = newest;
      newest = older;
    }
    return oldest;
  }

 private:
  //   edge put  the node, and all before it was put  ->  whoever takes it. test/model/inbox_model.cpp fails without it
  atomic<Node*> newest_{nullptr};
};

/// An inbox whose owner sleeps while it is empty. Compiled into the library (src/sched/sleeping_inbox.hpp).
template <class Node>
class sleeping_inbox {
 public:
  /// Any thread; wakes the owner. The inbox may be gone once the node is in.
  void put(Node& one) noexcept;

  /// By the owner: takes all, linked, the oldest first.
  Node* take() noexcept;

  /// By the owner: sleeps until there is something, or for `most`, if that is not 0. May return at any time.
  void sleep(std::chrono::milliseconds most = {}) noexcept;

 private:
  // The newest node; null; or `asleep`, while the owner sleeps on this word.
  //   edge put  the node, and all before it was put  ->  the owner that takes it
  atomic<Node*> newest_{nullptr};
};

}  // namespace weft::detail
