// Barrier, latch, event, auto_event and once against stops, and a barrier against one that drops out: who passes has seen
// what was done before, nobody passes short of a party, and nothing is lost with one that is stopped. The orders are tried
// in sync_model.cpp, which has the same sources. Who waits here may look first, as a fiber does.
#include <array>
#include <optional>
#include <weft/sync.hpp>

#include "world.hpp"
//
#include "sync/barrier.cpp"
#include "sync/event.cpp"
#include "sync/gate.cpp"
#include "sync/mutex.cpp"
#include "sync/once.cpp"

namespace {

using model::plain;
using model::run;
using weft::stop_source;
using weft::stop_token;
using weft::task;

/// Waits as a fiber does: does at once what needs no wait, and suspends only else.
template <class Awaiter>
struct as_a_fiber : weft::detail::knows_roots {
  Awaiter by;

  bool await_ready() const noexcept { return false; }
  template <class Promise>
  bool await_suspend(std::coroutine_handle<Promise> caller) noexcept {
    weft::detail::root& self = weft::detail::suspending(caller);
    return !(by.seems_ready() && by.done_at_once(self)) && by.suspend(self);
  }
  auto await_resume() noexcept { return by.await_resume(); }
};
template <class Awaited>
auto fiber(const Awaited& one) {
  return as_a_fiber<decltype(one.operator co_await())>{{}, one.operator co_await()};
}

// ---- barrier ------------------------------------------------------------------------------------------------------------

task<> meet(weft::barrier& b, int& last) {
  if (co_await b.arrive_and_wait()) ++last;
}
task<> look_and_meet(weft::barrier& b, int& last) {
  if (co_await fiber(b.arrive_and_wait())) ++last;
}

// Two meet twice. Each finds what both did before they met.
struct meet_twice : rl::test_suite<meet_twice, 2>, model::world {
  std::optional<weft::barrier> b;
  std::array<plain<int>, 2> did{0, 0};
  int last = 0;

  task<> party(unsigned me) {
    for (int phase = 1; phase != 3; ++phase) {
      did[me] = phase;
      if (phase == 1 ? co_await b->arrive_and_wait() : co_await fiber(b->arrive_and_wait())) ++last;
      RL_ASSERT(did[1 - me] >= phase);
      co_await b->arrive_and_wait();  // before the other one writes again
    }
  }
  void before() {
    begin();
    last = 0;
    b.emplace(2);
  }
  void thread(unsigned which) { RL_ASSERT(run(party(which))); }
  void after() {
    RL_ASSERT(last == 2);
    b.reset();
  }
};

// Three meet once.
struct meet_of_three : rl::test_suite<meet_of_three, 3>, model::world {
  std::optional<weft::barrier> b;
  std::array<plain<int>, 3> did{0, 0, 0};
  int last = 0;

  task<> party(unsigned me) {
    did[me] = 1;
    if (co_await fiber(b->arrive_and_wait())) ++last;
    RL_ASSERT(did[0] + did[1] + did[2] == 3);
  }
  void before() {
    begin();
    last = 0;
    for (auto& one : did) one = 0;
    b.emplace(3);
  }
  void thread(unsigned which) { RL_ASSERT(run(party(which))); }
  void after() {
    RL_ASSERT(last == 1);
    b.reset();
  }
};

// Two meet, one of which is stopped. If that ended it, it has not arrived, and comes again; else both have passed.
struct meet_and_stop : rl::test_suite<meet_and_stop, 3>, model::world {
  std::optional<weft::barrier> b;
  stop_source stop;
  int last = 0;

  void before() {
    begin();
    last = 0;
    b.emplace(2);
  }
  void thread(unsigned which) {
    if (which == 0 && !run(meet(*b, last), stop.token())) RL_ASSERT(run(meet(*b, last)));
    if (which == 1) RL_ASSERT(run(look_and_meet(*b, last)));
    if (which == 2) stop.request_stop();
  }
  void after() {
    RL_ASSERT(last == 1 && b->stats().waiting == 0);
    b.reset();
  }
};

// Two of three meet, of which one is stopped and then drops out, as the third one does.
struct meet_drop_and_stop : rl::test_suite<meet_drop_and_stop, 4>, model::world {
  std::optional<weft::barrier> b;
  stop_source stop;
  int last = 0;

  void before() {
    begin();
    last = 0;
    b.emplace(3);
  }
  void thread(unsigned which) {
    if (which == 3)
      stop.request_stop();
    else if (which == 2)
      b->drop();
    else if (!run(meet(*b, last), which == 0 ? stop.token() : stop_token{}))
      b->drop();
  }
  void after() {
    RL_ASSERT(last == 1 && b->stats().waiting == 0);
    b.reset();
  }
};

// ---- latch --------------------------------------------------------------------------------------------------------------

// One arrives and may be stopped, one counts, one waits as a fiber does. Who arrived has, also where a stop ended its wait.
struct arrive_count_and_stop : rl::test_suite<arrive_count_and_stop, 4>, model::world {
  std::optional<weft::latch> l;
  stop_source stop;
  std::array<plain<int>, 2> did{0, 0};
  bool arrived = false, passed = false;

