// The children of a when_all: taken by another thread while the parent takes them back, given roots of their own when
// one waits while others run, stopped meanwhile; and the end, which whoever comes last brings about. See
// join/join.hpp. The deque between the threads has a model of its own, here it is room for one job
// (sched/pool_worker.hpp).
// Mutates: src/join/join.cpp
#define MODEL_JOINS 1
#include <cstddef>
#include <new>
#include <optional>
#include <tuple>
#include <weft/combine.hpp>
#include <weft/future.hpp>

#include "join/join.cpp"
#include "join/join_borrow.cpp"
#include "world.hpp"
//
#include <weft/detail/core/walk.hpp>

// No model walks.
const weft::detail::wait_children weft::detail::join::walk{};

namespace weft::detail {

// All frames are of one memory here.
ambient_memory::ambient_memory(frame_source* source) noexcept : outer_{source} {}
ambient_memory::~ambient_memory() { outer_ = nullptr; }

}  // namespace weft::detail

namespace {

using model::run;
using model::watched;
using weft::future;
using weft::promise;
using weft::stop_source;
using weft::task;
using weft::when_all;

// The first thread joins, and does what nobody has taken before it blocks, as a worker does; others take from it.
template <class Scenario, unsigned threads>
struct joins : rl::test_suite<Scenario, threads>, model::world {
  weft::detail::pool_worker seats[threads];
  model::plain<int> begun[3];
  bool ended = false;

  void before() {
    this->begin();
    for (unsigned i = 0; i != threads; ++i) weft::detail::workers[i].of_pool = &seats[i];
    weft::detail::workers[0].before_it_blocks = [](weft::detail::worker& here) {
      weft::job* const left = here.of_pool->forks.steal();
      if (left != nullptr) left->run(*left);
      return left != nullptr;
    };
    for (auto& one : begun) one = 0;
  }
  void after() {}

  void steal(unsigned from) {
    if (weft::job* const taken = seats[from].forks.steal()) taken->run(*taken);
  }
  task<watched> give(int which) {
    begun[which] = begun[which] + 1;
    co_return watched{which + 1};
  }
};

// One of two is taken, or not.
struct take_one : joins<take_one, 2> {
  task<> both() {
    const auto [a, b] = co_await when_all(give(0), give(1));
    RL_ASSERT(a.get() == 1 && b.get() == 2);
  }
  void thread(unsigned which) {
    if (which == 1) return steal(0);
    RL_ASSERT(run(both()));
    RL_ASSERT(begun[0] == 1 && begun[1] == 1);
  }
};

// The rest of three is taken by one thief, who leaves a part of it to another.
struct take_several : joins<take_several, 3> {
  task<> all() {
    const auto [a, b, c] = co_await when_all(give(0), give(1), give(2));
    RL_ASSERT(a.get() == 1 && b.get() == 2 && c.get() == 3);
  }
  void thread(unsigned which) {
    if (which == 2) return steal(1);
    if (which == 1) {
      steal(0);
      return steal(1);
    }
    RL_ASSERT(run(all()));
    RL_ASSERT(begun[0] == 1 && begun[1] == 1 && begun[2] == 1);
  }
};

// A join in a join: the inner one finds the place for its job taken, or free again.
struct take_nested : joins<take_nested, 2> {
  task<watched> inner() {
    auto [a, b] = co_await when_all(give(0), give(1));
    co_return watched{a.get() + b.get()};
  }
  task<> outer() {
    const auto [a, c] = co_await when_all(inner(), give(2));
    RL_ASSERT(a.get() == 3 && c.get() == 3);
  }
  void thread(unsigned which) {
    if (which == 1) return steal(0);
    RL_ASSERT(run(outer()));
    RL_ASSERT(begun[0] == 1 && begun[1] == 1 && begun[2] == 1);
  }
};

// Children that are made as they begin: the rest of three is taken, made there, and a part of it left to another thief; or its
// owner makes it, beside them.
struct take_made : joins<take_made, 3> {
  model::plain<int> made[3];

  task<> all() {
    const auto child = [this](std::size_t which) {
      made[which] = made[which] + 1;
      return give(static_cast<int>(which));
    };
    int which = 0;
    for (const watched& one : co_await when_all(3, child)) RL_ASSERT(one.get() == ++which);
  }
  void thread(unsigned which) {
    if (which == 2) return steal(1);
    if (which == 1) {
      steal(0);
      return steal(1);
    }
    for (auto& one : made) one = 0;
    RL_ASSERT(run(all()));
    for (int i = 0; i != 3; ++i) RL_ASSERT(made[i] == 1 && begun[i] == 1);
  }
};

// One of two that are made is taken, and can't be made there, or here.
struct take_one_that_fails : joins<take_one_that_fails, 2> {
  task<> both() {
    const auto child = [this](std::size_t which) {
      if (which == 1) throw std::bad_alloc{};
      return give(static_cast<int>(which));
    };
    bool failed = false;
    try {
      co_await when_all(2, child, std::ignore);
    } catch (const std::bad_alloc&) {
      failed = true;
    }
    RL_ASSERT(failed);
  }
  void thread(unsigned which) {
    if (which == 1) return steal(0);
    RL_ASSERT(run(both()));
    RL_ASSERT(begun[0] == 1);
  }
};

template <class Scenario, unsigned threads>
struct joins_and_value : joins<Scenario, threads> {
  std::optional<promise<watched>> set;
  std::optional<future<watched>> outcome;

