// The jobs of a strand, and whose turn it is: any thread puts in, one thread at a time serves, and who that is passes on
// without a lock.
//
//   idle    nobody serves, and nothing waits
//   served  somebody serves, and nothing has come since its last look
//   gone    as served, but whom it belonged to has left it: who serves sees to its end
//   a node  somebody serves, or is about to; the newest of what has come since its last look
//
//   idle -> node             by put(), which tells its caller to see to it that somebody serves
//   served -> node           by put(), as node -> node: who serves will find it
//   node -> served           by take(), of who serves
//   served -> idle           by leave(), of who serves, who touches nothing after that
//   idle -> gone             by abandon(): nobody is inside, the caller sees to its end
//   served -> gone           by abandon(): who serves will find that out as it leaves
//
// Rejected: a count beside a queue (two read-modify-writes a job); a lock (who loses its processor inside holds up all).
#pragma once

#include <atomic>
#include <cstdint>
#include <weft/detail/base/atomic.hpp>
#include <weft/detail/base/inbox.hpp>

namespace weft::detail {

/// `Node` has a member `next`, a pointer to Node, which is the queue's while the node is inside.
template <class Node>
class serial_queue {
 public:
  /// Any thread. True: nobody serves, and the caller is to see to it that somebody does. False: this may be gone.
  bool put(Node& one) noexcept {
    Node* newest = newest_.load(std::memory_order_relaxed);  // a guess: the exchange decides
    do {
      one.next = is_mark(newest) ? nullptr : newest;
    } while (!newest_.compare_exchange_weak(newest, &one,
                                            std::memory_order_acq_rel,  // -> put, <- turn
                                            std::memory_order_relaxed));  // only the address is used
    return newest == mark(idle);
  }

  /// By who serves, when there is something: takes all, linked, the oldest first.
  Node* take() noexcept {
    return inbox<Node>::turned_round(newest_.exchange(mark(served), std::memory_order_acquire));  // <- put
  }

  enum class left : unsigned char {
    idle,  ///< it serves no more; this may be gone
    more,  ///< something has come: it serves on
    last,  ///< it was left, and belongs to the caller
  };
  /// By who serves, when it has served all that it took.
  left leave() noexcept {
    Node* seen = mark(served);
    if (newest_.compare_exchange_strong(seen, mark(idle),
                                        std::memory_order_release,   // -> turn
                                        std::memory_order_acquire))  // <- gone
      return left::idle;
    return seen == mark(gone) ? left::last : left::more;
  }

  enum class abandoned : unsigned char {
    free,    ///< nobody serves, nobody will: it belongs to the caller
    served,  ///< it belongs to who serves
    full,    ///< there is something inside; nothing was done
  };
  /// By whom it belongs to, once, when nobody puts in any more.
  abandoned abandon() noexcept {
    Node* seen = mark(idle);
    if (newest_.compare_exchange_strong(seen, mark(gone),
                                        std::memory_order_acquire,   // <- turn
                                        std::memory_order_relaxed))  // tried again below
      return abandoned::free;
    if (seen == mark(served)) {
      if (newest_.compare_exchange_strong(seen, mark(gone),
                                          std::memory_order_release,   // -> gone
                                          std::memory_order_acquire))  // <- turn
        return abandoned::served;
      if (seen == mark(idle)) return abandoned::free;
    }
    return abandoned::full;
  }

 private:
  enum state : std::uintptr_t { idle = 0, served = 1, gone = 2 };  // no node's address

  static Node* mark(state which) noexcept { return reinterpret_cast<Node*>(std::uintptr_t{which}); }
  static bool is_mark(const Node* newest) noexcept { return reinterpret_cast<std::uintptr_t>(newest) <= gone; }

  //   edge put   the node, and all before it was put  ->  who serves it
  //   edge turn  all that who served did              ->  who puts in next, and so who serves next; who abandons
  //   edge gone  all that whom it belonged to did     ->  who serves, and sees to its end
  // test/model/strand_model.cpp fails without any of them.
  atomic<Node*> newest_{nullptr};
};

}  // namespace weft::detail
