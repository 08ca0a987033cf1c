// Armed timers by their exact time: a pairing heap whose nodes are the timers. `child` is the first child of a node, `next` its
// next sibling, `prev` its previous sibling, or, of a first child, its parent.
//
// Source: Fredman, Sedgewick, Sleator, Tarjan, "The pairing heap", Algorithmica 1 (1986).
#pragma once

#include <utility>
#include <weft/timer.hpp>

namespace weft::detail {

class timer_heap {
 public:
  timer* first() const noexcept { return first_; }

  void push(timer& one) noexcept {
    one.child = one.next = one.prev = nullptr;
    first_ = meld(first_, &one);
  }

  void remove(timer& one) noexcept {
    timer* below = meld_pairs(one.child);
    if (&one == first_) {
      first_ = below;
      return;
    }
    (one.prev->child == &one ? one.prev->child : one.prev->next) = one.next;
    if (one.next != nullptr) one.next->prev = one.prev;
    first_ = meld(first_, below);
  }

 private:
  // Merges two heaps, neither of which has siblings.
  static timer* meld(timer* a, timer* b) noexcept {
    if (a == nullptr || b == nullptr) return a != nullptr ? a : b;
    if (b->when < a->when) std::swap(a, b);
    b->next = a->child;
    if (b->next != nullptr) b->next->prev = b;
    b->prev = a;
    a->child = b;
    return a;
  }

  // Merges siblings into one heap: in pairs from the first, then the pairs from the last.
  static timer* meld_pairs(timer* sibling) noexcept {
    timer* pairs = nullptr;  // the last one first, linked by `prev`
    while (sibling != nullptr) {
      timer* one = sibling;
      timer* two = one->next;
      sibling = two != nullptr ? two->next : nullptr;
      one->next = one->prev = nullptr;
      if (two != nullptr) two->next = two->prev = nullptr;
      timer* pair = meld(one, two);
      pair->prev = pairs;
      pairs = pair;
    }
    timer* all = nullptr;
    while (pairs != nullptr) {
      timer* before = std::exchange(pairs->prev, nullptr);
      all = meld(all, pairs);
      pairs = before;
    }
    return all;
  }

  timer* first_ = nullptr;
};

}  // namespace weft::detail
