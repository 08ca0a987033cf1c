// Frames that others free find their way home: what the owner takes back, what a drain gives back with its slab, and
// nothing that is used meanwhile. It also fails if a drain gives back the current slab, or one of which something is in
// use, forgets to clear its counts or to put back the rest, or is not alone; and if any of the owner's ways to change
// the list of slabs takes no lock.
// Mutates: include/weft/detail/base/lock.hpp
#include "base/lock.cpp"
#include "memory/heap.cpp"

#include "model.hpp"

namespace {

using weft::detail::heap;
using weft::detail::slab;
using weft::detail::slab_source;

constexpr std::size_t size = slab::frame;

void begin_use(void* frame) {
  RL_ASSERT(slab::of(frame)->users_of(frame) == 0);
  slab::of(frame)->users_of(frame) = 1;
}
void end_use(void* frame) {
  RL_ASSERT(slab::of(frame)->users_of(frame) == 1);
  slab::of(frame)->users_of(frame) = 0;
}

// A heap, whose frames others have; each free by those looks for whole slabs.
template <class Scenario, unsigned threads>
struct frames_elsewhere : rl::test_suite<Scenario, threads> {
  slab_source source;
  heap home, others[2];
  void* frames[4];

  void before() {
    slab_source::now = &source;
    home.drain_at.store(0, std::memory_order_relaxed);
    home.keeps_waiting.store(0, std::memory_order_relaxed);
    for (void*& one : frames) one = take();  // three of one slab, and one of the next
  }
  // The owner has all that came back, and no slab is lost.
  void after() {
    home.sweep();
    RL_ASSERT(source.in_use() == 0);
    RL_ASSERT(home.cached == 0);
    RL_ASSERT(home.waiting.load(std::memory_order_relaxed) == 0);
  }

  void* take() {
    void* const frame = home.allocate(size);
    begin_use(frame);
    return frame;
  }
  void keep(heap& where, void* frame) {  // to send it later, with the next one
    end_use(frame);
    where.free(frame, size);
  }
  void free(heap& where, void* frame) {
    keep(where, frame);
    where.send();
  }
};

// Two free the frames of one slab, and the last of them finds it whole, while the owner needs a slab.
struct free_and_take : frames_elsewhere<free_and_take, 3> {
  void thread(unsigned which) {
    if (which == 1) {
      free(others[0], frames[0]);
      free(others[0], frames[1]);
    } else if (which == 2) {
      free(others[1], frames[2]);
    } else {
      void* const more[] = {take(), take(),
                            take()};  // two of the current slab, and one that came back, or of a new one
      for (void* const one : more) free(home, one);
      free(home, frames[3]);
    }
  }
};

// The same while the owner, which is about to leave, looks for whole slabs itself.
struct free_and_sweep : frames_elsewhere<free_and_sweep, 3> {
  void thread(unsigned which) {
    if (which == 1) {
      free(others[0], frames[0]);
      free(others[0], frames[3]);
    } else if (which == 2) {
      free(others[1], frames[2]);
      free(others[1], frames[1]);
    } else {
      home.leave();
      home.take_over();
    }
  }
};

// One frees all frames of a slab, which go home together, while the owner needs a slab.
struct free_together_and_take : frames_elsewhere<free_together_and_take, 2> {
  void thread(unsigned which) {
    if (which == 1) {
      keep(others[0], frames[0]);
      keep(others[0], frames[1]);
      free(others[0], frames[2]);
    } else {
      void* const more[] = {take(), take(), take()};
      for (void* const one : more) free(home, one);
      free(home, frames[3]);
    }
  }
};

// Frames come back while the owner steps back to the slab that they are of.
struct free_and_step_back : frames_elsewhere<free_and_step_back, 2> {
  void thread(unsigned which) {
    if (which == 1) {
      free(others[0], frames[0]);
      free(others[0], frames[1]);
    } else {
      free(home, frames[3]);
      free(home, frames[2]);
      free(home, take());
    }
  }
};

}  // namespace

int main() {
  model::check<free_and_step_back>("free and step back", 2);
  model::check<free_together_and_take>("free together and take", 2);
  model::check<free_and_take>("free and take", 1, 100'000, 2);
  model::check<free_and_sweep>("free and sweep", 1, 100'000, 2);
}
