// The limit: two threads, each with one word that the other puts nodes in, and nothing else. Who has none gives its processor
// away until it has; there are no coroutines, no sleeping and no end but the count.
#include "workload.hpp"

#include "../harness/harness.hpp"

#include <sched.h>

#include <array>
#include <atomic>
#include <thread>

namespace {

struct node {
  node* next = nullptr;
  std::size_t left = bench::hop_rounds;
};

struct alignas(64) place {
  std::atomic<node*> newest{nullptr};

  void put(node& one) noexcept {
    node* before = newest.load(std::memory_order_relaxed);
    do one.next = before;
    while (!newest.compare_exchange_weak(before, &one, std::memory_order_release, std::memory_order_relaxed));
  }
  node* take() noexcept {
    while (newest.load(std::memory_order_relaxed) == nullptr) ::sched_yield();
    return newest.exchange(nullptr, std::memory_order_acquire);
  }
};

}  // namespace

void bench::run(bench::state& state) {
  place here, there;
  node last;  // ends the other thread
  std::jthread other{[&] {
    for (;;)
      for (node *one = there.take(), *next = nullptr; one != nullptr; one = next) {
        next = one->next;
        if (one == &last) return;
        here.put(*one);
      }
  }};
  const std::size_t hops = hop_tasks * hop_rounds;
  state.measure(hops, hops, [&] {
    std::array<node, hop_tasks> all;
    for (node& one : all) there.put(one);
    std::size_t done = 0;
    while (done != hops)
      for (node *one = here.take(), *next = nullptr; one != nullptr; one = next) {
        next = one->next;
        ++done;
        if (--one->left != 0) there.put(*one);
      }
    return done;
  });
  there.put(last);
}
