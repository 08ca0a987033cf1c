// A worker's deque: each job is taken once, by its owner or by a thief, with all that was written before it was pushed.
// See src/sched/deque.hpp.
// Mutates: src/sched/deque.hpp
#include "sched/deque.hpp"

#include "base/lock.cpp"
#include "model.hpp"

namespace {

using namespace weft::detail;

struct work {
  plain<int> text = 0;  // by who pushes, before; by who takes, after
  plain<int> taken = 0;
};

template <unsigned thieves>
struct bench {
  deque<work, 2> jobs;
  work all[4];
  int taken[thieves + 1]{};

  void take(work* one, unsigned by) {
    RL_ASSERT(one->text == 1);
    one->taken = one->taken + 1;
    RL_ASSERT(one->taken == 1);
    ++taken[by];
  }
  bool push(unsigned which) {
    all[which].text = 1;
    return jobs.push(all[which]) || jobs.push_beyond(all[which]);
  }
  bool pop() {
    work* const one = jobs.pop();
    if (one != nullptr) take(one, thieves);
    return one != nullptr;
  }
  // As a join takes back what it has offered.
  bool take_back(unsigned which) {
    work& one = all[which];
    if (!jobs.pop_before_last(one) && !jobs.pop(one) && !jobs.pop_stored(one)) return false;
    take(&one, thieves);
    return true;
  }
  bool pop_stored() {
    work* const one = jobs.pop_stored();
    if (one != nullptr) take(one, thieves);
    return one != nullptr;
  }
  void steal(unsigned thief) {
    work* one = nullptr;
    if (jobs.steal(one) == theft::done) take(one, thief);
  }
  // Whatever is left at the end, the owner finds.
  void expect_all(int pushed) {
    while (pop() || pop_stored()) {
    }
    int sum = 0;
    for (const int one : taken) sum += one;
    RL_ASSERT(sum == pushed);
    RL_ASSERT(jobs.empty());
  }
};

// The last job, wanted by its owner and by two thieves; and a new one in its place.
struct last_job : rl::test_suite<last_job, 3>, bench<2> {
  void thread(unsigned which) {
    if (which != 2) return steal(which);
    push(0);
    if (pop()) RL_ASSERT(jobs.empty());
    push(1);
    pop();
  }
  void after() { expect_all(2); }
};

// More than one, and thieves that meet at the top.
struct several : rl::test_suite<several, 3>, bench<2> {
  void thread(unsigned which) {
    if (which != 2) return steal(which);
    push(0);
    push(1);
    pop();
    pop();
  }
  void after() { expect_all(2); }
};

// A join's own job, and that of one outside it.
struct joins : rl::test_suite<joins, 3>, bench<2> {
  void thread(unsigned which) {
    if (which != 2) return steal(which);
    push(0);
    push(1);
    if (!take_back(1)) RL_ASSERT(!take_back(0));  // the oldest goes first
    take_back(0);
  }
  void after() { expect_all(2); }
};

// One that its owner changes while it lies there, as a join does that goes on with the next child.
struct changed : rl::test_suite<changed, 2>, bench<1> {
  void thread(unsigned which) {
    if (which == 0) {
      steal(0);
      return steal(0);
    }
    push(0);
    push(1);
    jobs.change_before_last(all[1], [this] { all[1].text = 1; });
    RL_ASSERT(!jobs.change_before_last(all[0], [] {}));  // not the newest, or the last one
    pop();
  }
  void after() { expect_all(2); }
};

// More jobs than the two slots: the oldest go to the store, come back from there, and a slot is used again when a thief
// has gone.
template <unsigned thieves, int steals, unsigned all_in_all>
struct grown : rl::test_suite<grown<thieves, steals, all_in_all>, thieves + 1>, bench<thieves> {
  void thread(unsigned which) {
    if (which != thieves) {
      for (int i = 0; i != steals; ++i) this->steal(which);
      return;
    }
    for (unsigned i = 0; i != all_in_all; ++i) RL_ASSERT(this->push(i));
    this->pop();
    for (unsigned i = all_in_all - 1; i-- != 0;) this->take_back(i);
  }
  void after() { this->expect_all(all_in_all); }
};

// What was pushed before others were pushed and popped is seen, too.
struct below : rl::test_suite<below, 2>, bench<1> {
  void thread(unsigned which) {
    if (which == 0) return steal(0);
    push(0);
    push(1);
    pop();
  }
  void after() { expect_all(2); }
};

}  // namespace

int main() {
  model::check<last_job>("last job", 3);
  model::check<several>("several", 3);
  model::check<joins>("joins", 3);
  model::check<changed>("changed", 4);
  model::check<grown<1, 2, 3>>("grown", 2);
  model::check<grown<2, 1, 3>>("grown, two thieves", 2);
  model::check_some<grown<2, 2, 4>>("grown twice, two thieves", 200'000);
  model::check_all<below>("below");
}
