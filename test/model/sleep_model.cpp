// Workers that sleep in what the kernel watches for them: a request that another thread puts into their inbox is found or
// wakes them; what the kernel reports is reported on, and a pool that ends meanwhile ends. See
// src/sched/sleep_word.hpp and weft/detail/io/requests.hpp; the steps around them are those of uring_worker and epoll_parker.
// Mutates: src/sched/sleep_word.hpp include/weft/detail/io/requests.hpp
#include <weft/detail/base/inbox.hpp>
#include <weft/detail/io/requests.hpp>

#include "crew.hpp"
#include "sched/sleep_word.hpp"

namespace {

using namespace model;

// What a worker waits in: reports a change once, as an edge-triggered eventfd or a multishot poll does. As in
// model/base/futex.hpp, it has an edge of its own only where somebody slept.
class kernel {
 public:
  void change(bool is_socket) {
    lock_.lock(RL_INFO);
    has_changed_ = true;
    sockets_ += is_socket ? 1 : 0;
    changed_.notify_all(RL_INFO);
    lock_.unlock(RL_INFO);
  }
  // How many sockets have become ready.
  int wait() {
    lock_.lock(RL_INFO);
    if (!has_changed_) changed_.wait(lock_, RL_INFO);
    has_changed_ = false;
    const int found = std::exchange(sockets_, 0);
    lock_.unlock(RL_INFO);
    return found;
  }

 private:
  rl::mutex lock_;
  rl::condition_variable changed_;
  bool has_changed_ = false;
  int sockets_ = 0;
};

// ---- what others ask of a worker ----------------------------------------------------------------------------------------------

struct watched {
  requests asks;
  plain<watched*> next = nullptr;
  plain<int> told = 0;  // by who asks, one after the other; read by the owner
};

// Each of two has the owner do something, with a descriptor of its own or with the same one. The owner sleeps on its word until
// it has been asked for the first time, and in its ring from then on.
template <bool same>
struct asked : rl::test_suite<asked<same>, 3> {
  bed one;
  kernel ring;
  sleep_word word;
  inbox<watched> box;
  watched all[2];
  std::uint32_t done = 0;

  void before() { bed::all = &one; }
  void perform(watched* oldest) {
    while (oldest != nullptr) {
      watched& it = *oldest;
      oldest = it.next;
      const std::uint32_t what = it.asks.take();
      if (!same) RL_ASSERT(it.told == 1);
      done |= what << (&it == &all[1] ? 1 : 0);
    }
  }
  void thread(unsigned which) {
    if (which != 2) {
      watched& mine = all[same ? 0 : which];
      if (!same) mine.told = 1;
      if (!mine.asks.add(same ? 1 + which : 1)) return;
      box.put(mine);
      word.wake([this] { ring.change(false); });
      return;
    }
    while (done != 3) {
      if (!box.empty()) perform(box.take());
      if (done == 3) break;
      word.prepare();
      const bool uses_ring = done != 0;
      if (!word.fall_asleep(uses_ring ? sleep_word::in_kernel : sleep_word::on_word)) continue;
      if (!box.empty())
        perform(box.take());
      else if (uses_ring)
        ring.wait();
      else
        word.sleep_on_word(parker::time_point::max());
      word.rise();
    }
  }
};

// What is asked for a second time, before it was done, is done with what was written before that.
struct asked_twice : rl::test_suite<asked_twice, 2> {
  inbox<watched> box;
  watched one;
  bool is_retired = false;

  void thread(unsigned which) {
    if (which == 0) {
      if (one.asks.add(1)) box.put(one);
      one.told = 1;
      if (one.asks.add(2)) box.put(one);
    } else {
      look();
    }
  }
  void look() {
    for (watched *it = box.take(), *later; it != nullptr; it = later) {
      later = it->next;
      if ((it->asks.take() & 2) == 0) continue;
      RL_ASSERT(it->told == 1 && !is_retired);
      is_retired = true;
    }
  }
  void after() {
    look();
    RL_ASSERT(is_retired && !one.asks.any());
  }
};

// ---- sockets, and the end of the pool -----------------------------------------------------------------------------------------

// As uring_worker, or, where several have the same, as epoll_parker; what the kernel reports is posted when it is awake.
struct kernel_parker final : parker {
  sleep_word word;
  kernel own, *watched_in = &own;
  atomic<std::uint32_t>* turn = nullptr;  // of who waits there, where it is not its own
  int ready = 0;
  void (*post)(void*) = nullptr;
  void* to = nullptr;

  void prepare() noexcept override { word.prepare(); }
  void commit(time_point until) noexcept override {
    if (turn == nullptr || turn->exchange(1, std::memory_order_acquire) == 0) {
      if (word.fall_asleep(sleep_word::in_kernel)) ready += watched_in->wait();
      if (turn != nullptr) turn->store(0, std::memory_order_release);
      word.rise();
    } else if (word.fall_asleep(sleep_word::on_word)) {
      word.sleep_on_word(until);
    }
  }
  void wake() noexcept override {
    word.wake([in = watched_in] { in->change(false); });
  }
  bool poll(bool) noexcept override {
    const bool any = ready != 0;
    for (; ready != 0; --ready) post(to);
    return any;
  }
};

// A socket becomes ready while a worker sleeps, or is about to. A task waits for it, and ends the pool; or nobody waits any
// more, and somebody ends the pool meanwhile, which ends once, with everybody awake.
template <bool shared, bool is_waited_for>
struct ready : rl::test_suite<ready<shared, is_waited_for>, 3>, crew<2, 0, true, 2, kernel_parker> {
  using all = crew<2, 0, true, 2, kernel_parker>;
  kernel both;
  atomic<std::uint32_t> turn{0};
  atomic<int> ran{0};

  void before() {
    this->begin();
    for (auto& one : this->seats) {
      kernel_parker& sleeps = one->sleeps;
      sleeps.to = this;
      sleeps.post = [](void* to) {
        if (is_waited_for) static_cast<ready*>(to)->all::post();
      };
      if (!shared) continue;
      sleeps.watched_in = &both;
      sleeps.turn = &turn;
    }
  }
  void thread(unsigned which) {
    if (which == 2) {
      (shared ? both : this->seats[0]->sleeps.own).change(true);
      if (!is_waited_for) this->shut_down();
      return;
    }
    while (this->find(which)) {
      ran.fetch_add(1, std::memory_order_relaxed);
      this->shut_down();
    }
  }
  void after() {
    RL_ASSERT(ran.load(std::memory_order_relaxed) == (is_waited_for ? 1 : 0));
    RL_ASSERT(this->how_often_ended.load(std::memory_order_relaxed) == 1);
  }
};

}  // namespace

int main() {
  model::check_all<asked_twice>("asked twice");
  model::check<asked<false>>("two descriptors", 2, 100'000, 3);
  model::check<asked<true>>("two requests for one", 2, 100'000, 3);
  model::check<ready<false, true>>("a ring reports", 1);
  model::check<ready<false, false>>("a ring, and the end", 1);
  model::check<ready<true, true>>("a set reports", 1);
  model::check<ready<true, false>>("a set, and the end", 1);
}
