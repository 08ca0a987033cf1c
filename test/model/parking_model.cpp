// Workers that have nothing to do, and who wakes them: no job is left with everybody asleep, and a pool that shuts down
// ends, once, with no job left. See src/detail/idle_set.hpp, parker.hpp and resting.hpp; the workers here do what those of
// src/detail/pool_core.cpp do.
// Mutates: src/detail/idle_set.hpp
// Mutates: src/detail/resting.hpp
#include "detail/fence.hpp"
#include "detail/idle_set.hpp"
#include "detail/lock.cpp"
#include "detail/parker.hpp"
#include "detail/resting.hpp"
#include "model.hpp"

namespace {

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

// Somebody posts, then ends the pool: whoever sleeps for ever is found by relacy.
template <unsigned workers, int posts>
struct post_and_end : rl::test_suite<post_and_end<workers, posts>, workers + 1>, crew<workers> {
  atomic<int> ran{0};

  void before() { this->begin(); }
  void thread(unsigned which) {
    if (which == workers) {
      for (int i = 0; i != posts; ++i) this->post();
      this->shut_down();
      return;
    }
    while (this->find(this->seats[which])) ran.fetch_add(1, std::memory_order_relaxed);
  }
  void after() {
    RL_ASSERT(ran.load(std::memory_order_relaxed) == posts);
    RL_ASSERT(this->ends.load(std::memory_order_relaxed) == 1);
  }
};

// Each job posts another one, from inside; the pool is ended meanwhile.
struct jobs_that_post : rl::test_suite<jobs_that_post, 3>, crew<2> {
  atomic<int> ran{0};

  void before() { begin(); }
  void thread(unsigned which) {
    if (which == 2) {
      post();
      shut_down();
      return;
    }
    while (find(seats[which]))
      if (ran.fetch_add(1, std::memory_order_relaxed) == 0) post();
  }
  void after() {
    RL_ASSERT(ran.load(std::memory_order_relaxed) == 2);
    RL_ASSERT(ends.load(std::memory_order_relaxed) == 1);
  }
};

// A job for one worker alone, from outside or from another one's job; then the end.
template <bool from_inside>
struct for_one_alone : rl::test_suite<for_one_alone<from_inside>, 3>, crew<2> {
  atomic<int> ran[2]{};

  void before() { this->begin(); }
  void thread(unsigned which) {
    if (which == 2) {
      if (from_inside)
        this->post();
      else
        this->post_to(this->seats[0]);
      this->shut_down();
      return;
    }
    while (this->find(this->seats[which])) {
      if (ran[which].fetch_add(1, std::memory_order_relaxed) == 0 && from_inside && which == 1)
        this->post_to(this->seats[0]);
    }
  }
  void after() {
    const int first = ran[0].load(std::memory_order_relaxed), second = ran[1].load(std::memory_order_relaxed);
    if (from_inside)
      RL_ASSERT(first == 1 && (second == 0 || second == 1));
    else
      RL_ASSERT(first == 1 && second == 0);
    RL_ASSERT(this->ends.load(std::memory_order_relaxed) == 1);
  }
};

// A thread that works here for the time of a call: until the job that it has posted has been run by one of the two, and
// has told it so. It comes; or the pool is ended while it is there.
template <bool comes>
struct a_caller : rl::test_suite<a_caller<comes>, 3>, crew<2, comes ? 1 : 0> {
  atomic<int> ran{0};

