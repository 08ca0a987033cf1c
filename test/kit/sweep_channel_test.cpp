// Channels and select, with a stop at each place of each await, and without memory: no value is lost or comes twice.
#include <weft/channel.hpp>

#include <memory>
#include <new>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>
#include <weft/broadcast.hpp>
#include <weft/channel_ends.hpp>
#include <weft/combine.hpp>
#include <weft/fiber.hpp>
#include <weft/scope.hpp>
#include <weft/select.hpp>

#include "support/sweep.hpp"

namespace {

using namespace test::in_sweeps;
using weft::channel;
using weft::on_receive;
using weft::on_send;
using weft::select;

// A sender, a receiver, and what went from one to the other.
template <class By>
struct passes : counts_values {
  channel<int> c;
  int sent = 0, received = 0;  // sums
  explicit passes(std::size_t capacity) : c{capacity} {}

  part<By> sends(int value) {
    co_await c.send(int{value});
    sent += value;
  }
  part<By> receives(int times) {
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
template <class By>
struct meets : passes<By> {
  meets() : passes<By>{0} {}
  part<By> run() {
    co_await together(this->sends(1), this->receives(2), this->sends(10), this->receives(1), this->sends(100));
  }
};
TEST(sweep, rendezvous) { sweep_both<meets>("channel, channel::send, channel::receive", waits_for_the_other); }

// The ends count: whoever is stopped or fails, the channel is closed when the last sender has gone, so receivers end.
template <class By>
struct ends : counts_values {
  int sent = 0, received = 0;

  part<By> sends(weft::counted_sender<int> to, int value) {
    co_await to.send(int{value});
    sent += value;
  }
  part<By> receives(weft::counted_receiver<int> from) {
    while (const auto value = co_await from.receive()) received += *value;
  }
  part<By> run() {
    auto [to, from] = weft::make_channel<int>(1);
    auto first = sends(to, 1), second = sends(std::move(to), 10);
    auto third = receives(from), fourth = receives(std::move(from));
    co_await together(std::move(first), std::move(second), std::move(third), std::move(fourth));
  }
  void check() { require(received <= sent + 10 && received <= 11, "a value came twice"); }
};
TEST(sweep, counted_ends) { sweep_both<ends>("counted_sender::send, counted_receiver::receive"); }

// What never is ends by a stop alone, and beside it all else goes on.
template <class By>
struct never_is {
  part<By> chooses() {
    channel<int> c{1};
    static_cast<void>(c.try_send(1));
    auto choice = select(weft::on(weft::never<int>()), on_receive(c), weft::on_if(false, on_receive(c)));
    const auto got = co_await std::move(choice);
    require(got.index == 1, "what never is was chosen");
    co_await weft::never();
    require(false, "what never is has ended");
  }
  part<By> run() { co_await together(chooses()); }
};
TEST(sweep, never) { sweep_both<never_is>("never", waits_for_the_other); }

template <class By>
struct waits_for_room : passes<By> {
  waits_for_room() : passes<By>{1} {}
  part<By> later() {
    co_await rest(1);
    co_await this->receives(3);
  }
  part<By> run() { co_await together(this->sends(1), this->sends(10), this->sends(100), later()); }
};
TEST(sweep, bounded_channel) { sweep_both<waits_for_room>("channel::send, channel::receive", waits_for_the_other); }

template <class By>
struct closes : counts_values {
  channel<counted> c{1};
  part<By> sends() {
    co_await c.send(value());
    try {
      co_await c.send(value());
    } catch (const weft::channel_closed<counted>&) {
    }
  }
  part<By> ends() {
    co_await rest(1);
    c.close();
    auto values = c.values();
    while (co_await values.next() != nullptr) {
    }
  }
  part<By> run() { co_await together(sends(), ends()); }
  void check() {
    while (c.try_receive()) {
    }
    counts_values::check();
  }
};
TEST(sweep, closed_channel) { sweep_both<closes>("channel::send, channel::values", waits_for_the_other); }

template <class By>
struct grows : counts_values {
  channel<counted> c{weft::unbounded};
  part<By> sends() {
    co_await rest(1);
    for (int i = 0; i != 20; ++i) co_await c.send(value());
  }
  part<By> receives() {
    for (int i = 0; i != 20; ++i) static_cast<void>(co_await c.receive());
  }
  part<By> run() { co_await together(receives(), sends()); }
  void check() {
    while (c.try_receive()) {
    }
    counts_values::check();
  }
};
TEST(sweep, unbounded_channel) { sweep_both<grows>("channel::send, channel::receive", waits_for_the_other); }

// A loop is for where no `co_await` is.
template <class By>
struct loops_over : counts_values {
  channel<counted> c{1};
  int got = 0;
  part<By> sends() {
    for (int i = 0; i != 3; ++i) co_await c.send(value());
    c.close();
  }
  void loop() {
    for ([[maybe_unused]] const counted& one : c) ++got;
  }
  part<By> receives() {
    co_await rest(1);
    if constexpr (std::is_same_v<By, test::by_fiber>) loop();
    for (;;) {  // g++ 12 loses the co_await of a while's condition here
      const std::optional<counted> one = co_await c.receive();
      if (!one) break;
      ++got;
    }
    require(got == 3, "a value was lost");
  }
  part<By> run() { co_await together(sends(), receives()); }
  void check() {
    while (c.try_receive()) {
    }
    counts_values::check();
  }
};
TEST(sweep, loop_over_a_channel) { sweep_both<loops_over>("channel::receive", waits_for_the_other); }

// Where there is no memory for room, what could not be sent is as it was, and what was sent is there.
template <class By>
struct sends_without_memory : counts_values {
  channel<std::unique_ptr<counted>> c{weft::unbounded};
  int sent = 0, refused = 0;

  part<By> chooses() {
    auto choice = select(on_send(c, std::make_unique<counted>(value())), weft::after(5ms));
    const auto how = co_await as_result(std::move(choice));
    if (how.has_value()) {
      require(how->index == 0, "there was room");
      ++sent;
    } else if (how.exception()) {
      require(test::lacked_memory(how), "a wrong error");
      ++refused;
    }
  }
  void tries() {
    auto one = std::make_unique<counted>(value());
    try {
      require(c.try_send(std::move(one)), "there was room");
      ++sent;
    } catch (const std::bad_alloc&) {
      require(one != nullptr, "what was not sent is not as it was");
      ++refused;
    }
  }
  part<By> run() {
    for (int i = 0; i != 6; ++i) {
      co_await chooses();
      tries();
      co_await chooses();
    }
    co_await rest(1);
  }
  void check() {
    require(refused <= 1, "there was memory");
    for (; c.try_receive(); --sent) {
    }
    require(sent == 0, "a value was lost, or came twice");
    counts_values::check();
  }
};
TEST(sweep, unbounded_channel_without_memory) { sweep_both<sends_without_memory>("select, on_send"); }

template <class By>
struct chooses {
  channel<int> a{0}, b{0};
  int sent = 0, received = 0;

  part<By> picks() {
    const auto got = co_await select(on_receive(a), on_receive(b), weft::after(5ms));
    if (got.index == 0) received += *std::get<0>(got.value);
    if (got.index == 1) received += *std::get<1>(got.value);
  }
  part<By> offers(int value) {
    co_await rest(1);
    // Not in the condition itself: see the book on conditions and g++ 12.
    const auto done = co_await select(on_send(a, value), on_send(b, value), weft::after(5ms));
    if (done.index != 2) sent += value;
  }
  part<By> run() { co_await together(picks(), offers(1), picks(), offers(10), picks()); }
  void check() const {
    require(received >= sent, "a value was lost");
    require(received <= 11, "a value came twice");
    require(a.stats().waiting == 0 && b.stats().waiting == 0, "a case stayed in line");
  }
};
TEST(sweep, select) { sweep_both<chooses>("select, after, on_receive, on_send", waits_for_the_other); }

template <class By>
struct chooses_of_many {
  std::vector<std::unique_ptr<channel<int>>> all;
  int received = 0;
  chooses_of_many() {
    for (int i = 0; i != 3; ++i) all.push_back(std::make_unique<channel<int>>(0));
  }
  part<By> picks() {
    std::vector<weft::receive_case<int>> cases;
    for (auto& one : all) cases.push_back(on_receive(*one));
    const auto got = co_await select(std::move(cases));
    received += *got.value;
  }
  part<By> run() { co_await together(picks(), all[1]->send(1), picks(), all[2]->send(1)); }
  void check() const {
    require(received <= 2, "a value came twice");
    for (const auto& one : all) require(one->stats().waiting == 0, "a case stayed in line");
  }
};
TEST(sweep, select_of_many) { sweep_both<chooses_of_many>("select", waits_for_the_other); }

// Two receivers of all that is sent, of which one is slow; whoever is stopped, the others get theirs.
template <class By>
struct tells_all : counts_values {
  weft::broadcast<std::shared_ptr<counted>> b{{.capacity = 1}};
  part<By> receives(int milliseconds) {
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
  part<By> sends() {
    for (int i = 0; i != 3; ++i) co_await b.send(std::make_shared<counted>(value()));
    b.close();
  }
  part<By> run() { co_await together(receives(0), receives(1), sends()); }
  void check() {
    require(b.receivers() == 0, "a receiver is left");
    require(b.stats().waiting == 0, "somebody is still in line");
    counts_values::check();
  }
};
TEST(sweep, broadcast) {
  sweep_both<tells_all>("broadcast, broadcast::send, receiver_of::receive, on_receive", waits_for_the_other);
}

// A sender that waits for nobody: who is slow misses values, and knows how many, or gets nothing more.
template <class By, weft::slow_receiver Slow>
struct goes_on : counts_values {
  struct numbered {
    int number;
    std::shared_ptr<counted> held;
  };
  using broadcast = weft::broadcast<numbered>;
  static constexpr int last = 6;
  broadcast b{{.capacity = 2, .slow = Slow}};
  int overtaken = 0;

  part<By> receives(typename broadcast::receiver mine, int milliseconds) {
    int got = 0;
    try {
      for (;;) {
        co_await rest(milliseconds);
        std::optional<numbered> next;
        if (got == 1) {
          auto chosen = co_await select(on_receive(mine), weft::after(50ms));
          if (chosen.index != 0) co_return;  // the sender had no memory
          next = std::move(std::get<0>(chosen.value));
        } else {
          next = co_await mine.receive();
        }
        const int missed = static_cast<int>(mine.missed());
        if (!next) {
          require(got + missed == last, "a value was lost, or was not missed");
          co_return;
        }
        require(next->number == got + missed, "a value was lost, or came twice");
        require(Slow == weft::slow_receiver::drop_oldest || missed == 0, "one that misses values is ended");
        ++got;
      }
    } catch (const weft::receiver_too_slow&) {
      require(Slow == weft::slow_receiver::end && mine.missed() != 0, "it was not too slow");
      ++overtaken;
    }
    try {
      static_cast<void>(mine.try_receive());
      require(false, "what has ended goes on");
    } catch (const weft::receiver_too_slow&) {
    }
  }
  part<By> sends() {
    for (int i = 0; i != last; ++i) {
      if (i % 2 == 0) co_await rest(1);
      numbered one{i, std::make_shared<counted>(value())};  // g++ 12 destroys an aggregate within a co_await twice
      co_await b.send(std::move(one));
    }
    b.close();
  }
  part<By> run() {
    co_await together(receives(b.subscribe(), 0), receives(b.subscribe(), 3), sends(), receives(b.subscribe(), 1));
    require((overtaken != 0) == (Slow == weft::slow_receiver::end), "nobody was too slow");
  }
  void check() {
    require(b.receivers() == 0, "a receiver is left");
    require(b.stats().waiting == 0, "somebody is still in line");
    counts_values::check();
  }
};
template <class By>
using drops_oldest = goes_on<By, weft::slow_receiver::drop_oldest>;
template <class By>
using ends_the_slow = goes_on<By, weft::slow_receiver::end>;
TEST(sweep, broadcast_that_drops) {
  sweep_both<drops_oldest>("broadcast::send, receiver_of::receive", waits_for_the_other);
}
TEST(sweep, broadcast_that_ends) {
  sweep_both<ends_the_slow>("broadcast::send, receiver_of::receive", waits_for_the_other);
}

// A broadcast has its room once and for all, and where it has none there is no broadcast.
template <class By>
struct makes_a_broadcast : counts_values {
  int made = 0, refused = 0;
  part<By> sends(weft::broadcast<std::shared_ptr<counted>>& to) {
    for (int i = 0; i != 2; ++i) co_await to.send(std::make_shared<counted>(value()));
    to.close();
  }
  part<By> receives(weft::broadcast<std::shared_ptr<counted>>::receiver from) {
    for (;;) {  // as above
      const auto one = co_await from.receive();
      if (!one) break;
      co_await rest(1);
    }
  }
  part<By> run() {
    std::optional<weft::broadcast<std::shared_ptr<counted>>> b;
    while (!b) try {
        b.emplace(weft::broadcast_options{.capacity = 1});
        ++made;
      } catch (const std::bad_alloc&) {
        ++refused;
      }
    co_await together(sends(*b), receives(b->subscribe()));
  }
};
TEST(sweep, broadcast_without_memory) {
  sweep_both<makes_a_broadcast>("broadcast, broadcast::send", waits_for_the_other);
}

template <class By>
struct follows_a_value {
  weft::watch<int> w{0};
  part<By> follows(weft::watch<int>::receiver mine) {
    int seen = -1;
    auto values = mine.values();
    while (const int* value = co_await values.next()) {
      require(*value > seen, "a value came twice");
      seen = *value;
    }
    require(seen == 2, "the last value was not seen");
  }
  part<By> looks(weft::watch<int>::receiver mine) {
    int seen = -1;
    while (const auto value = co_await mine.receive()) {
      require(*value > seen, "a value came twice");
      seen = *value;
    }
    require(seen == 2, "the last value was not seen");
  }
  part<By> sets() {
    for (int i = 1; i != 3; ++i) {
      co_await rest(1);
      w.set(i);
    }
    w.close();
  }
  part<By> run() { co_await together(follows(w.subscribe()), sets(), looks(w.subscribe())); }
  void check() const { require(w.stats().waiting == 0, "somebody is still in line"); }
};
TEST(sweep, watch) { sweep_both<follows_a_value>("receiver_of::receive, receiver_of::values", waits_for_the_other); }

// A channel, a lock and a task, of which one is first.
template <class By>
struct chooses_beside : counts_values {
  channel<counted> c{0};
  weft::mutex m;
  part<By> picks() {
    const auto got = co_await select(weft::on(make(*this, 2)), on_receive(c), weft::on(m.lock()));
    require(got.index != 2 || m.is_locked(), "a lock was chosen, and is not held");
  }
  part<By> offers() {
    co_await rest(1);
    const auto held = co_await m.lock();
    const auto done = co_await select(on_send(c, value()), weft::on(rest(3)));
    require(done.index <= 1, "there is no such case");
  }
  part<By> run() { co_await together(picks(), offers(), picks()); }
  void check() const {
    require(c.stats().waiting == 0, "a case stayed in line");
    require(!m.is_locked(), "a mutex was not given back");
    counts_values::check();
  }
};
TEST(sweep, select_beside) { sweep_both<chooses_beside>("select, on", waits_for_the_other); }

template <class By>
struct chooses_of_none {
  part<By> run() { co_await select(std::vector<weft::receive_case<int>>{}); }
};
TEST(sweep, select_of_none) { sweep_both<chooses_of_none>("select", waits_for_the_other); }

template <class By>
struct chooses_of_many_beside : counts_values {
  part<By> run() {
    std::vector<weft::on_case<counted>> cases;
    for (int i = 0; i != 3; ++i) cases.push_back(weft::on(make(*this, 1 + i)));
    const auto got = co_await select(std::move(cases));
    require(got.index == 0, "the first was not chosen");
  }
};
TEST(sweep, select_of_many_beside) { sweep_both<chooses_of_many_beside>("select"); }

// Primitives, of which one is first, and what they gave is given back or taken by those behind.
struct chooses_of_primitives {
  weft::mutex m;
  weft::shared_mutex shared;
  weft::semaphore permits{1};
  weft::auto_event signal;
  weft::event open;
  weft::latch counted{1};
  int signals = 0, passed = 0;

  task<> picks() {
    const auto got = co_await select(weft::on(m.lock()), weft::on(permits.acquire(2)), weft::on(signal.wait()),
                                     weft::on(shared.lock_shared()), weft::on(counted.wait()));
    passed += got.index == 2;
  }
  task<> picks_two() {
    const auto got = co_await select(weft::on(permits.acquire()), weft::on(shared.lock()), weft::on(signal.wait()),
                                     weft::on(open.wait()));
    passed += got.index == 2;
  }
  task<> gives() {
    {
      const auto held = co_await m.lock();
      const auto alone = co_await shared.lock();
      const auto permit = co_await permits.acquire();
      co_await rest(1);
      ++signals, signal.set();
      co_await rest(1);
    }
    open.set();
    counted.count_down();
  }
  // Alone one after the other, and in fibers.
  task<> run() {
    auto body = [this](weft::scope& s) -> task<> {
      s.fork(gives());
      s.fork(picks());
      s.go([this] { weft::await(picks_two()); });
      s.fork(picks());
      co_return;
    };
    co_await weft::with_scope(body);
  }
  void check() {
    require(!m.is_locked(), "a mutex was not given back");
    require(static_cast<bool>(shared.try_lock()), "a shared_mutex was not given back");
    require(permits.available() == 1, "a permit was lost, or came twice");
    require(m.stats().waiting + shared.stats().waiting + permits.stats().waiting + signal.stats().waiting +
                    open.stats().waiting + counted.stats().waiting ==
                0,
            "a case stayed in line");
    int left = 0;
    if (weft::sync_wait(select(weft::on(signal.wait()), weft::otherwise)).index == 0) ++left;
    require(passed + left >= signals - 1 && passed + left <= signals, "a signal was lost, or came twice");
  }
};
TEST(sweep, select_of_primitives) { sweep<chooses_of_primitives>("select, on, scope::go", waits_for_the_other); }

// The same for a signal alone, which is never lost: who is told to stop has it or leaves it.
struct chooses_a_signal {
  weft::auto_event signal;
  channel<int> c{0};
  bool set = false, passed = false;

  task<> picks() {
    const auto got = co_await select(on_receive(c), weft::on(signal.wait()));
    passed = got.index == 1;
  }
  task<> gives() {
    co_await rest(1);
    set = true;
    signal.set();
  }
  task<> run() { co_await when_all(picks(), gives()); }
  void check() {
    const bool left = weft::sync_wait(select(weft::on(signal.wait()), weft::otherwise)).index == 0;
    // One that was given it may have been stopped, or without memory, before it could say so; it never waits after that.
    require(!(passed && left), "a signal came twice");
    require(set || !passed, "a signal came from nowhere");
    require(c.stats().waiting + signal.stats().waiting == 0, "a case stayed in line");
  }
};
TEST(sweep, select_of_a_signal) { sweep<chooses_a_signal>("select, on", waits_for_the_other); }

// A future that stays, and is there still or was given, once.
struct chooses_a_future : counts_values {
  weft::promise<std::shared_ptr<counted>> set;
  weft::future<std::shared_ptr<counted>> answer = set.get_future();
  channel<int> c{0};

  task<> picks() {
    for (int times = 0; times != 3 && answer; ++times) {  // one that is not set in time, or never, is asked again
      const auto got = co_await select(weft::on(answer), on_receive(c), weft::after(1ms));
      require(got.index != 1, "there was nothing to receive");
      require(static_cast<bool>(answer) == (got.index == 2), "it was given, and is there still; or neither");
    }
  }
  task<> gives() {
    co_await rest(2);
    set.set_value(std::make_shared<counted>(value()));
  }
  task<> run() { co_await when_all(picks(), gives()); }
  void check() {
    require(c.stats().waiting == 0, "a case stayed in line");
    set = {}, answer = {};  // where no select took it
    counts_values::check();
  }
};
TEST(sweep, select_of_a_future) {
  sweep<chooses_a_future>("select, on, on(answer), after, future, promise", waits_for_the_other);
}

// A send to all, a stop of others and forks, in a task and in a fiber.
struct chooses_of_the_rest : counts_values {
  weft::broadcast<std::shared_ptr<counted>> all{{.capacity = 1}};
  weft::stop_source closing;

  task<> sends() {
    for (int i = 0; i != 3; ++i)
      static_cast<void>(
          co_await select(weft::on(all.send(std::make_shared<counted>(value()))), weft::on_stop(closing.token())));
  }
  task<> run() {
    auto mine = all.subscribe();
    auto body = [&](weft::scope& s) -> task<> {
      weft::fork<int> work = s.fork(nap(2));
      weft::fork<> sending = s.go([this] { weft::await(sends()); });
      static_cast<void>(co_await select(weft::on(work), weft::on(sending)));
      const auto asked = co_await select(weft::on(sending), weft::otherwise);
      require(asked.index <= 1, "there is no such case");
      static_cast<void>(co_await mine.receive());
      closing.request_stop();
      const weft::fork_view<> view = sending.view();
      static_cast<void>(co_await select(weft::on(view), weft::after(5ms)));
    };
    co_await weft::with_scope(body);
  }
  void check() const {
    require(all.stats().waiting == 0, "a case stayed in line");
    require(all.receivers() == 0, "a receiver is left");
    counts_values::check();
  }
};
TEST(sweep, select_of_forks_and_stops) {
  sweep<chooses_of_the_rest>("select, on, on_stop, fork, fork_view, scope::go", waits_for_the_other);
}

// Cases of all kinds, of which a task and a fiber have one each time.
struct chooses_of_all_kinds {
  channel<int> numbers{0};
  channel<std::unique_ptr<int>> parcels{0};
  weft::mutex m;
  weft::stop_source closing;
  int sent = 0, received = 0;

  task<> picks() {
    std::vector<weft::any_case> cases;
    cases.emplace_back(on_receive(numbers), [this](std::optional<int> n) { received += *n; });
    cases.emplace_back(on_receive(parcels), [this](std::optional<std::unique_ptr<int>> n) { received += **n; });
    cases.emplace_back(weft::on(m.lock()), [this](const weft::mutex::guard&) { require(m.is_locked(), "not held"); });
    cases.emplace_back(weft::on_stop(closing.token()));
    cases.emplace_back(weft::after(5ms));
    static_cast<void>(co_await select(std::move(cases)));
  }
  task<> offers() {
    const auto held = co_await m.lock();
    co_await rest(1);
    std::vector<weft::any_case> cases;
    cases.emplace_back(on_send(numbers, 1), [this] { sent += 1; });
    cases.emplace_back(on_send(parcels, std::make_unique<int>(1)), [this] { sent += 1; });
    cases.emplace_back(weft::otherwise);
    static_cast<void>(co_await select(std::move(cases)));
    closing.request_stop();
  }
  task<> run() {
    auto body = [this](weft::scope& s) -> task<> {
      s.fork(offers());
      s.fork(picks());
      s.go([this] { weft::await(picks()); });
      co_return;
    };
    co_await weft::with_scope(body);
  }
  void check() const {
    require(received >= sent, "a value was lost");
    require(received <= 1, "a value came twice");
    require(numbers.stats().waiting + parcels.stats().waiting + m.stats().waiting == 0, "a case stayed in line");
    require(!m.is_locked(), "a mutex was not given back");
  }
};
TEST(sweep, select_of_all_kinds) { sweep<chooses_of_all_kinds>("select, on, on_stop, scope::go", waits_for_the_other); }

}  // namespace
