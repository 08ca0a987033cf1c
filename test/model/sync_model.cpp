// Mutex, shared_mutex, semaphore, event, condition_variable and once: who holds, who waits, who is stopped. What they guard
// is watched, so a hand-over without its edge is found.
// Mutates: src/sync/mutex.cpp src/sync/event.cpp include/weft/mutex.hpp include/weft/event.hpp include/weft/once.hpp
//
// Long because what is compiled with the model's atomics takes longer than to run most of these.
#include <optional>
#include <weft/sync.hpp>

#include "world.hpp"
//
#include "sync/condition_variable.cpp"
#include "sync/event.cpp"
#include "sync/gate.cpp"
#include "sync/mutex.cpp"
#include "sync/once.cpp"
#include "sync/semaphore.cpp"
#include "sync/shared_mutex.cpp"

namespace {

using model::plain;
using model::run;
using weft::stop_source;
using weft::task;

task<> add(weft::mutex& m, plain<int>& count) {
  const auto held = co_await m.lock();
  count = count + 1;
}

// Two add under one mutex.
struct lock_and_lock : rl::test_suite<lock_and_lock, 2>, model::world {
  std::optional<weft::mutex> m;
  plain<int> count = 0;

  void before() {
    begin();
    count = 0;
    m.emplace();
  }
  void thread(unsigned) { RL_ASSERT(run(add(*m, count))); }
  void after() {
    RL_ASSERT(count == 2 && !m->is_locked());
    m.reset();
  }
};

// Three, so that one that was called to take it finds that another one was faster, and is given it next.
struct lock_lock_and_lock : rl::test_suite<lock_lock_and_lock, 3>, model::world {
  std::optional<weft::mutex> m;
  plain<int> count = 0;

  void before() {
    begin();
    count = 0;
    m.emplace();
  }
  void thread(unsigned) { RL_ASSERT(run(add(*m, count))); }
  void after() {
    RL_ASSERT(count == 3 && !m->is_locked() && m->try_lock());
    m.reset();
  }
};

// Three, of which one is stopped.
struct lock_and_stop : rl::test_suite<lock_and_stop, 4>, model::world {
  std::optional<weft::mutex> m;
  stop_source stop;
  plain<int> count = 0;
  bool ended[3] = {false, false, false};

  void before() {
    begin();
    count = 0;
    m.emplace();
  }
  void thread(unsigned which) {
    if (which == 3)
      stop.request_stop();
    else
      ended[which] = run(add(*m, count), which == 0 ? stop.token() : weft::stop_token{});
  }
  void after() {
    RL_ASSERT(ended[1] && ended[2]);
    RL_ASSERT(count == (ended[0] ? 3 : 2) && !m->is_locked());
    m.reset();
  }
};

// Two, of which one is stopped: small enough for every execution with more switches.
struct lock_lock_and_stop : rl::test_suite<lock_lock_and_stop, 3>, model::world {
  std::optional<weft::mutex> m;
  stop_source stop;
  plain<int> count = 0;
  bool ended = false;

  void before() {
    begin();
    count = 0;
    m.emplace();
  }
  void thread(unsigned which) {
    if (which == 0) ended = run(add(*m, count), stop.token());
    if (which == 1) RL_ASSERT(run(add(*m, count)));
    if (which == 2) stop.request_stop();
  }
  void after() {
    RL_ASSERT(count == (ended ? 2 : 1) && !m->is_locked() && m->stats().waiting == 0);
    m.reset();
  }
};

// One holds it, one waits, and one tries: it has it, or was in nobody's way.
struct lock_lock_and_try : rl::test_suite<lock_lock_and_try, 3>, model::world {
  std::optional<weft::mutex> m;
  plain<int> count = 0;
  bool got = false;

  void before() {
    begin();
    count = 0;
    m.emplace();
  }
  void thread(unsigned which) {
    if (which != 2) {
      RL_ASSERT(run(add(*m, count)));
    } else {
      const auto held = m->try_lock();
      got = static_cast<bool>(held);
      if (held) count = count + 1;
    }
  }
  void after() {
    RL_ASSERT(count == (got ? 3 : 2) && !m->is_locked() && m->stats().waiting == 0);
    m.reset();
  }
};

task<> take(weft::semaphore& s, std::size_t count, plain<int>& inside) {
  const auto held = co_await s.acquire(count);
  if (count == 2) inside = inside + 1;
}

// Two want both permits, one wants one and is stopped.
struct acquire_and_stop : rl::test_suite<acquire_and_stop, 4>, model::world {
  std::optional<weft::semaphore> s;
  stop_source stop;
  plain<int> inside = 0;

