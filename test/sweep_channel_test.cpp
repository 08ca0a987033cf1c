// Channels and select, with a stop at each place of each await, and without memory: no value is lost or comes twice.
#include <weft/channel.hpp>

#include <memory>
#include <vector>
#include <weft/combine.hpp>

#include "support/sweep.hpp"

namespace {

using namespace test::in_sweeps;
using weft::channel;
using weft::on_receive;
using weft::on_send;
using weft::select;
using weft::when_all;

// A sender, a receiver, and what went from one to the other.
struct passes : counts_values {
  channel<int> c;
  int sent = 0, received = 0;  // sums
  explicit passes(std::size_t capacity) : c{capacity} {}

  task<> sends(int value) {
    co_await c.send(int{value});
    sent += value;
  }
  task<> receives(int times) {
    for (int i = 0; i != times; ++i)
      if (const auto value = co_await c.receive()) received += *value;
  }
  void check() {
    counts_values::check();
    while (const auto value = c.try_receive()) received += *value;
    // One that was received may have been sent by a task that was stopped before it could say so.
    require(received == sent || received > sent, "a value was lost");
    require(received <= 1 + 10 + 100, "a value came twice");
  }
};
struct meets : passes {
  meets() : passes{0} {}
  task<> run() { co_await when_all(sends(1), receives(2), sends(10), receives(1), sends(100)); }
};
TEST(sweep, rendezvous) { sweep<meets>("channel, channel::send, channel::receive", waits_for_the_other); }

struct waits_for_room : passes {
  waits_for_room() : passes{1} {}
  task<> later() {
    co_await rest(1);
    co_await receives(3);
  }
  task<> run() { co_await when_all(sends(1), sends(10), sends(100), later()); }
};
TEST(sweep, bounded_channel) { sweep<waits_for_room>("channel::send, channel::receive", waits_for_the_other); }

struct closes : counts_values {
  channel<counted> c{1};
  task<> sends() {
    co_await c.send(value());
    try {
      co_await c.send(value());
    } catch (const weft::channel_closed<counted>&) {
    }
  }
  task<> ends() {
    co_await rest(1);
    c.close();
    auto values = c.values();
    while (co_await values.next() != nullptr) {
    }
  }
  task<> run() { co_await when_all(sends(), ends()); }
  void check() {
    while (c.try_receive()) {
    }
    counts_values::check();
  }
};
TEST(sweep, closed_channel) { sweep<closes>("channel::send, channel::values", waits_for_the_other); }

struct grows : counts_values {
  channel<counted> c{weft::unbounded};
  task<> sends() {
    co_await rest(1);
    for (int i = 0; i != 20; ++i) co_await c.send(value());
  }
  task<> receives() {
    for (int i = 0; i != 20; ++i) static_cast<void>(co_await c.receive());
  }
  task<> run() { co_await when_all(receives(), sends()); }
  void check() {
    while (c.try_receive()) {
    }
    counts_values::check();
  }
};
TEST(sweep, unbounded_channel) { sweep<grows>("channel::send, channel::receive", waits_for_the_other); }

struct chooses {
  channel<int> a{0}, b{0};
  int sent = 0, received = 0;

