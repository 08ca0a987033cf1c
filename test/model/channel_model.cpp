// Channels, select, broadcast and watch: send, receive, close, stop, and the channel's end, on threads of their own.
// Values are watched, so one that is handed over without an edge, twice, or after its end is found. The orders are
// those of its lock: lock_model.
//
// Long because what is compiled with the model's atomics takes longer than to run most of these.
#include <optional>
#include <weft/broadcast.hpp>
#include <weft/channel.hpp>
#include <weft/select.hpp>

#include "world.hpp"
//
#include "channel/channel.cpp"
#include "sync/gate.cpp"
#include "sync/once.cpp"
//
#include "channel/select.cpp"
#include "sync/learning_lock.cpp"

weft::clock& weft::real_clock() noexcept { std::abort(); }  // no case here waits for a time

namespace {

using model::run;
using model::watched;
using weft::stop_source;
using weft::task;

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

// One sends and one receives through room for one; the receive is stopped: it has the value, or that is there.
struct receive_stopped : rl::test_suite<receive_stopped, 3>, model::world {
  std::optional<weft::channel<watched>> c;
  stop_source stop;
  int sent = 0, got = 0;

  void before() {
    begin();
    sent = got = 0;
    c.emplace(1);
  }
  void thread(unsigned which) {
    if (which == 0) RL_ASSERT(run(send(*c, 1, sent)));
    if (which == 1) run(receive(*c, got), stop.token());
    if (which == 2) stop.request_stop();
  }
  void after() {
    if (const auto value = c->try_receive()) got += value->get();
    RL_ASSERT(sent == 1 && got == 1 && c->stats().waiting == 0);
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

// Send x receive x close: what is sent is received, what is not comes back.
template <std::size_t Capacity>
struct send_receive_and_close : rl::test_suite<send_receive_and_close<Capacity>, 3>, model::world {
  std::optional<weft::channel<watched>> c;
  int sent = 0, back = 0, got = 0;

  static task<> sends(send_receive_and_close& all) {
    try {
      co_await all.c->send(watched{1});
      all.sent = 1;
    } catch (weft::channel_closed<watched>& closed) {
      all.back = closed.value().get();
    }
  }
  void before() {
    begin();
    sent = back = got = 0;
    c.emplace(Capacity);
  }
  void thread(unsigned which) {
    if (which == 0) RL_ASSERT(run(sends(*this)));
    if (which == 1) RL_ASSERT(run(receive(*c, got)));
    if (which == 2) c->close();
  }
  void after() {
    if (const auto value = c->try_receive()) got += value->get();
    RL_ASSERT(sent + back == 1 && got == sent && c->stats().waiting == 0);
    c.reset();
  }
};

// Who has received destroys the channel, though the send may not have returned.
struct receive_and_destroy : rl::test_suite<receive_and_destroy, 2>, model::world {
  std::optional<weft::channel<watched>> c;
  int sent = 0, got = 0;

  void before() {
    begin();
    sent = got = 0;
    c.emplace(0);
  }
  void thread(unsigned which) {
    if (which == 0) {
      RL_ASSERT(run(receive(*c, got)));
      c.reset();
    } else {
      RL_ASSERT(run(send(*c, 1, sent)));
    }
  }
  void after() { RL_ASSERT(sent == 1 && got == 1); }
};

task<> choose_to_send(weft::channel<watched>& a, weft::channel<watched>& b, int& sent) {
  auto choice = select(on_send(a, watched{1}), on_send(b, watched{10}));
  const auto done = co_await std::move(choice);
  sent += done.index == 0 ? 1 : 10;
}
task<> choose_to_receive(weft::channel<watched>& a, weft::channel<watched>& b, int& got) {
  auto choice = select(on_receive(b), on_receive(a));
  auto done = co_await std::move(choice);
  auto& value = done.index == 0 ? std::get<0>(done.value) : std::get<1>(done.value);
  got += value->get();
}

// A select meets a select, through two rendezvous.
struct select_and_select : rl::test_suite<select_and_select, 2>, model::world {
  std::optional<weft::channel<watched>> a, b;
  int sent = 0, got = 0;

  void before() {
    begin();
    sent = got = 0;
    a.emplace(0);
    b.emplace(0);
  }
  void thread(unsigned which) {
    RL_ASSERT(which == 0 ? run(choose_to_send(*a, *b, sent)) : run(choose_to_receive(*a, *b, got)));
  }
  void after() {
    RL_ASSERT(sent == got && sent != 0 && a->stats().waiting + b->stats().waiting == 0);
    a.reset();
    b.reset();
  }
};

// The same, and both are stopped.
struct select_select_and_stop : rl::test_suite<select_select_and_stop, 3>, model::world {
  std::optional<weft::channel<watched>> a, b;
  stop_source stop;
  int sent = 0, got = 0;

  void before() {
    begin();
    sent = got = 0;
    a.emplace(0);
    b.emplace(0);
  }
  void thread(unsigned which) {
    if (which == 0) run(choose_to_send(*a, *b, sent), stop.token());
    if (which == 1) run(choose_to_receive(*a, *b, got), stop.token());
    if (which == 2) stop.request_stop();
  }
  void after() {
    RL_ASSERT(sent == got && a->stats().waiting + b->stats().waiting == 0);
    a.reset();
    b.reset();
  }
};

// One selects of two channels, and is stopped; one sends without a wait: it has the value, or that is there.
struct select_send_and_stop : rl::test_suite<select_send_and_stop, 3>, model::world {
  std::optional<weft::channel<watched>> a, b;
  stop_source stop;
  int got = 0;

  void before() {
    begin();
    got = 0;
    a.emplace(1);
    b.emplace(1);
  }
  void thread(unsigned which) {
    if (which == 0) RL_ASSERT(a->try_send(watched{1}));
    if (which == 1) run(choose_to_receive(*a, *b, got), stop.token());
    if (which == 2) stop.request_stop();
  }
  void after() {
    if (const auto value = a->try_receive()) got += value->get();
    RL_ASSERT(got == 1 && a->stats().waiting + b->stats().waiting == 0);
    a.reset();
    b.reset();
  }
};

// Two send, each to a channel of its own; one selects, and is stopped: what it has not received is there.
struct select_sends_and_stop : rl::test_suite<select_sends_and_stop, 4>, model::world {
  std::optional<weft::channel<watched>> a, b;
  stop_source stop;
  int sent_a = 0, sent_b = 0, got = 0;

  void before() {
    begin();
    sent_a = sent_b = got = 0;
    a.emplace(1);
    b.emplace(1);
  }
  void thread(unsigned which) {
    if (which == 0) RL_ASSERT(run(send(*a, 1, sent_a)));
    if (which == 1) RL_ASSERT(run(send(*b, 10, sent_b)));
    if (which == 2) run(choose_to_receive(*a, *b, got), stop.token());
    if (which == 3) stop.request_stop();
  }
  void after() {
    for (auto* one : {&*a, &*b})
      if (const auto value = one->try_receive()) got += value->get();
    RL_ASSERT(got == 11 && a->stats().waiting + b->stats().waiting == 0);
    a.reset();
    b.reset();
  }
};

template <class Source>
task<> receive_all(weft::receiver_of<Source>& from, int& got, int most = 100) {
  for (; most != 0; --most) {
    const auto value = co_await from.receive();
    if (!value) co_return;
    got = 10 * got + value->get();
  }
}

// One sends to all and closes; of two receivers that it waits for, one leaves in between, or is stopped.
template <bool Stopped>
struct send_to_all : rl::test_suite<send_to_all<Stopped>, 3 + Stopped>, model::world {
  using broadcast = weft::broadcast<watched>;
  std::optional<broadcast> b;
  std::optional<broadcast::receiver> stays, leaves;
  stop_source stop;
  int stayed = 0, left = 0;

  static task<> sends(broadcast& to) {
    co_await to.send(watched{1});
    co_await to.send(watched{2});
    to.close();
  }
  void before() {
    begin();
    stayed = left = 0;
    b.emplace(weft::broadcast_options{.capacity = 1});
    stays.emplace(b->subscribe());
    leaves.emplace(b->subscribe());
  }
  void thread(unsigned which) {
    if (which == 0) RL_ASSERT(run(sends(*b)));
    if (which == 1) RL_ASSERT(run(receive_all(*stays, stayed)));
    if (which == 2) {
      run(receive_all(*leaves, left, Stopped ? 100 : 1), stop.token());
      leaves.reset();
    }
    if (which == 3) stop.request_stop();
  }
  void after() {
    RL_ASSERT(stayed == 12 && (left == 1 || (Stopped && (left == 0 || left == 12))));
    stays.reset();
    b.reset();
  }
};

// One sends three values to all, waiting for nobody, and closes. Of two receivers one is stopped; the other gets each value
// in its order, or misses the oldest and knows how many.
struct send_and_drop : rl::test_suite<send_and_drop, 4>, model::world {
  using broadcast = weft::broadcast<watched>;
  std::optional<broadcast> b;
  std::optional<broadcast::receiver> stays, stopped;
  stop_source stop;
  int stayed = 0, seen = 0;

  void before() {
    begin();
    stayed = seen = 0;
    b.emplace(weft::broadcast_options{.capacity = 1, .slow = weft::slow_receiver::drop_oldest});
    stays.emplace(b->subscribe());
    stopped.emplace(b->subscribe());
  }
  void thread(unsigned which) {
    if (which == 0) {
      for (int i = 1; i != 4; ++i) RL_ASSERT(b->try_send(watched{i}));
      b->close();
    }
    if (which == 1) RL_ASSERT(run(receive_all(*stays, stayed)));
    if (which == 2) {
      run(receive_all(*stopped, seen), stop.token());
      stopped.reset();
    }
    if (which == 3) stop.request_stop();
  }
  void after() {
    RL_ASSERT(stayed == 123 || stayed == 13 || stayed == 23 || stayed == 3);
    RL_ASSERT(stays->missed() == (stayed == 123 ? 0u : stayed == 3 ? 2u : 1u));
    RL_ASSERT(seen <= 3 || seen == 12 || seen == 13 || seen == 23 || seen == 123);
    RL_ASSERT(b->receivers() == 1 && b->stats().waiting == 0);
    stays.reset();
    b.reset();
  }
};

// The same to one receiver, which gets nothing more once it is too slow. The sender goes on.
struct send_and_end : rl::test_suite<send_and_end, 3>, model::world {
  using broadcast = weft::broadcast<watched>;
  std::optional<broadcast> b;
  std::optional<broadcast::receiver> slow;
  stop_source stop;
  int got = 0, all = 0;
  bool ended = false;

  void before() {
    begin();
    got = all = 0;
    ended = false;
    b.emplace(weft::broadcast_options{.capacity = 1, .slow = weft::slow_receiver::end});
    slow.emplace(b->subscribe());
  }
  void thread(unsigned which) {
    if (which == 0) {
      for (int i = 1; i != 4; ++i) RL_ASSERT(b->try_send(watched{i}));
      b->close();
    }
    if (which == 1) run(receives(*this), stop.token());
    if (which == 2) stop.request_stop();
  }
  static task<> receives(send_and_end& of) {
    try {
      while (const auto value = co_await of.slow->receive()) of.got = 10 * of.got + value->get();
      of.all = 1;
    } catch (const weft::receiver_too_slow&) {
      of.ended = true;
    }
  }
  void after() {
    RL_ASSERT(got == 0 || got == 1 || got == 12 || got == 123);  // none was left out
    RL_ASSERT(all == 0 || got == 123);
    RL_ASSERT(!ended || (b->receivers() == 0 && slow->missed() != 0));
    RL_ASSERT(b->stats().waiting == 0);
    slow.reset();
    b.reset();
  }
};

// A value is set twice and closed: each receiver sees the last one, the one that is stopped perhaps not.
struct set_and_watch : rl::test_suite<set_and_watch, 4>, model::world {
  using watch = weft::watch<watched>;
  std::optional<watch> w;
  std::optional<watch::receiver> stays, stopped;
  stop_source stop;
  int stayed = 0, seen = 0;

  void before() {
    begin();
    stayed = seen = 0;
    w.emplace(watched{1});
    stays.emplace(w->subscribe());
    stopped.emplace(w->subscribe());
  }
  void thread(unsigned which) {
    if (which == 0) {
      RL_ASSERT(w->set(watched{2}) && w->set(watched{3}));
      w->close();
    }
    if (which == 1) RL_ASSERT(run(receive_all(*stays, stayed)));
    if (which == 2) run(receive_all(*stopped, seen), stop.token());
    if (which == 3) stop.request_stop();
  }
  void after() {
    RL_ASSERT(stayed % 10 == 3 && stayed <= 123 && seen <= 123);
    stays.reset();
    stopped.reset();
    w.reset();
  }
};

}  // namespace

int main() {
  model::check<send_receive_and_stop>("send, receive and stop", 0);
  model::check<send_send_receive>("send, send and receive", 1);
  model::check<receive_stopped>("send, and receive stopped", 1);
  model::check<send_receive_and_close<0>>("send, receive and close", 1, 100'000, 2);
  model::check<send_receive_and_close<1>>("the same with room", 1, 100'000, 2);
  model::check<receive_and_destroy>("receive and destroy", 2);
  model::check<select_and_select>("select and select", 2);
  model::check<select_select_and_stop>("select, select and stop", 0);
  model::check<select_send_and_stop>("select, send and stop", 1);
  model::check_some<select_sends_and_stop>("select, sends and stop", 50'000);
  model::check_some<send_to_all<false>>("send to all", 30'000);
  model::check_some<send_to_all<true>>("the same, one is stopped", 30'000);
  model::check_some<send_and_drop>("send to all and drop", 30'000);
  model::check<send_and_end>("send to all and end", 0, 30'000);
  model::check_some<set_and_watch>("set and watch", 30'000);
}