  void before() {
    begin();
    inside = 0;
    s.emplace(2);
  }
  void thread(unsigned which) {
    if (which == 3)
      stop.request_stop();
    else
      run(take(*s, which == 0 ? 1 : 2, inside), which == 0 ? stop.token() : weft::stop_token{});
  }
  void after() {
    RL_ASSERT(inside == 2 && s->available() == 2);
    s.reset();
  }
};

// The same without the stop: every execution with few switches.
struct acquires : rl::test_suite<acquires, 3>, model::world {
  std::optional<weft::semaphore> s;
  plain<int> inside = 0;

  void before() {
    begin();
    inside = 0;
    s.emplace(2);
  }
  void thread(unsigned which) { RL_ASSERT(run(take(*s, which == 0 ? 1 : 2, inside))); }
  void after() {
    RL_ASSERT(inside == 2 && s->available() == 2 && s->stats().waiting == 0);
    s.reset();
  }
};

// Two want both permits, of which one is stopped.
struct acquire_acquire_and_stop : rl::test_suite<acquire_acquire_and_stop, 3>, model::world {
  std::optional<weft::semaphore> s;
  stop_source stop;
  plain<int> inside = 0;
  bool ended = false;

  void before() {
    begin();
    inside = 0;
    s.emplace(2);
  }
  void thread(unsigned which) {
    if (which == 0) ended = run(take(*s, 2, inside), stop.token());
    if (which == 1) RL_ASSERT(run(take(*s, 2, inside)));
    if (which == 2) stop.request_stop();
  }
  void after() {
    RL_ASSERT(inside == (ended ? 2 : 1) && s->available() == 2 && s->stats().waiting == 0);
    s.reset();
  }
};

task<> wait_for(weft::event& e, plain<int>& what) {
  co_await e.wait();
  what = what + 1;
}

// Set x wait, and who was let through destroys it.
struct set_and_destroy : rl::test_suite<set_and_destroy, 2>, model::world {
  std::optional<weft::event> e;
  plain<int> what = 0;

  void before() {
    begin();
    what = 0;
    e.emplace();
  }
  void thread(unsigned which) {
    if (which == 0) {
      RL_ASSERT(run(wait_for(*e, what)));
      e.reset();
    } else {
      what = 1;
      e->set();
    }
  }
  void after() { RL_ASSERT(what == 2); }
};

// Reads, writes, and one that reads and then writes, of which the last is stopped in the second scenario.
struct shares : rl::test_suite<shares, 3>, model::world {
  std::optional<weft::shared_mutex> m;
  plain<int> what = 0;
  int seen = 0;

  static task<> reads(weft::shared_mutex& m, const plain<int>& what, int& seen) {
    const auto held = co_await m.lock_shared();
    seen = what;
  }
  static task<> writes(weft::shared_mutex& m, plain<int>& what) {
    const auto held = co_await m.lock();
    what = what + 1;
  }
  static task<> upgrades(weft::shared_mutex& m, plain<int>& what) {
    auto held = co_await m.lock_upgradable();
    const int before = what;
    const auto alone = co_await std::move(held).upgrade();
    RL_ASSERT(what == before);
    what = what + 10;
  }
  void before() {
    begin();
    what = 0;
    m.emplace();
  }
  void thread(unsigned which) {
    if (which == 0) RL_ASSERT(run(reads(*m, what, seen)));
    if (which == 1) RL_ASSERT(run(writes(*m, what)));
    if (which == 2) RL_ASSERT(run(upgrades(*m, what)));
  }
  void after() {
    RL_ASSERT(what == 11 && m->try_lock());
    m.reset();
  }
};
// One reads and one writes, of which the writer is stopped.
struct read_write_and_stop : rl::test_suite<read_write_and_stop, 3>, model::world {
  std::optional<weft::shared_mutex> m;
  stop_source stop;
  plain<int> what = 0;
  int seen = 0;
  bool written = false;

  void before() {
    begin();
    what = 0;
    m.emplace();
  }
  void thread(unsigned which) {
    if (which == 0) RL_ASSERT(run(shares::reads(*m, what, seen)));
    if (which == 1) written = run(shares::writes(*m, what), stop.token());
    if (which == 2) stop.request_stop();
  }
  void after() {
    RL_ASSERT(what == (written ? 1 : 0) && seen <= what && m->try_lock() && m->stats().waiting == 0);
    m.reset();
  }
};
struct shares_and_stop : rl::test_suite<shares_and_stop, 4>, model::world {
  std::optional<weft::shared_mutex> m;
  stop_source stop;
  plain<int> what = 0;
  int seen = 0;
  bool upgraded = false;

