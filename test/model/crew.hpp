// Workers of a pool that sleep, are called, come, go and end as those of src/pool/pool_turn.cpp do, by the same code
// (parking.hpp); only the jobs are none: of these there are counts. For parking_model.cpp and pool_end_model.cpp,
// which say what they do.
#pragma once

#include <algorithm>
#include <optional>

#include "base/fence.hpp"
#include "base/lock.cpp"
#include "model.hpp"
#include "sched/idle_set.hpp"
#include "sched/parker.hpp"
#include "sched/parking.hpp"

namespace model {

using namespace weft::detail;

/// A job carries nothing from who posts it to who runs it, so that all stands on the fences; with `carries`, it does. A worker
/// sleeps in a `Sleeps`, and asks it for events as the pool's do.
template <unsigned workers, unsigned away = 0, bool carries = false, unsigned most_awake = workers - away,
          class Sleeps = futex_parker>
struct crew : parking<crew<workers, away, carries, most_awake, Sleeps>> {
  using base = parking<crew>;
  friend base;
  using base::idle_;

  struct seat : notifier, idler {
    explicit seat(idle_set& all) : notifier{&all, crew::wake} {}
    Sleeps sleeps;
    bool had_own = false;
    atomic<bool> watches{false};  // it sleeps for a time, which is over when there is a job that it can't be woken for
  };

  bed one;
  atomic<int> jobs{0};         // a queue, without what is in it
  atomic<int> next{0};         // the same for what a worker is to do next, and who watches may
  atomic<int> own[workers]{};  // the same for what one worker alone may run
  atomic<int> how_often_ended{0};
  std::optional<seat> seats[workers];

  static constexpr bool has_one = workers == 1;
  bool watches_all = most_awake != workers - away;  // who watches is not only one that sleeps

  crew() : base{workers - away, most_awake, has_one} {
    light_fences_order = !has_one;
    for (auto& one : seats) one.emplace(idle_);
  }
  ~crew() { light_fences_order = true; }

  void begin() { bed::all = &one; }
  void post() {
    jobs.fetch_add(1, carries ? std::memory_order_release : std::memory_order_relaxed);
    base::fence_from_outside();
    seats[0]->call();
    if (most_awake != workers - away) pass_time();
  }
  // By a worker, which does something else first.
  void post_next() {
    next.fetch_add(1, std::memory_order_relaxed);
    seats[0]->call(true);
    pass_time();
  }
  // Time passes: who watches wakes by itself.
  void pass_time() {
    heavy_fence();
    for (auto& one : seats)
      if (one->watches.load(std::memory_order_relaxed)) one->sleeps.wake();
  }
  // As pool_core::sleep, of who watches. Whether it is to take what others are to do next.
  bool watch(seat& mine) {
    mine.watches.store(true, std::memory_order_relaxed);
    heavy_fence();
    if (!any_job() && !any_next()) mine.sleeps.commit(parker::time_point::max());
    mine.watches.store(false, std::memory_order_relaxed);
    const bool by_itself = base::woke(mine);
    if (by_itself && most_awake != workers - away && any_job())  // those awake wait for something
      idle_.let_wake(std::min(idle_.may_be_awake() + 1, workers - away));
    return by_itself;
  }
  void post_to(unsigned which) {
    own[which].fetch_add(1, carries ? std::memory_order_release : std::memory_order_relaxed);
    base::call(*seats[which]);
  }
  void shut_down() { base::close(pool_state::draining); }
  using base::come;
  using base::go;
  using base::let_wake;

  static bool take_from(atomic<int>& queue) {
    int seen = queue.load(std::memory_order_relaxed);
    while (seen > 0)
      if (queue.compare_exchange_weak(seen, seen - 1, carries ? std::memory_order_acquire : std::memory_order_relaxed,
                                      std::memory_order_relaxed))
        return true;
    return false;
  }
  bool take_own(unsigned which) { return take_from(own[which]) && (seats[which]->had_own = true); }
  bool poll(unsigned which) { return seats[which]->sleeps.poll(false), take_own(which); }
  bool take(unsigned which) { return poll(which) || take_from(jobs); }

  // As pool_core::look_elsewhere. False: it has ended.
  bool find(unsigned which) {
    seat& mine = *seats[which];
    if (take_own(which)) return true;
    bool searches = idle_.start_search(), desperate = false;
    for (;; searches = true) {
      if (searches && (idle_.too_many() ? poll(which) : take(which) || (desperate && take_from(next)))) {
        base::found(mine, searches, true);
        return true;
      }
      const nap how = base::fall_asleep(mine, searches);
      if (how == nap::ended) return false;
      if (how == nap::has_job) continue;
      desperate = false;
      if (how == nap::watches && watches_all) {
        desperate = watch(mine);
      } else {
        mine.sleeps.commit(parker::time_point::max());
        base::woke(mine);
      }
      if (base::has_ended()) return false;
    }
  }

  // What parking.hpp asks for.
  static void wake(idler& who) noexcept { static_cast<seat&>(who).sleeps.wake(); }
  bool any_job() const { return jobs.load(std::memory_order_relaxed) != 0; }
  bool any_next() const { return next.load(std::memory_order_relaxed) != 0; }
  bool any_own_job() const {
    for (const auto& one : own)
      if (one.load(std::memory_order_relaxed) != 0) return true;
    return false;
  }
  bool has_own_job(const seat& mine) const {
    for (unsigned i = 0; i != workers; ++i)
      if (&*seats[i] == &mine) return own[i].load(std::memory_order_relaxed) != 0;
    return false;
  }
  void ends() {
    RL_ASSERT(!any_job() && !any_next() && !any_own_job());
    how_often_ended.fetch_add(1, std::memory_order_relaxed);
  }
};

}  // namespace model
