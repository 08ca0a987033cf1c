// A call that a ring does for a task: it completes, while the task is told to stop, for which the ring's owner is asked to have
// it cancelled. Its wait is ended once, and not while it is in the owner's inbox. What the owner does is as uring_worker has it,
// in src/io/uring_calls.cpp.
// Mutates: src/io/ring_call.hpp
#include <optional>
#include <weft/detail/base/inbox.hpp>

#include "core/waiter.cpp"
#include "model.hpp"
//
#if !defined(errno)
#define errno (*__errno_location())  // relacy has none
#endif
#include "io/ring_call.cpp"

namespace {

using namespace weft::detail;

// The task, which sleeps in its call. Its frame, and the call in it, are gone once it goes on.
struct napper : sleeper {
  napper() : sleeper{go_on_with} {}
  static void go_on_with(sleeper& self, wake_up) noexcept {
    auto& mine = static_cast<napper&>(self);
    RL_ASSERT(mine.woken.exchange(1, std::memory_order_acq_rel) == 0);
  }
  atomic<int> woken{0};
};

// `has_room`: the ring takes each cancellation; else it may have no submission for one, and tries later.
template <bool has_room>
struct ring final : call_ring {
  inbox<waiter> calls;
  bool completes_next = false;      // by the kernel, which was told to
  int refusals = has_room ? 0 : 2;  // at most

  bool begin(ring_call&, root&) noexcept override { return false; }  // the scenario parks by itself
  // Here always by another thread than the owner.
  void cancel(ring_call& one) noexcept override {
    if (one.is_asked_for()) calls.put(one);
  }
  bool cancel_here(ring_call& one) noexcept {
    if (refusals != 0 && rl::rand(2) == 0) return (--refusals, false);
    one.is_cancelled = completes_next = true;
    return true;
  }
  void perform_calls() noexcept {
    for (waiter* next = calls.take(); next != nullptr;) {
      auto& one = static_cast<ring_call&>(*next);
      next = next->next;
      if (one.has_ended())
        one.end();
      else if (!cancel_here(one) && one.is_asked_for())
        calls.put(one);
    }
  }
  static void ended(ring_call& one, int result) noexcept {
    one.result = result;
    if (one.may_end()) one.end();
  }
};

// `comes`: of itself, and not only where it is cancelled.
template <bool has_room, bool comes>
struct complete_and_stop : rl::test_suite<complete_and_stop<has_room, comes>, 2> {
  napper self;
  ring<has_room> owner;
  std::optional<ring_call> call;

  void before() {
    call.emplace(file_request{.what = file_request::kind::sync});
    call->of = &owner;
    RL_ASSERT(self.park(*call));
  }
  void thread(unsigned which) {
    if (which == 1) {
      RL_ASSERT(self.request_stop());
      return;
    }
    bool is_complete = false;
    int looks = 3;  // until it comes of itself, at most
    while (self.woken.load(std::memory_order_acquire) == 0) {
      owner.perform_calls();
      if (!is_complete && (owner.completes_next || (comes && (--looks == 0 || rl::rand(2) == 1)))) {
        is_complete = true;
        owner.ended(*call, owner.completes_next ? -ECANCELED : 0);
      }
      rl::yield(1, RL_INFO);
    }
    RL_ASSERT(is_complete);
    call.reset();  // with its frame: whoever comes now meets what is gone
    RL_ASSERT(owner.calls.empty());
  }
  void after() { RL_ASSERT(self.woken.load(std::memory_order_relaxed) == 1 && owner.calls.empty()); }
};

}  // namespace

int main() {
  model::check<complete_and_stop<true, true>>("completes, and is stopped", 4, 100'000, 6);
  model::check<complete_and_stop<true, false>>("is cancelled", 4, 100'000, 6);
  model::check<complete_and_stop<false, true>>("the ring is full", 3, 100'000, 4);
}