  void before() { this->begin(); }
  void run() {
    if (ran.fetch_add(1, std::memory_order_relaxed) == 0) this->post_to(this->seats[1]);
  }
  void thread(unsigned which) {
    auto& mine = this->seats[which % 2];
    if (which == 0) {
      while (this->find(mine)) run();
    } else if (which == 1) {
      if (comes) {
        this->idle.come();
        heavy_fence();
      }
      this->post();
      while (!mine.had_own) {
        const bool found = this->find(mine);
        RL_ASSERT(found);
        if (!mine.had_own) run();
      }
      this->go();
      if (comes) this->shut_down();
    } else if (!comes) {
      this->shut_down();
    }
  }
  void after() {
    RL_ASSERT(ran.load(std::memory_order_relaxed) == 1);
    RL_ASSERT(this->ends.load(std::memory_order_relaxed) == 1);
  }
};

// A worker that rests beside one that works: it is recalled for whatever there is, or for a job for it alone, or by the end.
enum class recalled : unsigned char { by_the_end, for_its_own_job, by_who_steers };
template <recalled why>
struct one_rests : rl::test_suite<one_rests<why>, 3>, crew<2> {
  atomic<int> ran[2]{};

  void before() {
    this->begin();
    this->idle.let_rest(1);
  }
  void thread(unsigned which) {
    if (which == 2) {
      this->post();
      if (why == recalled::for_its_own_job) this->post_to(this->seats[1]);
      if (why == recalled::by_who_steers) {
        this->idle.let_rest(0);
        this->wake(this->idle.recall_any());
        this->post();
      }
      this->shut_down();
      return;
    }
    if (which == 1) this->rest(this->seats[1]);
    while (this->find(this->seats[which])) {
      ran[which].fetch_add(1, std::memory_order_relaxed);
      if (which == 1) this->rest(this->seats[1]);
    }
  }
  void after() {
    const int first = ran[0].load(std::memory_order_relaxed), second = ran[1].load(std::memory_order_relaxed);
    RL_ASSERT(first + second == (why == recalled::by_the_end ? 1 : 2));
    if (why == recalled::for_its_own_job) RL_ASSERT(second >= 1);
    RL_ASSERT(this->ends.load(std::memory_order_relaxed) == 1);
  }
};

// Who steers sleeps without a time while all others sleep, and sees each time that one does not.
struct steered : rl::test_suite<steered, 3>, crew<1> {
  steering_bed steers;
  atomic<bool> ran{false};

  void before() { begin(); }
  void thread(unsigned which) {
    if (which == 1) return post();
    if (which == 2) {
      const auto over = [this] { return ran.load(std::memory_order_relaxed); };
      do steers.sleep(idle, true, parker::time_point::max(), [&] { return over() || !idle.all_inside(); });
      while (idle.all_inside() && !over());
      return;
    }
    seat& mine = seats[0];
    while (!take(mine)) {
      mine.sleeps.prepare();
      idle.enter(mine, false);
      heavy_fence();
      if (jobs.load(std::memory_order_relaxed) == 0) mine.sleeps.commit(parker::time_point::max());
      idle.leave(mine);
      idle.stop_search();
      steers.notice();
    }
    ran.store(true, std::memory_order_relaxed);
  }
};

}  // namespace

int main() {
  model::check<post_and_end<1, 2>>("1 worker, 2 jobs", 2);
  model::check<post_and_end<2, 1>>("2 workers, a job", 1);
  model::check_some<post_and_end<2, 1>>("2 workers, a job", 500'000);
  model::check_some<post_and_end<2, 2>>("2 workers, 2 jobs", 500'000);
  model::check_some<post_and_end<3, 2>>("3 workers, 2 jobs", 200'000);
  model::check_some<jobs_that_post>("jobs that post", 500'000);
  model::check<for_one_alone<false>>("for one alone", 1);
  model::check_some<for_one_alone<true>>("for one alone, from inside", 200'000);
  model::check<a_caller<true>>("a caller comes and goes", 1);
  model::check<a_caller<false>>("a caller goes, and the end", 1);
  model::check_some<one_rests<recalled::by_the_end>>("one rests until the end", 200'000);
  model::check_some<one_rests<recalled::for_its_own_job>>("one rests, a job for it", 200'000);
  model::check_some<one_rests<recalled::by_who_steers>>("one rests and is recalled", 200'000);
  model::check<steered>("who steers sleeps", 2);
}
