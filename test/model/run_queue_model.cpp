// A worker's line of jobs and what comes from outside: each job is taken once, by the owner, who pays no fence, or by a
// thief. See src/base/biased_lock.hpp, run_queue.hpp and injection.hpp.
// Mutates: src/base/biased_lock.hpp
// Mutates: src/sched/run_queue.hpp
#include "base/lock.cpp"
#include "model.hpp"
#include "sched/injection.hpp"
#include "sched/run_queue.hpp"

namespace {

using namespace weft::detail;

struct letter {
  plain<letter*> next = nullptr;
  plain<int> text = 0;
};

// The owner and two others change one number.
struct sections : rl::test_suite<sections, 3> {
  biased_lock lock;
  plain<int> changed = 0;
  int tried[3]{};

  void thread(unsigned which) {
    if (which == 0) {
      for (int i = 0; i != 2; ++i) {
        lock.enter();
        changed = changed + 1;
        lock.leave();
        ++tried[0];
      }
    } else if (lock.try_lock()) {
      changed = changed + 1;
      lock.unlock();
      ++tried[which];
    }
  }
  void after() { RL_ASSERT(changed == tried[0] + tried[1] + tried[2]); }
};

// The same where the kernel makes no fences.
struct fences_cost {
  fences_cost() { fences_are_free = false; }
  ~fences_cost() { fences_are_free = true; }
};
struct sections_with_fences : fences_cost, rl::test_suite<sections_with_fences, 2> {
  sections all;
  void thread(unsigned which) { all.thread(which); }
  void after() { all.after(); }
};

// A thief takes half, and once what is next, too.
struct theft_and_pop : rl::test_suite<theft_and_pop, 2> {
  run_queue<letter, 2, 4> line;
  letter all[4], last;
  int seen[2]{}, left = 0;

  void read(unsigned by, letter* one) { seen[by] += one->text; }
  void thread(unsigned which) {
    if (which == 1) {
      for (const bool also_next : {false, true}) {
        letter* some[decltype(line)::most_stolen];
        const std::size_t count = line.steal(some, also_next);
        for (std::size_t i = 0; i != count; ++i) read(1, some[i]);
      }
      return;
    }
    bool first;
    for (int i = 0, text = 1; i != 4; ++i, text *= 10) {
      all[i].text = text;
      RL_ASSERT(line.room() != 0);
      if (i == 2)
        RL_ASSERT(line.push_next(all[i], first) == nullptr);
      else
        RL_ASSERT(line.push(all[i]));
    }
    if (letter* one = line.pop()) read(0, one);
    if (letter* one = line.leave_for(last, [](letter& next) { return next.text != 10; })) {
      left = last.text = 10000;
      line.has_left();
      read(0, one);
    }
  }
  void after() {
    while (letter* one = line.pop()) read(0, one);
    RL_ASSERT(seen[0] + seen[1] == 1111 + left);
    RL_ASSERT(line.empty());
  }
};

// The slot: filled without the lock, emptied by its owner or a thief.
struct next_and_thefts : rl::test_suite<next_and_thefts, 2> {
  run_queue<letter, 2, 4> line;
  letter all[4];
  int seen[2]{};

  void take(unsigned by, letter* one) {
    seen[by] += one->text;
    one->text = 0;  // whoever else had it would be seen
  }
  void thread(unsigned which) {
    if (which == 1) {
      for (int i = 0; i != 2; ++i) {
        letter* some[decltype(line)::most_stolen];
        const std::size_t count = line.steal(some, true);
        for (std::size_t k = 0; k != count; ++k) take(1, some[k]);
      }
      return;
    }
    for (int i = 0, text = 1; i != 4; ++i, text *= 10) {
      all[i].text = text;
      bool first;
      RL_ASSERT(line.push_next(all[i], first) == nullptr);
      if (i == 3) RL_ASSERT(line.put_next_behind() && !line.has_next());
      if (i != 1)
        if (letter* one = line.pop()) take(0, one);
    }
  }
  void after() {
    while (letter* one = line.pop()) take(0, one);
    RL_ASSERT(seen[0] + seen[1] == 1111);
    RL_ASSERT(line.empty());
  }
};

// The owner takes only what it wants, what is next or the first of the line, and puts another one behind, which is not ready
// until it says so.
struct leaving_and_thefts : rl::test_suite<leaving_and_thefts, 2> {
  run_queue<letter, 2, 4> line;
  letter all[3], last[3];
  int seen[2]{}, sent = 0;

  void take(unsigned by, letter* one) {
    RL_ASSERT(one->text != 0);
    seen[by] += one->text;
    one->text = 0;  // as above
  }
  void thread(unsigned which) {
    if (which == 1) {
      for (int i = 0; i != 2; ++i) {
        letter* some[decltype(line)::most_stolen];
        const std::size_t count = line.steal(some, true);
        for (std::size_t k = 0; k != count; ++k) take(1, some[k]);
      }
      return;
    }
    bool first;
    for (int i = 0, text = 1; i != 3; ++i, text *= 10) {
      all[i].text = text;
      sent += text;
      if (i == 0)
        RL_ASSERT(line.push_next(all[i], first) == nullptr);
      else
        RL_ASSERT(line.push(all[i]));
      RL_ASSERT(line.leave_for(last[i], [](letter&) { return false; }) == nullptr);
      if (letter* one = line.leave_for(last[i], [](letter&) { return true; })) {
        last[i].text = 1000 * text;
        sent += 1000 * text;
        line.has_left();
        take(0, one);
      }
    }
  }
  void after() {
    while (letter* one = line.pop()) take(0, one);
    RL_ASSERT(seen[0] + seen[1] == sent);
    RL_ASSERT(line.empty());
  }
};

// Two put, two take.
struct from_outside : rl::test_suite<from_outside, 4> {
  injection<letter> box;
  letter all[3];
  int seen[4]{};

  void take(unsigned by) {
    letter* some[2];
    const std::size_t count = box.take(some, 2, 2);
    for (std::size_t i = 0; i != count; ++i) seen[by] += some[i]->text;
  }
  void thread(unsigned which) {
    if (which == 0) {
      all[0].text = 1;
      all[1].text = 10;
      all[1].next = &all[0];
      box.put(all[1], all[0]);
    } else if (which == 1) {
      all[2].text = 100;
      box.put(all[2]);
    } else {
      take(which);
      take(which);
    }
  }
  void after() {
    while (!box.empty()) take(0);
    RL_ASSERT(seen[0] + seen[2] + seen[3] == 111);
  }
};

}  // namespace

int main() {
  model::check<sections>("sections", 3);
  model::check<sections_with_fences>("sections, fences cost", 3);
  model::check<theft_and_pop>("theft and pop", 3);
  model::check<next_and_thefts>("next and thefts", 3);
  model::check<leaving_and_thefts>("leaving and thefts", 3);
  model::check<from_outside>("from outside", 2);
}
