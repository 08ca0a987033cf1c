// The inboxes: what several threads put in is taken once, with all that was written before. See weft/detail/base/inbox.hpp.
// Mutates: include/weft/detail/base/inbox.hpp src/sched/sleeping_inbox.hpp
#include "model.hpp"
#include "sched/sleeping_inbox.hpp"

namespace {

using namespace weft::detail;

struct letter {
  plain<letter*> next = nullptr;
  plain<int> text = 0;
};

// Two put, a third takes meanwhile, and the rest at last.
struct put_and_take : rl::test_suite<put_and_take, 3> {
  inbox<letter> box;
  letter first[2], second;
  int seen = 0;

  void read(letter* oldest) {
    for (; oldest != nullptr; oldest = oldest->next) seen += oldest->text;
  }
  void thread(unsigned which) {
    if (which == 0) {
      first[0].text = 1;
      first[1].text = 10;
      box.put(first[0]);
      box.put(first[1]);
    } else if (which == 1) {
      second.text = 100;
      box.put(second);
    } else {
      read(box.take());
    }
  }
  void after() {
    read(box.take());
    RL_ASSERT(seen == 111);
    RL_ASSERT(box.empty());
  }
};

// The owner sleeps while there is nothing: relacy finds one that nobody wakes. A letter is gone when it was read.
struct sleep_and_wake : rl::test_suite<sleep_and_wake, 3> {
  bed one;
  sleeping_inbox<letter> box;
  letter first, second;

  void before() { bed::all = &one; }
  void thread(unsigned which) {
    if (which < 2) {
      letter& mine = which == 0 ? first : second;
      mine.text = 1;
      box.put(mine);
      return;
    }
    for (int seen = 0; seen < 2;) {
      letter* got = box.take();
      if (got == nullptr) box.sleep();
      while (got != nullptr) {
        letter* later = got->next;
        seen += got->text;
        got->text = 0;
        got = later;
      }
    }
  }
};

}  // namespace

int main() {
  model::check_all<put_and_take>("put and take");
  model::check<sleep_and_wake>("sleep and wake", 3);
}