  void before() {
    begin();
    what = 0;
    m.emplace(weft::shared_mutex_options{.prefer_writers = true});
  }
  void thread(unsigned which) {
    if (which == 0) RL_ASSERT(run(shares::reads(*m, what, seen)));
    if (which == 1) RL_ASSERT(run(shares::writes(*m, what)));
    if (which == 2) upgraded = run(shares::upgrades(*m, what), stop.token());
    if (which == 3) stop.request_stop();
  }
  void after() {
    RL_ASSERT(what == (upgraded ? 11 : 1) && m->try_lock() && m->stats().waiting == 0);
    m.reset();
  }
};

// Two wait for one thing, and one of them is stopped. If it was notified it has the thing and gives it back, so the other one
// gets it in any case: no notification is lost.
struct notify_and_stop : rl::test_suite<notify_and_stop, 4>, model::world {
  std::optional<weft::mutex> m;
  std::optional<weft::condition_variable> changed;
  stop_source stop;
  plain<int> there = 0;

  static task<> takes(notify_and_stop& all) {
    auto held = co_await all.m->lock();
    while (all.there == 0) co_await all.changed->wait(held);
    all.there = all.there - 1;
  }
  static task<> gives(notify_and_stop& all) {
    {
      const auto held = co_await all.m->lock();
      all.there = all.there + 1;
    }
    all.changed->notify_one();
  }
  void before() {
    begin();
    there = 0;
    m.emplace();
    changed.emplace();
  }
  void thread(unsigned which) {
    if (which == 0) RL_ASSERT(run(takes(*this)));
    if (which == 1) RL_ASSERT(run(gives(*this)));
    if (which == 2 && run(takes(*this), stop.token())) RL_ASSERT(run(gives(*this)));
    if (which == 3) stop.request_stop();
  }
  void after() {
    RL_ASSERT(there == 0 && !m->is_locked() && changed->stats().waiting == 0);
    changed.reset();
    m.reset();
  }
};

// Two wait for one thing each, a third gives both.
struct notify_and_notify : rl::test_suite<notify_and_notify, 3>, model::world {
  notify_and_stop all;

  void before() { all.before(); }
  void thread(unsigned which) {
    if (which != 2) {
      RL_ASSERT(run(notify_and_stop::takes(all)));
    } else {
      RL_ASSERT(run(notify_and_stop::gives(all)));
      RL_ASSERT(run(notify_and_stop::gives(all)));
    }
  }
  void after() { all.after(); }
};

// One waits for a thing, one gives it, and a stop: who waited has it, or it is still there and nobody waits.
struct wait_notify_and_stop : rl::test_suite<wait_notify_and_stop, 3>, model::world {
  notify_and_stop all;
  bool has = false;

  void before() { all.before(); }
  void thread(unsigned which) {
    if (which == 0) has = run(notify_and_stop::takes(all), all.stop.token());
    if (which == 1) RL_ASSERT(run(notify_and_stop::gives(all)));
    if (which == 2) all.stop.request_stop();
  }
  void after() {
    RL_ASSERT(all.there == (has ? 0 : 1));
    all.there = 0;
    all.after();
  }
};

// Two call, one does it, both find it done.
struct call_and_call : rl::test_suite<call_and_call, 2>, model::world {
  std::optional<weft::once> o;
  plain<int> what = 0;

  static task<> calls(weft::once& o, plain<int>& what) {
    auto does = [&what] { what = what + 1; };
    co_await o.call(does);
    RL_ASSERT(what == 1);
  }
  void before() {
    begin();
    what = 0;
    o.emplace();
  }
  void thread(unsigned) { RL_ASSERT(run(calls(*o, what))); }
  void after() {
    RL_ASSERT(what == 1 && o->is_done());
    o.reset();
  }
};

}  // namespace

int main() {
  model::check<lock_and_lock>("lock and lock", 2);
  model::check<lock_lock_and_lock>("lock, lock and lock", 1);
  model::check<lock_lock_and_stop>("lock, lock and stop", 1);
  model::check<lock_lock_and_try>("lock, lock and try", 2);
  model::check_some<lock_and_stop>("lock and stop");
  model::check_some<acquire_and_stop>("acquire and stop");
  model::check<acquires>("acquire three times", 2);
  model::check<acquire_acquire_and_stop>("acquire, acquire and stop", 2);
  model::check<set_and_destroy>("set and destroy", 2);
  model::check<shares>("shares", 2);
  model::check<read_write_and_stop>("read, write and stop", 2);
  model::check_some<shares_and_stop>("shares and stop", 50'000);
  model::check_some<notify_and_stop>("notify and stop", 50'000);
  model::check<notify_and_notify>("notify and notify", 0);
  model::check<wait_notify_and_stop>("wait, notify and stop", 0);
  model::check<call_and_call>("call and call", 2);
}
