// How a pool begins and how it goes: threads that pass its gate, threads that post while it is drained and destroyed, the
// last one that holds it, and what becomes of it then. What a thread may touch is plain memory, which relacy watches.
// Mutates: src/base/post_hazard.hpp src/base/starting_gate.hpp src/base/ref_count.hpp
#include "base/post_hazard.hpp"
#include "base/ref_count.hpp"
#include "base/starting_gate.hpp"
#include "crew.hpp"

namespace {

using namespace model;

// Threads begin when all have been made, or leave if that could not be. Each knows the others by what was written before.
template <bool all>
struct begins : rl::test_suite<begins<all>, 3> {
  bed one;
  starting_gate entrance;
  plain<int> numbers[2]{};

  void before() { bed::all = &one; }
  void thread(unsigned which) {
    if (which == 2) {
      numbers[0] = 7;
      numbers[1] = 8;
      entrance.open(all);
      return;
    }
    const bool passed = entrance.pass();
    RL_ASSERT(passed == all);
    RL_ASSERT(numbers[1 - which] == (which == 0 ? 8 : 7));
  }
};

// As pool_core's end, by one of `leavers` that each have used it: whoever lets go last destroys. One of them comes by an
// add() of the first, as a thread of the pool does, and may not come at all.
template <unsigned leavers, bool one_is_refused>
struct last_leaver : rl::test_suite<last_leaver<leavers, one_is_refused>, leavers> {
  ref_count all{leavers};
  plain<int> used[leavers]{};
  atomic<int> destroyed{0};

  void thread(unsigned which) {
    if (which == 0 && one_is_refused) {
      all.add();
      all.take_back();
    }
    used[which] = 1;
    if (!all.let_go()) return;
    for (auto& one : used) {
      RL_ASSERT(one == 1);
      one = 0;
    }
    destroyed.fetch_add(1, std::memory_order_relaxed);
  }
  void after() { RL_ASSERT(destroyed.load(std::memory_order_relaxed) == 1); }
};

// A pool of one worker. A thread posts a job, for all or for that worker alone. Whoever the job tells that it has run
// destroys the pool: another thread, or, with `on_its_own`, the job itself, on the pool's thread, which goes on in there
// until it has seen the end. The poster may still be in post(): what it does there with the pool is to look who sleeps.
enum class destroyed_by : unsigned char { who_was_told, its_own_job };
template <destroyed_by who, bool for_one>
struct destroyed : rl::test_suite<destroyed<who, for_one>, 3>, crew<1, 0, true> {
  post_hazard posters[3];  // of each thread, as in its worker
  ref_count all{2};        // the pool, and its thread
  plain<int> alive = 1;    // the pool: read by whoever is in there, written by its end
  atomic<std::uint32_t> told{0};
  plain<int> given = 0;  // by the job
  atomic<int> gone{0};

  void before() { begin(); }
  bool is_alive() { return alive == 1; }

  void thread(unsigned which) {
    if (which == 0) run();
    if (which == 1) from_outside();
    if (which == 2 && who == destroyed_by::who_was_told) {
      while (told.load(std::memory_order_acquire) == 0) word_futex{told}.wait(0, parker::time_point::max());
      RL_ASSERT(given == 1);
      release();
    }
  }
  // As pool_core::post_from_outside.
  void from_outside() {
    const post_hazard::mark mark{posters[1], this};
    RL_ASSERT(!has_ended() && is_alive());
    if (for_one)
      post_to(0);
    else
      post();
    RL_ASSERT(is_alive());
  }
  // As pool_core::run.
  void run() {
    while (find(0)) {
      given = 1;
      if (who == destroyed_by::its_own_job) {
        release();
      } else {
        told.store(1, std::memory_order_release);
        word_futex{told}.wake();
      }
    }
    RL_ASSERT(is_alive());
    drop();
  }
  // As pool_core::release.
  void release() {
    shut_down();
    for (auto& one : posters) one.wait_until_not(this);
    drop();
  }
  void drop() {
    if (!all.let_go()) return;
    alive = 0;
    gone.fetch_add(1, std::memory_order_relaxed);
  }
  void after() {
    RL_ASSERT(gone.load(std::memory_order_relaxed) == 1);
    RL_ASSERT(how_often_ended.load(std::memory_order_relaxed) == 1);
  }
};

// A thread posts within another post, as where a strand posts to the pool below it: each of the two is waited for.
struct posts_within : rl::test_suite<posts_within, 2> {
  post_hazard poster;
  atomic<int> posted{0};
  plain<int> outer = 1, inner = 1;

  void thread(unsigned which) {
    if (which == 0) {
      const post_hazard::mark first{poster, &outer};
      {
        const post_hazard::mark second{poster, &inner};
        posted.store(1, std::memory_order_release);
        RL_ASSERT(inner == 1);
      }
      RL_ASSERT(outer == 1);
      return;
    }
    if (posted.load(std::memory_order_acquire) == 0) return;
    poster.wait_until_not(&inner);
    inner = 0;
    poster.wait_until_not(&outer);
  }
};

}  // namespace

int main() {
  model::check<begins<true>>("all begin", 3);
  model::check<begins<false>>("one could not be made", 3);
  model::check<last_leaver<2, true>>("the last of two", 4);
  model::check<last_leaver<3, false>>("the last of three", 3);
  model::check<posts_within>("a post within a post", 4);
  model::check<destroyed<destroyed_by::who_was_told, false>>("destroyed by who was told", 2);
  model::check<destroyed<destroyed_by::who_was_told, true>>("a job for one alone", 2);
  model::check<destroyed<destroyed_by::its_own_job, false>>("destroyed by its own job", 2);
}
