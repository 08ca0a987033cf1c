// Workers of a pool that do what those of src/detail/pool_core.cpp do, but for the jobs: of these there are only counts. For
// parking_model.cpp and resting_model.cpp, which say what they do.
#pragma once

#include "detail/fence.hpp"
#include "detail/idle_set.hpp"
#include "detail/lock.cpp"
#include "detail/parker.hpp"
#include "detail/resting.hpp"
#include "model.hpp"

namespace model {

using namespace weft::detail;

template <unsigned workers, unsigned away = 0>
struct crew {
  struct seat : idler {
    futex_parker sleeps;
    bool had_own = false;
  };

  bed one;
  idle_set idle{workers - away};
  atomic<int> jobs{0};         // a queue, without what is in it
  atomic<int> own[workers]{};  // the same for what one worker alone may run
  atomic<bool> closing{false}, ended{false};
  atomic<int> ends{0};
  seat seats[workers];

  void begin() { bed::all = &one; }
  void wake(idler* who) {
    if (who != nullptr) static_cast<seat*>(who)->sleeps.wake();
  }
  void post(bool hot = false) {
    jobs.fetch_add(1, std::memory_order_relaxed);
    light_fence();
    wake(idle.pick(hot));
  }
  void post_to(seat& one) {
    own_of(one).fetch_add(1, std::memory_order_relaxed);
    light_fence();
    if (idle.pick(one)) wake(&one);
  }
  atomic<int>& own_of(const seat& one) { return own[&one - seats]; }
  static bool take_from(atomic<int>& queue) {
    int seen = queue.load(std::memory_order_relaxed);
    while (seen > 0)
      if (queue.compare_exchange_weak(seen, seen - 1, std::memory_order_relaxed, std::memory_order_relaxed))
        return true;
    return false;
  }
  bool take_own(seat& mine) { return take_from(own_of(mine)) && (mine.had_own = true); }
  bool take(seat& mine) { return take_own(mine) || take_from(jobs); }
  // As pool_core::leave_as_caller.
  void go() {
    idle.go();
    heavy_fence();
    if (closing.load(std::memory_order_relaxed))
      wake(idle.pick_any());
    else if (jobs.load(std::memory_order_relaxed) != 0)
      wake(idle.pick());
  }
  bool any_own() {
    for (auto& one : own)
      if (one.load(std::memory_order_relaxed) != 0) return true;
    return false;
  }
  void shut_down() {
    closing.store(true, std::memory_order_relaxed);
    heavy_fence();
    wake(idle.pick_any());
  }
  // As pool_core::rest.
  void rest(seat& mine) {
    const auto see_to_others = [this] {
      if (closing.load(std::memory_order_relaxed))
        wake(idle.pick_any());
      else if (jobs.load(std::memory_order_relaxed) != 0)
        wake(idle.pick());
    };
    const auto has_own = [&] { return own_of(mine).load(std::memory_order_relaxed) != 0; };
    rest_until_recalled(idle, mine, see_to_others, has_own, [&] { mine.sleeps.commit(parker::time_point::max()); });
  }
  // As pool_core::look_elsewhere. False: it has ended.
  bool find(seat& mine) {
    if (take_own(mine)) return true;
    if (idle.may_rest()) rest(mine);
    bool searches = idle.start_search();
    for (;;) {
      if (searches && take(mine)) {
        if (idle.stop_search()) {
          heavy_fence();
          if (jobs.load(std::memory_order_relaxed) != 0) {
            light_fence();
            wake(idle.pick());
          }
        }
        return true;
      }
      mine.sleeps.prepare();
      const idle_set::entered how = idle.enter(mine, searches);
      heavy_fence();
      if (ended.load(std::memory_order_relaxed)) return false;
      if (jobs.load(std::memory_order_relaxed) != 0 || own_of(mine).load(std::memory_order_relaxed) != 0) {
        idle.leave(mine);
      } else if (closing.load(std::memory_order_relaxed) && how == idle_set::entered::last && !any_own() &&
                 idle.close_since(mine)) {
        ended.store(true, std::memory_order_relaxed);
        heavy_fence();
        RL_ASSERT(jobs.load(std::memory_order_relaxed) == 0 && !any_own());
        ends.fetch_add(1, std::memory_order_relaxed);
        while (idler* other = idle.pick_any()) wake(other);
        while (idler* other = idle.recall_any()) wake(other);
        return false;
      } else {
        mine.sleeps.commit(parker::time_point::max());
        idle.leave(mine);
        if (ended.load(std::memory_order_relaxed)) return false;
      }
      searches = true;
    }
  }
};

}  // namespace model