  task<> picks() {
    const auto got = co_await select(on_receive(a), on_receive(b), weft::after(5ms));
    if (got.index == 0) received += *std::get<0>(got.value);
    if (got.index == 1) received += *std::get<1>(got.value);
  }
  task<> offers(int value) {
    co_await rest(1);
    // Not in the condition itself: see the book on conditions and g++ 12.
    const auto done = co_await select(on_send(a, value), on_send(b, value), weft::after(5ms));
    if (done.index != 2) sent += value;
  }
  task<> run() { co_await when_all(picks(), offers(1), picks(), offers(10), picks()); }
  void check() const {
    require(received >= sent, "a value was lost");
    require(received <= 11, "a value came twice");
    require(a.stats().waiting == 0 && b.stats().waiting == 0, "a case stayed in line");
  }
};
TEST(sweep, select) { sweep<chooses>("select, after, on_receive, on_send", waits_for_the_other); }

struct chooses_of_many {
  std::vector<std::unique_ptr<channel<int>>> all;
  int received = 0;
  chooses_of_many() {
    for (int i = 0; i != 3; ++i) all.push_back(std::make_unique<channel<int>>(0));
  }
  task<> picks() {
    std::vector<weft::receive_case<int>> cases;
    for (auto& one : all) cases.push_back(on_receive(*one));
    const auto got = co_await select(std::move(cases));
    received += *got.value;
  }
  task<> run() { co_await when_all(picks(), all[1]->send(1), picks(), all[2]->send(1)); }
  void check() const {
    require(received <= 2, "a value came twice");
    for (const auto& one : all) require(one->stats().waiting == 0, "a case stayed in line");
  }
};
TEST(sweep, select_of_many) { sweep<chooses_of_many>("select", waits_for_the_other); }

// Two receivers of all that is sent, of which one is slow; whoever is stopped, the others get theirs.
struct tells_all : counts_values {
  weft::broadcast<std::shared_ptr<counted>> b{{.capacity = 1}};
  task<> receives(int milliseconds) {
    auto mine = b.subscribe();
    for (int i = 0; i != 3; ++i) {
      co_await rest(milliseconds);
      if (i == 1) {
        static_cast<void>(co_await select(on_receive(mine), weft::after(5ms)));
      } else if (!co_await mine.receive()) {
        break;
      }
    }
  }
  task<> sends() {
    for (int i = 0; i != 3; ++i) co_await b.send(std::make_shared<counted>(value()));
    b.close();
  }
  task<> run() { co_await when_all(receives(0), receives(1), sends()); }
  void check() {
    require(b.receivers() == 0, "a receiver is left");
    require(b.stats().waiting == 0, "somebody is still in line");
    counts_values::check();
  }
};
TEST(sweep, broadcast) {
  sweep<tells_all>("broadcast, broadcast::send, receiver_of::receive, on_receive", waits_for_the_other);
}

struct follows_a_value {
  weft::watch<int> w{0};
  task<> follows(weft::watch<int>::receiver mine) {
    int seen = -1;
    auto values = mine.values();
    while (const int* value = co_await values.next()) {
      require(*value > seen, "a value came twice");
      seen = *value;
    }
    require(seen == 2, "the last value was not seen");
  }
  task<> sets() {
    for (int i = 1; i != 3; ++i) {
      co_await rest(1);
      w.set(i);
    }
    w.close();
  }
  task<> run() { co_await when_all(follows(w.subscribe()), sets(), follows(w.subscribe())); }
  void check() const { require(w.stats().waiting == 0, "somebody is still in line"); }
};
TEST(sweep, watch) { sweep<follows_a_value>("receiver_of::receive, receiver_of::values", waits_for_the_other); }

// A channel, a lock and a task, of which one is first.
struct chooses_beside : counts_values {
  channel<counted> c{0};
  weft::mutex m;
  task<> picks() {
    const auto got = co_await select(weft::on(make(*this, 2)), on_receive(c), weft::on(m.lock()));
    require(got.index != 2 || m.is_locked(), "a lock was chosen, and is not held");
  }
  task<> offers() {
    co_await rest(1);
    const auto held = co_await m.lock();
    const auto done = co_await select(on_send(c, value()), weft::on(rest(3)));
    require(done.index <= 1, "there is no such case");
  }
  task<> run() { co_await when_all(picks(), offers(), picks()); }
  void check() const {
    require(c.stats().waiting == 0, "a case stayed in line");
    require(!m.is_locked(), "a mutex was not given back");
    counts_values::check();
  }
};
TEST(sweep, select_beside) { sweep<chooses_beside>("select, on", waits_for_the_other); }

struct chooses_of_none {
  task<> run() { co_await select(std::vector<weft::receive_case<int>>{}); }
};
TEST(sweep, select_of_none) { sweep<chooses_of_none>("select", waits_for_the_other); }

struct chooses_of_many_beside : counts_values {
  task<> run() {
    std::vector<weft::on_case<counted>> cases;
    for (int i = 0; i != 3; ++i) cases.push_back(weft::on(make(*this, 1 + i)));
    const auto got = co_await select(std::move(cases));
    require(got.index == 0, "the first was not chosen");
  }
};
TEST(sweep, select_of_many_beside) { sweep<chooses_of_many_beside>("select"); }

}  // namespace
