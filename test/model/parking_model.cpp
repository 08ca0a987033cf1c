// Workers that have nothing to do, and who wakes them: no job is left with everybody asleep, and a pool that shuts down
// ends, once, with no job left. See src/sched/idle_set.hpp, parking.hpp and parker.hpp.
// Mutates: src/sched/parking.hpp
#include "crew.hpp"

namespace {

using namespace model;

// Somebody posts, then ends the pool: whoever sleeps for ever is found by relacy.
template <unsigned workers, int posts, unsigned most_awake = workers>
struct post_and_end : rl::test_suite<post_and_end<workers, posts, most_awake>, workers + 1>,
                      crew<workers, 0, false, most_awake> {
  atomic<int> ran{0};

  void before() { this->begin(); }
  void thread(unsigned which) {
    if (which == workers) {
      for (int i = 0; i != posts; ++i) this->post();
      this->shut_down();
      return;
    }
    while (this->find(which)) ran.fetch_add(1, std::memory_order_relaxed);
  }
  void after() {
    RL_ASSERT(ran.load(std::memory_order_relaxed) == posts);
    RL_ASSERT(this->how_often_ended.load(std::memory_order_relaxed) == 1);
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
    while (find(which))
      if (ran.fetch_add(1, std::memory_order_relaxed) == 0) post();
  }
  void after() {
    RL_ASSERT(ran.load(std::memory_order_relaxed) == 2);
    RL_ASSERT(how_often_ended.load(std::memory_order_relaxed) == 1);
  }
};

// Jobs that go on only when the last one has run: who takes one sees to it that somebody takes the next.
template <unsigned workers, unsigned most_awake = workers, int waiting = 1>
struct held_up : rl::test_suite<held_up<workers, most_awake, waiting>, workers + 1>,
                 crew<workers, 0, false, most_awake> {
  atomic<int> ran{0};
  atomic<std::uint32_t> both{0};

  void before() { this->begin(); }
  void thread(unsigned which) {
    if (which == workers) {
      for (int i = 0; i != waiting + 1; ++i) this->post();
      this->shut_down();
      return;
    }
    while (this->find(which)) {
      if (ran.fetch_add(1, std::memory_order_relaxed) < waiting) {
        while (both.load(std::memory_order_relaxed) == 0) word_futex{both}.wait(0, parker::time_point::max());
      } else {
        both.store(1, std::memory_order_relaxed);
        word_futex{both}.wake();
      }
    }
  }
  void after() {
    RL_ASSERT(ran.load(std::memory_order_relaxed) == waiting + 1);
    RL_ASSERT(this->how_often_ended.load(std::memory_order_relaxed) == 1);
  }
};

// A job has its worker do another one next, and waits for that, as a second job does: who watches takes it, also if the one
// that watched, or searched when it was posted, has the second.
struct behind_another : rl::test_suite<behind_another, 4>, crew<3> {
  atomic<int> ran{0};
  atomic<std::uint32_t> done{0};

  void before() {
    watches_all = true;
    begin();
  }
  void thread(unsigned which) {
    if (which == 3) {
      post();
      post();
      return;
    }
    while (find(which)) {
      const int before = ran.fetch_add(1, std::memory_order_relaxed);
      if (before == 2) {
        done.store(1, std::memory_order_relaxed);
        word_futex{done}.wake();
        shut_down();
        continue;
      }
      if (before == 0) post_next();
      while (done.load(std::memory_order_relaxed) == 0) word_futex{done}.wait(0, parker::time_point::max());
    }
  }
  void after() {
    RL_ASSERT(ran.load(std::memory_order_relaxed) == 3);
    RL_ASSERT(how_often_ended.load(std::memory_order_relaxed) == 1);
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
        this->post_to(0);
      this->shut_down();
      return;
    }
    while (this->find(which)) {
      if (ran[which].fetch_add(1, std::memory_order_relaxed) == 0 && from_inside && which == 1) this->post_to(0);
    }
  }
  void after() {
    const int first = ran[0].load(std::memory_order_relaxed), second = ran[1].load(std::memory_order_relaxed);
    if (from_inside)
      RL_ASSERT(first == 1 && (second == 0 || second == 1));
    else
      RL_ASSERT(first == 1 && second == 0);
    RL_ASSERT(this->how_often_ended.load(std::memory_order_relaxed) == 1);
  }
};

// The only worker of a pool has a job for it alone, from outside; then the end.
struct its_own_job : rl::test_suite<its_own_job, 2>, crew<1> {
  int ran = 0;

  void before() { begin(); }
  void thread(unsigned which) {
    if (which == 1) {
      post_to(0);
      shut_down();
      return;
    }
    while (find(which)) ++ran;
  }
  void after() {
    RL_ASSERT(ran == 1 && seats[0]->had_own);
    RL_ASSERT(how_often_ended.load(std::memory_order_relaxed) == 1);
  }
};

// One of two may be awake, and its job waits for one that it posts itself, until somebody else lets both be awake. The limit
// is not the watcher's to change.
struct raised : rl::test_suite<raised, 3>, crew<2> {
  atomic<int> ran{0};
  atomic<std::uint32_t> both{0};

