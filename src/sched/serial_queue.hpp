// The jobs of a strand. Any thread puts jobs in; one thread at a time, the server, runs them; which thread that is changes
// without a lock.
//
//   idle    there is no server, and no job
//   served  there is a server, and no job has come since it looked last
//   gone    as served, but the owner has abandoned the queue: the server destroys it
//   a node  there is a server, or is about to be one; the newest job that has come since it looked last
//
//   idle -> node             by put(), whose caller then starts a server
//   served -> node           by put(), as node -> node: the server will find the job
//   node -> served           by take(), of the server
//   served -> idle           by leave(), of the server, which touches nothing after that
//   idle -> gone             by abandon(), whose caller destroys the queue
//   served -> gone           by abandon(): the server finds it in leave()
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
  /// By any thread. True: there was no server, and the caller is to start one. False: this queue may be gone.
  bool put(Node& one) noexcept {
    Node* newest = newest_.load(std::memory_order_relaxed);  // a guess: the exchange decides
    do {
      one.next = is_mark(newest) ? nullptr : newest;
    } while (!newest_.compare_exchange_weak(newest, &one,
                                            std::memory_order_acq_rel,  // -> put, <- turn
                                            std::memory_order_relaxed));  // only the address is used
    return newest == mark(idle);
  }

  /// By the server, when there is a job: takes all, linked, the oldest first.
  Node* take() noexcept {
    return inbox<Node>::turned_round(newest_.exchange(mark(served), std::memory_order_acquire));  // <- put
  }

  enum class left : unsigned char {
    idle,  ///< the caller is the server no more; this queue may be gone
    more,  ///< jobs have come: it goes on as the server
    last,  ///< the queue was abandoned, and the caller destroys it
  };
  /// By the server, when it has run all that it took.
  left leave() noexcept {
    Node* seen = mark(served);
    if (newest_.compare_exchange_strong(seen, mark(idle),
                                        std::memory_order_release,   // -> turn
                                        std::memory_order_acquire))  // <- gone
      return left::idle;
    return seen == mark(gone) ? left::last : left::more;
  }

  enum class abandoned : unsigned char {
    free,    ///< there is no server: the caller destroys the queue
    served,  ///< the server destroys the queue
    full,    ///< there are jobs; nothing was done
  };
  /// By the owner, once, when nobody puts jobs in any more.
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

  //   edge put   the node, and all before it was put  ->  the server that takes it
  //   edge turn  all that a server did                ->  the next put(), and so the next server; abandon()
  //   edge gone  all that the owner did               ->  the server that destroys the queue
  // test/model/strand_model.cpp fails without any of them.
  atomic<Node*> newest_{nullptr};
};

}  // namespace weft::detail
