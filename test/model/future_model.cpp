// What is handed from one thread to another: through promise and future, and through a shared task.
// Mutates: include/weft/detail/core/handover.hpp include/weft/detail/task/handed.hpp include/weft/detail/task/shared_root.hpp
// Mutates: src/task/shared_task.cpp src/base/lock.cpp
#include <optional>
#include <weft/future.hpp>
#include <weft/shared_task.hpp>

#include "world.hpp"

namespace {

using model::run;
using model::watched;
using weft::future;
using weft::promise;
using weft::stop_source;
using weft::task;

task<> take(future<watched> from, int& got) {
  const watched value = co_await std::move(from);
  got = value.get();
}

// Set x awaited x stopped. Both ends are dropped at once, so that the last one frees the state.
struct set_await_and_stop : rl::test_suite<set_await_and_stop, 3>, model::world {
  std::optional<promise<watched>> set;
  std::optional<future<watched>> outcome;
  stop_source stop;
  int got = 0;
  bool ended = false;

  void before() {
    begin();
    set.emplace();
    outcome.emplace(set->get_future());
  }
  void thread(unsigned which) {
    if (which == 0) {
      ended = run(take(*std::move(outcome), got), stop.token());
    } else if (which == 1) {
      set->set_value(watched{7});
      set.reset();
    } else {
      stop.request_stop();
    }
  }
  void after() {
    RL_ASSERT(got == (ended ? 7 : 0));
    outcome.reset();
  }
};

// Set x awaited: the outcome may be there before anybody waits.
struct set_and_await : rl::test_suite<set_and_await, 2>, model::world {
  std::optional<promise<watched>> set;
  std::optional<future<watched>> outcome;
  int got = 0;

  void before() {
    begin();
    set.emplace();
    outcome.emplace(set->get_future());
  }
  void thread(unsigned which) {
    if (which == 0) {
      RL_ASSERT(run(take(*std::move(outcome), got)));
      RL_ASSERT(got == 7);
    } else {
      set->set_value(watched{7});
      set.reset();
    }
  }
  void after() { outcome.reset(); }
};

// Dropped x set: nobody waits.
struct set_and_drop : rl::test_suite<set_and_drop, 2>, model::world {
  std::optional<promise<watched>> set;
  std::optional<future<watched>> outcome;

  void before() {
    begin();
    set.emplace();
    outcome.emplace(set->get_future());
  }
  void thread(unsigned which) {
    if (which == 0) {
      if (outcome->is_ready()) outcome.reset();
      outcome.reset();
    } else {
      set->set_value(watched{7});
      set.reset();
    }
  }
};

task<watched> shared(future<watched> from, bool& started) {
  started = true;
  co_return co_await std::move(from);
}
task<> look(weft::shared_task<watched> at, int& seen) { seen = (co_await at).get(); }

// Two wait for one shared task, which a third lets go on; one of the two is stopped meanwhile.
struct share_and_stop : rl::test_suite<share_and_stop, 4>, model::world {
  std::optional<promise<watched>> set;
  std::optional<weft::shared_task<watched>> both[2];
  stop_source stop;
  int seen[2] = {0, 0};
  bool ended[2] = {false, false}, started = false;

  void before() {
    begin();
    set.emplace();
    both[0].emplace(shared(set->get_future(), started));
    both[1].emplace(*both[0]);
  }
  void thread(unsigned which) {
    if (which < 2) {
      ended[which] = run(look(*std::move(both[which]), seen[which]), which == 0 ? stop.token() : weft::stop_token{});
      both[which].reset();
    } else if (which == 2) {
      set->set_value(watched{7});
      set.reset();
    } else {
      stop.request_stop();
    }
  }
  void after() {
    for (int i = 0; i < 2; ++i) RL_ASSERT(seen[i] == (ended[i] ? 7 : 0));
    RL_ASSERT(ended[1] || !ended[0]);  // it is stopped where the other one was the last to leave
  }
};

// The only one that waits is stopped: it stops the shared task and joins it, or the outcome is first.
struct leave_last : rl::test_suite<leave_last, 3>, model::world {
  std::optional<promise<watched>> set;
  std::optional<weft::shared_task<watched>> one;
  stop_source stop;
  int seen = 0;
  bool ended = false, started = false;

  void before() {
    begin();
    set.emplace();
    one.emplace(shared(set->get_future(), started));
  }
  void thread(unsigned which) {
    if (which == 0) {
      ended = run(look(*one, seen), stop.token());
      RL_ASSERT(one->is_ready() || !started);  // joined
      one.reset();
    } else if (which == 1) {
      set->set_value(watched{7});
      set.reset();
    } else {
      stop.request_stop();
    }
  }
  void after() { RL_ASSERT(seen == (ended ? 7 : 0)); }
};

}  // namespace

int main() {
  model::check<set_and_await>("set and await", 3);
  model::check<set_await_and_stop>("set, await and stop", 1);
  model::check_all<set_and_drop>("set and drop");
  model::check_some<share_and_stop>("share and stop");
  model::check_some<leave_last>("leave last");
}
