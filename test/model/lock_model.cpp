// The biased lock: its owner against others, who revoke the ownership, become the next owner, and have that revoked.
// Mutates: include/weft/detail/sync/learning_lock.hpp src/sync/lock_here.hpp src/sync/learning_lock.cpp
#include "model.hpp"
#include "sync/learning_lock.cpp"

namespace {

using weft::detail::learning_lock;
using weft::detail::plain;

// One use in a row is enough, so the third one is an owner's.
struct counted {
  learning_lock lock{1};
  plain<int> uses = 0;
  void use(int times) {
    for (int i = 0; i != times; ++i) {
      lock.lock();
      uses = uses + 1;
      lock.unlock();
    }
  }
};

// One becomes the owner, and another one comes.
struct owner_and_other : rl::test_suite<owner_and_other, 2> {
  counted all;
  void thread(unsigned which) { all.use(which == 0 ? 4 : 1); }
  void after() { RL_ASSERT(all.uses == 5); }
};

// Each becomes the owner, and loses the ownership.
struct one_after_the_other : rl::test_suite<one_after_the_other, 2> {
  counted all;
  void thread(unsigned) { all.use(5); }
  void after() { RL_ASSERT(all.uses == 10); }
};

// While one whose ownership was revoked sets its flag and clears it, the next owner and a third one take the lock.
struct three : rl::test_suite<three, 3> {
  counted all;
  void thread(unsigned which) { all.use(which == 2 ? 2 : 4); }
  void after() { RL_ASSERT(all.uses == 10); }
};

}  // namespace

int main() {
  model::check<owner_and_other>("an owner and another", 3);
  model::check<one_after_the_other>("one after the other", 2);
  model::check<three>("three", 2);
}