  void before() {
    joins<Scenario, threads>::before();
    set.emplace();
    outcome.emplace(set->get_future());
  }
  void after() { outcome.reset(); }
  void set_value() {
    set->set_value(watched{7});
    set.reset();
  }
  task<watched> wait() { co_return co_await *std::move(outcome); }
};

// The first waits, and gets a root, for what another thread gives, while its sibling is taken, or begun with by the
// parent's thread. Whoever ends last lets the parent go on.
struct wait_and_take : joins_and_value<wait_and_take, 3> {
  task<> both() {
    const auto [a, b] = co_await when_all(wait(), give(1));
    RL_ASSERT(a.get() == 7 && b.get() == 2);
  }
  void thread(unsigned which) {
    if (which == 1) return steal(0);
    if (which == 2) return set_value();
    RL_ASSERT(run(both()));
    RL_ASSERT(begun[1] == 1);
  }
};

// The same with children that are made as they begin.
struct made_waits_and_take : joins_and_value<made_waits_and_take, 3> {
  task<> both() {
    const auto child = [this](std::size_t which) { return which == 0 ? wait() : give(1); };
    const auto values = co_await when_all(2, child);
    RL_ASSERT(values[0].get() == 7 && values[1].get() == 2);
  }
  void thread(unsigned which) {
    if (which == 1) return steal(0);
    if (which == 2) return set_value();
    RL_ASSERT(run(both()));
    RL_ASSERT(begun[1] == 1);
  }
};

// The one that may be taken waits: on the thread that took it, or on its parent's.
struct taken_one_waits : joins_and_value<taken_one_waits, 3> {
  task<> both() {
    const auto [a, b] = co_await when_all(give(0), wait());
    RL_ASSERT(a.get() == 1 && b.get() == 7);
  }
  void thread(unsigned which) {
    if (which == 1) return steal(0);
    if (which == 2) return set_value();
    RL_ASSERT(run(both()));
  }
};

// One that waits two joins deep: both get roots, and both parents wait, while what is left is taken.
struct wait_nested : joins_and_value<wait_nested, 3> {
  task<watched> inner() {
    auto [a, b] = co_await when_all(wait(), give(1));
    co_return watched{a.get() + b.get()};
  }
  task<> outer() {
    const auto [a, c] = co_await when_all(inner(), give(2));
    RL_ASSERT(a.get() == 9 && c.get() == 3);
  }
  void thread(unsigned which) {
    if (which == 1) return steal(0);
    if (which == 2) return set_value();
    RL_ASSERT(run(outer()));
    RL_ASSERT(begun[1] == 1 && begun[2] == 1);
  }
};

// The parent is stopped while one child waits for ever and another one is taken: that one begins all the same.
struct stop_and_take : joins_and_value<stop_and_take, 3> {
  stop_source stop;

  task<> both() { co_await when_all(wait(), give(1)); }
  void thread(unsigned which) {
    if (which == 1) return steal(0);
    if (which == 2) return static_cast<void>(stop.request_stop());
    RL_ASSERT(!run(both(), stop.token()));
    RL_ASSERT(begun[1] == 1);
    set.reset();
  }
};

// The one that is taken waits for ever, and is stopped: it is told when it begins, or in the list of its siblings.
struct stop_taken : joins_and_value<stop_taken, 3> {
  stop_source stop;

  task<> both() { co_await when_all(give(0), wait()); }
  void thread(unsigned which) {
    if (which == 1) return steal(0);
    if (which == 2) return static_cast<void>(stop.request_stop());
    RL_ASSERT(!run(both(), stop.token()));
    RL_ASSERT(begun[0] == 1);
    set.reset();
  }
};

}  // namespace

int main() {
  model::check<take_one>("take one of two", 2);
  model::check<take_nested>("take from a join in a join", 2);
  model::check<take_one_that_fails>("take one that can't be made", 2);
  model::check<take_several>("take several", 2);
  model::check<take_made>("take some that are made there", 2);
  model::check_some<wait_and_take>("wait and take", 1'000'000);
  model::check_some<made_waits_and_take>("made, wait and take", 200'000);
  model::check_some<taken_one_waits>("the one taken waits", 1'000'000);
  model::check_some<wait_nested>("wait in a join in a join", 1'000'000);
  model::check_some<stop_and_take>("stop beside one taken", 1'000'000);
  model::check_some<stop_taken>("stop the one taken", 1'000'000);
}