  task<> arrives() {
    did[0] = 1;
    co_await l->arrive_and_wait();
    RL_ASSERT(did[1] == 1);
  }
  task<> waits() {
    co_await fiber(l->wait());
    RL_ASSERT(did[0] == 1 && did[1] == 1);
  }
  void before() {
    begin();
    arrived = passed = false;
    did[0] = did[1] = 0;
    l.emplace(2);
  }
  void thread(unsigned which) {
    if (which == 0) arrived = run(arrives(), stop.token());
    if (which == 1) {
      did[1] = 1;
      l->count_down();
    }
    if (which == 2) passed = run(waits(), stop.token());
    if (which == 3) stop.request_stop();
  }
  void after() {
    RL_ASSERT(l->is_open() || !(arrived || passed));
    if (!l->is_open()) l->count_down();  // it was stopped before it arrived
    RL_ASSERT(l->is_open() && l->stats().waiting == 0);
    l.reset();
  }
};

// Three arrive; each finds what all did before.
struct arrive_three_times : rl::test_suite<arrive_three_times, 3>, model::world {
  std::optional<weft::latch> l;
  std::array<plain<int>, 3> did{0, 0, 0};

  task<> party(unsigned me) {
    did[me] = 1;
    co_await fiber(l->arrive_and_wait());
    RL_ASSERT(did[0] + did[1] + did[2] == 3);
  }
  void before() {
    begin();
    for (auto& one : did) one = 0;
    l.emplace(3);
  }
  void thread(unsigned which) { RL_ASSERT(run(party(which))); }
  void after() {
    RL_ASSERT(l->is_open());
    l.reset();
  }
};

// ---- events -------------------------------------------------------------------------------------------------------------

task<> wait_for(weft::event& e, const plain<int>& what) {
  co_await e.wait();
  RL_ASSERT(what == 1);
}
task<> look_for(weft::event& e, const plain<int>& what) {
  co_await fiber(e.wait());
  RL_ASSERT(what == 1);
}

// Two wait, of which one is stopped; the other one passes in any case.
struct set_and_stop : rl::test_suite<set_and_stop, 4>, model::world {
  std::optional<weft::event> e;
  stop_source stop;
  plain<int> what = 0;

  void before() {
    begin();
    what = 0;
    e.emplace();
  }
  void thread(unsigned which) {
    if (which == 0) run(wait_for(*e, what), stop.token());
    if (which == 1) RL_ASSERT(run(look_for(*e, what)));
    if (which == 2) {
      what = 1;
      e->set();
    }
    if (which == 3) stop.request_stop();
  }
  void after() {
    RL_ASSERT(e->is_set() && e->stats().waiting == 0);
    e.reset();
  }
};

// Who passes sets it for the next one. One that is stopped takes nothing: it comes again.
struct set_set_and_stop : rl::test_suite<set_set_and_stop, 4>, model::world {
  std::optional<weft::auto_event> e;
  stop_source stop;
  plain<int> what = 0;
  int passed = 0;

  task<> waits() {
    co_await e->wait();
    ++passed;
    RL_ASSERT(what == 1);
    e->set();  // for the next one
  }
  task<> looks() {
    co_await fiber(e->wait());
    ++passed;
    RL_ASSERT(what == 1);
    e->set();
  }
  void before() {
    begin();
    what = passed = 0;
    e.emplace();
  }
  void thread(unsigned which) {
    if (which == 0 && !run(waits(), stop.token())) RL_ASSERT(run(looks()));
    if (which == 1) RL_ASSERT(run(looks()));
    if (which == 2) {
      what = 1;
      e->set();
    }
    if (which == 3) stop.request_stop();
  }
  void after() {
    RL_ASSERT(passed == 2 && e->stats().waiting == 0);
    e.reset();
  }
};

// ---- once ---------------------------------------------------------------------------------------------------------------

// Two call, of which one is stopped, perhaps in the middle of it: then the other one does it.
struct call_and_stop : rl::test_suite<call_and_stop, 3>, model::world {
  std::optional<weft::once> o;
  std::optional<weft::event> open;
  stop_source stop;
  plain<int> what = 0;

  task<> calls(bool is_stopped) {
    auto does = [this, is_stopped]() -> task<> {
      if (is_stopped) co_await open->wait();  // until it is stopped
      what = what + 1;
    };
    co_await o->call(does);
    RL_ASSERT(what == 1);
  }
  void before() {
    begin();
    what = 0;
    open.emplace();
    o.emplace();
  }
  void thread(unsigned which) {
    if (which == 0) run(calls(true), stop.token());
    if (which == 1) RL_ASSERT(run(calls(false)));
    if (which == 2) stop.request_stop();
  }
  void after() {
    RL_ASSERT(what == 1 && o->is_done());
    o.reset();
    open.reset();
  }
};

}  // namespace

int main() {
  model::check<meet_twice>("meet twice", 2, 50'000);
  model::check<meet_of_three>("meet of three", 2, 50'000);
  model::check<meet_and_stop>("meet and stop", 0);
  model::check_some<meet_drop_and_stop>("meet, drop and stop");
  model::check_some<arrive_count_and_stop>("arrive, count and stop");
  model::check<arrive_three_times>("arrive three times", 1, 50'000, 2);
  model::check_some<set_and_stop>("set and stop");
  model::check_some<set_set_and_stop>("set, set and stop");
  model::check_some<call_and_stop>("call and stop");
}
