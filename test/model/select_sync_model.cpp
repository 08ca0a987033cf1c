// Select of primitives and of a stop of others: a case that is not chosen has no effect. The mutex is given back without its
// lock where nobody waits, so a select that gets in its line must have marked it; who stops others calls a select's callback
// while another case is chosen, or while the select is stopped itself.
#include <optional>
#include <weft/channel.hpp>
#include <weft/select.hpp>

#include "world.hpp"
//
#include "channel/channel.cpp"
#include "sync/event.cpp"
#include "sync/gate.cpp"
#include "sync/mutex.cpp"
#include "sync/once.cpp"
//
#include "channel/select.cpp"
#include "sync/learning_lock.cpp"

weft::clock& weft::real_clock() noexcept { std::abort(); }  // no case here waits for a time

namespace {

using model::plain;
using model::run;
using model::watched;
using weft::on;
using weft::stop_source;
using weft::task;

task<> add(weft::mutex& m, plain<int>& count) {
  const auto held = co_await m.lock();
  count = count + 1;
}

// What a mutex guards, or a signal.
task<> add_or_pass(weft::mutex& m, plain<int>& count, weft::auto_event& signal, std::size_t& chosen) {
  auto choice = select(on(m.lock()), on(signal.wait()));
  const auto got = co_await std::move(choice);
  chosen = got.index;
  if (got.index == 0) count = count + 1;
}

bool is_set(weft::auto_event& signal) {
  std::size_t chosen = 2;
  auto look = [](weft::auto_event& one, std::size_t& to) -> task<> {
    auto choice = select(on(one.wait()), weft::otherwise);
    to = (co_await std::move(choice)).index;
  };
  RL_ASSERT(run(look(signal, chosen)));
  return chosen == 0;
}

// A mutex that is held and given back, beside a signal.
struct lock_and_set : rl::test_suite<lock_and_set, 3>, model::world {
  std::optional<weft::mutex> m;
  std::optional<weft::auto_event> signal;
  plain<int> count = 0;
  std::size_t chosen = 2;

  void before() {
    begin();
    count = 0;
    m.emplace();
    signal.emplace();
  }
  void thread(unsigned which) {
    if (which == 0) RL_ASSERT(run(add(*m, count)));
    if (which == 1) RL_ASSERT(run(add_or_pass(*m, count, *signal, chosen)));
    if (which == 2) signal->set();
  }
  void after() {
    RL_ASSERT(count == (chosen == 0 ? 2 : 1) && !m->is_locked());
    RL_ASSERT(is_set(*signal) == (chosen == 0));
    m.reset();
    signal.reset();
  }
};

// The mutex alone: it is given back while the select gets in line, or before.
struct lock_and_choose : rl::test_suite<lock_and_choose, 2>, model::world {
  std::optional<weft::mutex> m;
  std::optional<weft::auto_event> never;
  plain<int> count = 0;
  std::size_t chosen = 2;

  void before() {
    begin();
    count = 0;
    m.emplace();
    never.emplace();
  }
  void thread(unsigned which) {
    if (which == 0)
      RL_ASSERT(run(add(*m, count)));
    else
      RL_ASSERT(run(add_or_pass(*m, count, *never, chosen)));
  }
  void after() {
    RL_ASSERT(count == 2 && chosen == 0 && !m->is_locked());
    m.reset();
    never.reset();
  }
};

// The same, stopped: it has the mutex, or it hinders nobody.
struct lock_choose_and_stop : rl::test_suite<lock_choose_and_stop, 3>, model::world {
  std::optional<weft::mutex> m;
  std::optional<weft::auto_event> signal;
  stop_source stop;
  plain<int> count = 0;
  std::size_t chosen = 2;

  void before() {
    begin();
    count = 0;
    chosen = 2;
    m.emplace();
    signal.emplace();
  }
  void thread(unsigned which) {
    if (which == 0) {
      RL_ASSERT(run(add(*m, count)));
      signal->set();
    }
    if (which == 1) run(add_or_pass(*m, count, *signal, chosen), stop.token());
    if (which == 2) stop.request_stop();
  }
  void after() {
    RL_ASSERT(count == (chosen == 0 ? 2 : 1) && !m->is_locked());
    RL_ASSERT(is_set(*signal) == (chosen != 1));
    m.reset();
    signal.reset();
  }
};

task<> pass_one(weft::auto_event& first, weft::auto_event& second, std::size_t& chosen) {
  auto choice = select(on(first.wait()), on(second.wait()));
  chosen = (co_await std::move(choice)).index;
}

// Two selects of the same two signals, in either order: each gets one.
struct two_and_two : rl::test_suite<two_and_two, 3>, model::world {
  std::optional<weft::auto_event> first, second;
  std::size_t chosen[2] = {2, 2};