  void before() {
    begin();
    idle_.let_wake(1);
  }
  void thread(unsigned which) {
    if (which == 2) {
      post();
      let_wake(2);
      return;
    }
    while (find(which)) {
      if (ran.fetch_add(1, std::memory_order_relaxed) == 0) {
        post();
        while (both.load(std::memory_order_relaxed) == 0) word_futex{both}.wait(0, parker::time_point::max());
      } else {
        both.store(1, std::memory_order_relaxed);
        word_futex{both}.wake();
        shut_down();
      }
    }
  }
  void after() {
    RL_ASSERT(ran.load(std::memory_order_relaxed) == 2);
    RL_ASSERT(how_often_ended.load(std::memory_order_relaxed) == 1);
  }
};

// Two become one, and each that is for one alone wakes that one; then the end.
template <bool for_one>
struct lowered : rl::test_suite<lowered<for_one>, 3>, crew<2> {
  atomic<int> ran{0};

  void before() { this->begin(); }
  void thread(unsigned which) {
    if (which == 2) {
      if (!for_one) this->post();
      this->let_wake(1);
      if (for_one)
        this->post_to(0);
      else
        this->post();
      this->shut_down();
      return;
    }
    while (this->find(which)) ran.fetch_add(1, std::memory_order_relaxed);
  }
  void after() {
    RL_ASSERT(ran.load(std::memory_order_relaxed) == (for_one ? 1 : 2));
    RL_ASSERT(this->seats[0]->had_own == for_one);
    RL_ASSERT(this->how_often_ended.load(std::memory_order_relaxed) == 1);
  }
};

// A thread that works here for the time of a call: until the job that it has posted has been run by one of the two, and
// has told it so. It comes; or the pool is ended while it is there.
template <bool comes>
struct a_caller : rl::test_suite<a_caller<comes>, 3>, crew<2, comes ? 1 : 0> {
  atomic<int> ran{0};

  void before() { this->begin(); }
  void run() {
    if (ran.fetch_add(1, std::memory_order_relaxed) == 0) this->post_to(1);
  }
  void thread(unsigned which) {
    auto& mine = *this->seats[which % 2];
    if (which == 0) {
      while (this->find(which % 2)) run();
    } else if (which == 1) {
      if (comes) this->come();
      this->post();
      while (!mine.had_own) {
        const bool found = this->find(which % 2);
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
    RL_ASSERT(this->how_often_ended.load(std::memory_order_relaxed) == 1);
  }
};

// A pool whose only worker is whoever calls. The first one comes and goes while two jobs are posted, and a second one runs what
// is left; then the end. The lock of the callers' place lies between the two.
template <bool for_one>
struct only_callers : rl::test_suite<only_callers<for_one>, 3>, crew<1, 1> {
  atomic<int> ran{0};
  atomic<bool> is_free{false};

  void before() { begin(); }
  void work(int until) {
    while (ran.load(std::memory_order_relaxed) < until) {
      const bool found = find(0);
      RL_ASSERT(found);
      ran.fetch_add(1, std::memory_order_relaxed);
    }
  }
  void thread(unsigned which) {
    if (which == 0) {
      come();
      work(1);
      go();
      is_free.store(true, std::memory_order_release);
    } else if (which == 1) {
      for (int i = 0; i != 2; ++i) {
        if (for_one)
          post_to(0);
        else
          post();
      }
    } else {
      while (!is_free.load(std::memory_order_acquire)) rl::yield(1, RL_INFO);
      come();
      work(2);
      shut_down();
      const bool found = find(0);
      RL_ASSERT(!found);
      go();
    }
  }
  void after() {
    RL_ASSERT(ran.load(std::memory_order_relaxed) == 2);
    RL_ASSERT(how_often_ended.load(std::memory_order_relaxed) == 1);
  }
};

}  // namespace

int main() {
  model::check<post_and_end<1, 2>>("1 worker, 2 jobs", 2);
  model::check<its_own_job>("1 worker, a job for it alone", 2);
  model::check_some<behind_another>("behind another, one watches");
  model::check_some<only_callers<false>>("only callers, 2 jobs", 300'000);
  model::check_some<only_callers<true>>("only callers, for it alone", 300'000);
  // Somebody says how many may be awake.
  model::check<raised>("one, then two may be awake", 1, 1'000'000);
  model::check<lowered<false>>("two, then one may be awake", 1, 1'000'000, 2);
  model::check<lowered<true>>("then one, and a job for one", 1, 1'000'000, 2);
  model::check<post_and_end<2, 1>>("2 workers, a job", 1, 1'000'000);
  model::check_some<post_and_end<2, 2>>("2 workers, 2 jobs", 1'000'000);
  model::check_some<post_and_end<3, 2>>("3 workers, 2 jobs", 1'000'000);
  model::check_some<jobs_that_post>("jobs that post", 1'000'000);
  model::check<held_up<2>>("one waits for the other", 1);
  model::check<for_one_alone<false>>("for one alone", 1, 1'000'000, 2);
  model::check_some<for_one_alone<true>>("for one alone, from inside", 1'000'000);
  // Fewer may be awake than there are, until one that watches sees that those wait.
  model::check<post_and_end<2, 2, 1>>("of 2 one may be awake", 1);
  model::check_some<post_and_end<3, 2, 1>>("of 3 one may be awake");
  model::check<held_up<2, 1>>("the one waits for the other", 1);
  model::check_some<held_up<3, 1>>("of 3 the one waits");
  model::check_some<held_up<3, 2>>("of 3 two may, and one waits");
  model::check_some<held_up<3, 1, 2>>("of 3 two wait");
  model::check<a_caller<true>>("a caller comes and goes", 1, 1'000'000, 2);
  model::check<a_caller<false>>("a caller goes, and the end", 1, 1'000'000, 2);
}
