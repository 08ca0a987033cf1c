// The jobs of a strand: each is run once, in the order in which they were put in, one at a time, and each sees what those
// before it did; whom the strand belongs to may leave it at any time, and somebody, once, sees to its end. See
// src/sched/serial_queue.hpp; who serves here does what a turn of src/pool/strand_core.cpp does.
// Mutates: src/sched/serial_queue.hpp
#include "model.hpp"
#include "sched/serial_queue.hpp"

namespace {

using namespace weft::detail;

struct letter {
  plain<letter*> next = nullptr;
  plain<int> text = 0;
};

struct strand {
  serial_queue<letter> letters;
  plain<int> turn = 0;  // the link of the job that stands for a turn: the poster's that begins it, then the server's
  plain<int> read = 0;  // by who serves
  plain<bool> ended = false;  // by who sees to its end

  void post(letter& one, int text) {
    one.text = text;
    if (!letters.put(one)) return;
    turn = turn + 1;
    serve();
  }
  void serve() {
    for (;;) {
      letter* one = letters.take();
      while (one != nullptr) {
        letter* const later = one->next;
        read = read * 10 + one->text;
        one = later;
      }
      switch (letters.leave()) {
        case serial_queue<letter>::left::idle: return;
        case serial_queue<letter>::left::more: break;
        case serial_queue<letter>::left::last: end(); return;
      }
    }
  }
  void end() {
    RL_ASSERT(!ended);
    ended = true;
    turn = turn + 1;
  }
};

// Two post: nothing is lost, and each one's letters stay in order.
struct two_post : rl::test_suite<two_post, 2> {
  strand one;
  letter all[4];

  void thread(unsigned which) {
    one.post(all[2 * which], which == 0 ? 1 : 3);
    one.post(all[2 * which + 1], which == 0 ? 2 : 4);
  }
  void after() {
    bool seen[5]{};
    int sum = 0;
    for (int left = one.read; left != 0; left /= 10) {  // the last one first
      const int text = left % 10;
      if (text == 1) RL_ASSERT(seen[2]);
      if (text == 3) RL_ASSERT(seen[4]);
      seen[text] = true;
      sum += text;
    }
    RL_ASSERT(sum == 10);
  }
};

// One posts, another one who knows that all has been run leaves it, while the turn may not have ended: one of them sees to
// its end, and sees all that both did.
struct left_while_served : rl::test_suite<left_while_served, 2> {
  strand one;
  letter only;
  atomic<int> ran{0};
  plain<int> of_owner = 0;

  void end() {
    one.end();
    of_owner = of_owner + 1;
  }
  void thread(unsigned which) {
    if (which == 0) {
      only.text = 1;
      if (!one.letters.put(only)) return;
      one.turn = one.turn + 1;
      one.read = one.letters.take()->text;
      ran.store(1, std::memory_order_relaxed);
      if (one.letters.leave() == serial_queue<letter>::left::last) end();
    } else {
      while (ran.load(std::memory_order_relaxed) == 0) rl::yield(1, RL_INFO);
      of_owner = of_owner + 1;
      if (one.letters.abandon() == serial_queue<letter>::abandoned::free) end();
    }
  }
  void after() { RL_ASSERT(one.ended && of_owner == 2); }
};

}  // namespace

int main() {
  model::check<two_post>("two post", 4);
  model::check<left_while_served>("left while it is served", 6);
}
