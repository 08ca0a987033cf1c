// Workers that come and go: a caller that works for the time of a call, one that rests, who steers. As in parking_model.cpp,
// no job is left with everybody asleep, and the end comes once. See src/detail/parking.hpp and resting.hpp.
// Mutates: src/detail/resting.hpp
#include "crew.hpp"

namespace {

using namespace model;

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

// A worker that rests beside one that works: it is recalled for whatever there is, or for a job for it alone, or by the end.
enum class recalled : unsigned char { by_the_end, for_its_own_job, by_who_steers };
template <recalled why>
struct one_rests : rl::test_suite<one_rests<why>, 3>, crew<2> {
  atomic<int> ran[2]{};

  void before() {
    this->begin();
    this->idle_.let_rest(1);
  }
  void thread(unsigned which) {
    if (which == 2) {
      this->post();
      if (why == recalled::for_its_own_job) this->post_to(1);
      if (why == recalled::by_who_steers) {
        this->idle_.let_rest(0);
        if (idler* one = this->idle_.recall_any(); one != nullptr) this->wake(*one);
        this->post();
      }
      this->shut_down();
      return;
    }
    if (which == 1) this->rest(1);
    while (this->find(which)) {
      ran[which].fetch_add(1, std::memory_order_relaxed);
      if (which == 1) this->rest(1);
    }
  }
  void after() {
    const int first = ran[0].load(std::memory_order_relaxed), second = ran[1].load(std::memory_order_relaxed);
    RL_ASSERT(first + second == (why == recalled::by_the_end ? 1 : 2));
    if (why == recalled::for_its_own_job) RL_ASSERT(second >= 1);
    RL_ASSERT(this->how_often_ended.load(std::memory_order_relaxed) == 1);
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
      do steers.sleep(idle_, true, parker::time_point::max(), [&] { return over() || !idle_.all_inside(); });
      while (idle_.all_inside() && !over());
      return;
    }
    seat& mine = *seats[0];
    while (!take(0)) {
      if (fall_asleep(mine, false) != nap::has_job) {
        mine.sleeps.commit(parker::time_point::max());
        woke(mine);
      }
      idle_.stop_search();
      steers.notice();
    }
    ran.store(true, std::memory_order_relaxed);
  }
};

}  // namespace

int main() {
  model::check<a_caller<true>>("a caller comes and goes", 1, 1'000'000, 2);
  model::check<a_caller<false>>("a caller goes, and the end", 1, 1'000'000, 2);
  model::check<one_rests<recalled::by_the_end>>("one rests until the end", 2);
  model::check_some<one_rests<recalled::for_its_own_job>>("one rests, a job for it", 1'000'000);
  model::check_some<one_rests<recalled::by_who_steers>>("one rests and is recalled", 1'000'000);
  model::check<steered>("who steers sleeps", 2);
}
