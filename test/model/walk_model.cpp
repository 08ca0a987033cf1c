// A walk over all roots against a last end: behind the gate, where a thread takes a wait out of its list while the walk reads
// that, and at the count of what is waited for, where the walk is one more part. See core/walk_gate.hpp and core/walk.hpp.
// Mutates: src/base/passing_gate.hpp
#include "base/passing_gate.hpp"
#include "model.hpp"

namespace {

using weft::detail::atomic;
using weft::detail::passing_gate;
using weft::detail::plain;

// A wait with one child that has ended and one part for its parent, which is on its way out. The thread goes on with the
// parent at once, unless the walk was counted in; then whoever is the last does so.
template <bool asymmetric>
struct opening : rl::test_suite<opening<asymmetric>, 2> {
  passing_gate gate;
  atomic<plain<int>*> list{nullptr};
  atomic<int> pending;
  plain<int> wait;  // -1: it is gone
  plain<int> ends;

  void before() {
    weft::detail::fences_are_free = asymmetric;
    gate.note_fences();
    wait = 0;
    ends = 0;
    pending.store(1, std::memory_order_relaxed);
    list.store(nullptr, std::memory_order_relaxed);
  }
  void after() { RL_ASSERT(ends == 1); }

  void end() {
    RL_ASSERT(wait != -1);
    wait = -1;
    ends = ends + 1;
  }
  void count_down() {
    if (pending.fetch_sub(1, std::memory_order_acq_rel) == 1) end();
  }

  void thread(unsigned which) {
    if (which == 0) {
      wait = 1;
      list.store(&wait, std::memory_order_release);
      wait = 2 * wait;  // it starts children
      list.store(nullptr, std::memory_order_relaxed);
      gate.pass();
      count_down();
    } else {
      plain<int>* found;
      gate.close();
      if ((found = list.load(std::memory_order_acquire)) != nullptr) pending.fetch_add(1, std::memory_order_relaxed);
      gate.reopen();
      if (found != nullptr) count_down();
    }
  }
};

// What the walk reads behind the gate, of something that the thread then destroys.
template <bool asymmetric>
struct reading : rl::test_suite<reading<asymmetric>, 2> {
  passing_gate gate;
  atomic<plain<int>*> place{nullptr};
  plain<int> thing;

  void before() {
    weft::detail::fences_are_free = asymmetric;
    gate.note_fences();
    thing = 1;
    place.store(&thing, std::memory_order_relaxed);
  }

  void thread(unsigned which) {
    if (which == 0) {
      place.store(nullptr, std::memory_order_relaxed);
      gate.pass();
      thing = -1;
    } else {
      gate.close();
      if (plain<int>* const found = place.load(std::memory_order_acquire)) RL_ASSERT(*found == 1);
      gate.reopen();
    }
  }
};

}  // namespace

int main() {
  model::check_all<reading<false>>("reads what goes");
  model::check_all<reading<true>>("reads what goes, free fences");
  model::check_all<opening<false>>("counted in beside the end");
  model::check_all<opening<true>>("the same with free fences");
}
