// Mutex, semaphore and channel: who holds, who waits, who is stopped. What they guard is watched, so a hand-over without
// its edge is found.
// Mutates: src/sync.cpp include/weft/sync.hpp
#include <optional>
#include <weft/channel.hpp>
#include <weft/sync.hpp>

#include "world.hpp"
//
#include "channel.cpp"
#include "sync.cpp"

namespace {

using model::plain;
using model::run;
using model::watched;
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

task<> receive(weft::channel<watched>& from, int& got) {
  if (const auto value = co_await from.receive()) got += value->get();
}
task<> send(weft::channel<watched>& to, int value, int& sent) {
  co_await to.send(watched{value});
  sent += value;
}

// Send x receive x stop, through a rendezvous.
struct send_receive_and_stop : rl::test_suite<send_receive_and_stop, 3>, model::world {
  std::optional<weft::channel<watched>> c;
  stop_source stop;
  int sent = 0, got = 0;

  void before() {
    begin();
    sent = got = 0;
    c.emplace(0);
  }
  void thread(unsigned which) {
    if (which == 0)
      run(send(*c, 1, sent), stop.token());
    else if (which == 1)
      run(receive(*c, got), stop.token());
    else
      stop.request_stop();
  }
  void after() {
    RL_ASSERT(got >= sent);
    c.reset();
  }
};

// Two send, one receives twice, through room for one.
struct send_send_receive : rl::test_suite<send_send_receive, 3>, model::world {
  std::optional<weft::channel<watched>> c;
  int sent = 0, got = 0;

  void before() {
    begin();
    sent = got = 0;
    c.emplace(1);
  }
  void thread(unsigned which) {
    if (which == 2) {
      RL_ASSERT(run(receive(*c, got)) && run(receive(*c, got)));
    } else {
      int mine = 0;
      RL_ASSERT(run(send(*c, which == 0 ? 1 : 10, mine)));
    }
  }
  void after() {
    RL_ASSERT(got == 11);
    c.reset();
  }
};

}  // namespace

int main() {
  model::check<lock_and_lock>("lock and lock", 2);
  model::check_some<lock_and_stop>("lock and stop");
  model::check_some<acquire_and_stop>("acquire and stop");
  model::check<set_and_destroy>("set and destroy", 2);
  model::check_some<send_receive_and_stop>("send, receive and stop");
  model::check_some<send_send_receive>("send, send and receive");
}