  void before() {
    begin();
    first.emplace();
    second.emplace();
  }
  void thread(unsigned which) {
    if (which == 0) RL_ASSERT(run(pass_one(*first, *second, chosen[0])));
    if (which == 1) RL_ASSERT(run(pass_one(*second, *first, chosen[1])));
    if (which == 2) {
      first->set();
      second->set();
    }
  }
  void after() {
    RL_ASSERT(chosen[0] == chosen[1] && chosen[0] < 2 && !is_set(*first) && !is_set(*second));
    first.reset();
    second.reset();
  }
};

// A value, a stop of others, and a stop of the select's own task.
template <bool stops_itself>
struct send_and_stop : rl::test_suite<send_and_stop<stops_itself>, 3>, model::world {
  std::optional<weft::channel<watched>> c;
  std::optional<stop_source> closing;
  stop_source own;
  bool sent = false, ended = false;
  int got = 0;
  plain<int> told = 0;  // before the stop

  static task<> receives(send_and_stop& all) {
    auto choice = select(on_receive(*all.c), weft::on_stop(all.closing->token()));
    const auto got = co_await std::move(choice);
    if (got.index == 0) all.got = std::get<0>(got.value)->get();
    if (got.index == 1) RL_ASSERT(all.told == 1);
  }
  void before() {
    begin();
    sent = ended = false;
    got = 0;
    told = 0;
    c.emplace(1);
    closing.emplace();
  }
  void thread(unsigned which) {
    if (which == 0) {
      ended = run(receives(*this), own.token());
      if (ended) RL_ASSERT(c->stats().waiting == 0);
    } else if (which == 1) {
      told = 1;
      closing->request_stop();
    } else if (stops_itself) {
      own.request_stop();
    } else {
      RL_ASSERT(c->try_send(watched{1}));
    }
  }
  void after() {
    RL_ASSERT(ended || stops_itself);
    RL_ASSERT(c->size() + static_cast<std::size_t>(got) == (stops_itself ? 0 : 1));
    closing.reset();  // no callback is left
    c.reset();
  }
};

// A future that is set while a select chooses between it and a signal. It was given, or it is there still, once the select is
// over: whoever set it has let go of the select's place by then.
template <bool stops_itself>
struct set_and_choose : rl::test_suite<set_and_choose<stops_itself>, stops_itself ? 3 : 2>, model::world {
  std::optional<weft::promise<watched>> set;
  std::optional<weft::future<watched>> answer;
  std::optional<weft::auto_event> signal;
  stop_source own;
  std::size_t chosen = 2;
  int got = 0;

  static task<> chooses(set_and_choose& all) {
    auto choice = select(on(*all.answer), on(all.signal->wait()));
    const auto got = co_await std::move(choice);
    all.chosen = got.index;
    if (got.index == 0) all.got = std::get<0>(got.value).get();
  }
  static task<> takes(set_and_choose& all) { all.got = (co_await *std::move(all.answer)).get(); }
  void before() {
    begin();
    chosen = 2;
    got = 0;
    set.emplace();
    answer.emplace(set->get_future());
    signal.emplace();
  }
  void thread(unsigned which) {
    if (which == 0) {
      const bool ended = run(chooses(*this), own.token());
      RL_ASSERT(ended == (chosen != 2) && (ended || stops_itself));
    } else if (which == 1) {
      if (!stops_itself) signal->set();
      set->set_value(watched{7});
      set.reset();
    } else {
      own.request_stop();
    }
  }
  void after() {
    RL_ASSERT(static_cast<bool>(*answer) == (chosen != 0));
    if (chosen != 0) RL_ASSERT(run(takes(*this)));
    RL_ASSERT(got == 7);
    answer.reset();
    signal.reset();
  }
};

}  // namespace

int main() {
  model::check<lock_and_choose>("lock and choose", 2);
  model::check<two_and_two>("two and two", 1);
  model::check<lock_and_set>("lock and set", 2);
  model::check<lock_choose_and_stop>("lock, choose and stop", 1);
  model::check<send_and_stop<false>>("send and stop of others", 1);
  model::check<send_and_stop<true>>("stop of others and its own", 0, 100'000, 1);
  model::check<set_and_choose<false>>("set and choose", 2);
  model::check<set_and_choose<true>>("set, choose and stop", 1);
}
