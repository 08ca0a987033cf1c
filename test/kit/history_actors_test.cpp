// Channels, selects and locks as tasks on a pool, fibers there and plain threads see them at the same time, each of whose
// waits may be stopped or run out of time: what they did fits an object that does a thing at a time, and what gave up did
// nothing. See support/history.hpp and support/actors.hpp.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>
#include <weft/channel.hpp>
#include <weft/pool.hpp>
#include <weft/select.hpp>
#include <weft/sync.hpp>

#include "support/actors.hpp"
#include "support/history.hpp"
#include "support/models.hpp"
#include "support/weft_test.hpp"

namespace {

using test::attempt;
using test::channel_model;
using test::channel_operation;
using test::is_linearizable;
using test::limit;
using test::mutex_model;
using test::mutex_operation;
using test::outcome;
using test::part;
using test::rendezvous_model;
using test::select_operation;
using test::semaphore_model;
using test::semaphore_operation;
using test::shared_mutex_model;
using test::shared_mutex_operation;
using test::two_channels_model;

constexpr std::size_t actors = 4, steps = 5;

/// What each actor does in each of its steps: by chance, fixed before they begin.
struct plan {
  explicit plan(std::mt19937& random) : dice(actors * steps) {
    for (std::uint32_t& one : dice) one = static_cast<std::uint32_t>(random());
  }
  std::uint32_t what(std::size_t who, std::size_t step) const { return dice[who * steps + step] >> 16; }
  limit within(std::size_t who, std::size_t step) {
    return may_stop.some(who, step, dice[who * steps + step] & 0xffff);
  }

  std::vector<std::uint32_t> dice;
  test::stops may_stop{actors, steps};
};

/// Some rounds of `step(By{}, object, seen, who, nth, plan)`, a part, by all actors in turn. `check(history)` after each.
/// `make()` gives an object, and `end(object, seen)` is a part that the first actor does at last.
template <class Operation, class Make, class Step, class End, class Check>
void some_rounds(Make make, Step step, End end, Check check) {
  const weft::pool pool{{.threads = 2}};
  std::mt19937 random{20};
  std::size_t gave_up = 0, done = 0;
  for (int round = 0; round != test::rounds(400); ++round) {
    auto object = make(random);
    plan what{random};
    test::history<Operation> seen{actors};
    auto script = [&]<class By>(By, std::size_t who) -> part<By> {
      for (std::size_t nth = 0; nth != steps; ++nth) {
        what.may_stop.comes_to(who, nth);
        co_await step(By{}, *object, seen, who, nth, what);
      }
      if (who == 0) end(*object, seen);
    };
    test::all_act(pool, actors, static_cast<std::size_t>(round), script);
    for (const auto& one : seen.all()) ++(one.what.what == Operation::kind::gave_up ? gave_up : done);
    ASSERT_TRUE(check(*object, seen.all())) << "round " << round;
  }
  EXPECT_NE(gave_up, 0U);
  EXPECT_NE(done, 0U);
}
constexpr auto nothing_at_last = [](auto&, auto&) {};

/// The first one closes at last, so that whoever waits goes on; it never waits for ever before.
limit bounded(std::size_t who, limit within) {
  if (who == 0) within.what = limit::by::deadline;
  return within;
}

int number(std::size_t who, std::size_t nth) { return static_cast<int>(100 * (who + 1) + nth); }

// ---- channels -------------------------------------------------------------------------------------------------------------

constexpr auto step_on_a_channel = []<class By>(By, weft::channel<int>& c, test::history<channel_operation>& seen,
                                                std::size_t who, std::size_t nth, plan& what) -> part<By> {
  using kind = channel_operation::kind;
  channel_operation did{static_cast<kind>(what.what(who, nth) % 4), number(who, nth)};
  const limit within = bounded(who, what.within(who, nth));
  auto how = outcome::done;
  auto sends = [&] { return c.send(int{did.value}); };
  auto receives = [&] { return c.receive(); };
  auto sent = [] {};
  int got = 0;
  auto received = [&](std::optional<int> value) { got = value.value_or(0); };
  const std::uint64_t called = seen.call();
  switch (did.what) {
    case kind::send: how = co_await attempt<By>(within, sends, sent); break;
    case kind::receive: how = co_await attempt<By>(within, receives, received); break;
    case kind::try_send: did.did = c.try_send(int{did.value}); break;
    default: got = c.try_receive().value_or(0);
  }
  if (did.what == kind::receive || did.what == kind::try_receive) did.value = got;
  if (how == outcome::closed) did.did = false;
  if (how == outcome::gave_up) did.what = kind::gave_up;
  seen.returned(who, called, did);
};
constexpr auto close_at_last = [](weft::channel<int>& c, test::history<channel_operation>& seen) {
  seen.record(0, [&]() -> channel_operation {
    c.close();
    return {channel_operation::kind::close};
  });
};
using of_channel = std::vector<test::history<channel_operation>::entry>;

TEST(history_actors, a_bounded_channel_is_linearizable) {
  some_rounds<channel_operation>([](auto& random) { return std::make_unique<weft::channel<int>>(1 + random() % 2); },
                                 step_on_a_channel, close_at_last,
                                 [](weft::channel<int>& c, const of_channel& all) {
                                   return is_linearizable(channel_model{.capacity = c.capacity()}, all);
                                 });
}
TEST(history_actors, an_unbounded_channel_is_linearizable) {
  some_rounds<channel_operation>([](auto&) { return std::make_unique<weft::channel<int>>(weft::unbounded); },
                                 step_on_a_channel, close_at_last,
                                 [](weft::channel<int>&, const of_channel& all) {
                                   return is_linearizable(channel_model{.capacity = channel_model::unbounded}, all);
                                 });
}
TEST(history_actors, a_rendezvous_is_linearizable) {
  some_rounds<channel_operation>([](auto&) { return std::make_unique<weft::channel<int>>(std::size_t{0}); },
                                 step_on_a_channel, close_at_last,
                                 [](weft::channel<int>&, const of_channel& all) {
                                   const auto met = test::meetings(all);
                                   return met && is_linearizable(rendezvous_model{}, *met);
                                 });
}

// ---- select ---------------------------------------------------------------------------------------------------------------

struct two_channels {
  explicit two_channels(std::size_t capacity) : a{capacity}, b{1} {}
  weft::channel<int> a, b;
};

// Receives from either, or sends to one and receives from the other; one in four does not wait.
constexpr auto step_of_select = []<class By>(By, two_channels& two, test::history<select_operation>& seen,
                                             std::size_t who, std::size_t nth, plan& what) -> part<By> {
  const std::uint32_t dice = what.what(who, nth);
  const limit within = bounded(who, what.within(who, nth));
  const int mine = number(who, nth);
  select_operation did{.sends = {dice % 3 == 1, dice % 3 == 2}};
  auto chose = [&](auto chosen) {
    did.chosen = chosen.index;
    did.value = did.chosen != select_operation::neither && did.sends[did.chosen] ? mine : 0;
    auto keep = [&]<class Value>(const Value& value) {
      if constexpr (std::is_same_v<Value, std::optional<int>>) did.value = value.value_or(0);
    };
    std::visit(keep, chosen.value);
  };
  auto either = [&] { return select(on_receive(two.a), on_receive(two.b)); };
  auto to_a = [&] { return select(on_send(two.a, int{mine}), on_receive(two.b)); };
  auto to_b = [&] { return select(on_receive(two.a), on_send(two.b, int{mine})); };
  auto either_now = [&] { return select(on_receive(two.a), on_receive(two.b), weft::otherwise); };
  auto to_a_now = [&] { return select(on_send(two.a, int{mine}), on_receive(two.b), weft::otherwise); };
  auto to_b_now = [&] { return select(on_receive(two.a), on_send(two.b, int{mine}), weft::otherwise); };
  auto how = outcome::done;
  const std::uint64_t called = seen.call();
  switch (dice % 3 + (dice / 3 % 4 == 0 ? 3 : 0)) {
    case 0: how = co_await attempt<By>(within, either, chose); break;
    case 1: how = co_await attempt<By>(within, to_a, chose); break;
    case 2: how = co_await attempt<By>(within, to_b, chose); break;
    case 3: how = co_await attempt<By>(within, either_now, chose); break;
    case 4: how = co_await attempt<By>(within, to_a_now, chose); break;
    default: how = co_await attempt<By>(within, to_b_now, chose);
  }
  if (how == outcome::closed) {
    did.did = false;
    did.chosen = did.sends[0] ? 0 : 1;
  }
  if (how == outcome::gave_up) did.what = select_operation::kind::gave_up;
  seen.returned(who, called, did);
};

TEST(history_actors, a_select_over_two_channels_is_linearizable) {
  some_rounds<select_operation>(
      [](auto& random) { return std::make_unique<two_channels>(1 + random() % 2); }, step_of_select,
      [](two_channels& two, test::history<select_operation>& seen) {
        for (const std::size_t i : {0, 1})
          seen.record(0, [&]() -> select_operation {
            (i == 0 ? two.a : two.b).close();
            return {.what = select_operation::kind::close, .chosen = i};
          });
      },
      [](two_channels& two, const auto& all) {
        return is_linearizable(two_channels_model{{{{two.a.capacity()}, {two.b.capacity()}}}}, all);
      });
}

// ---- what is taken and given back -------------------------------------------------------------------------------------------

// Whoever has taken it lets others run, so that they come while it is held.

TEST(history_actors, a_mutex_is_linearizable) {
  auto step = []<class By>(By, weft::mutex& m, test::history<mutex_operation>& seen, std::size_t who, std::size_t nth,
                           plan& what) -> part<By> {
    using kind = mutex_operation::kind;
    weft::mutex::guard held;
    auto locks = [&] { return m.lock(); };
    auto locked = [&](weft::mutex::guard given) { held = std::move(given); };
    std::uint64_t called = seen.call();
    if (what.what(who, nth) % 3 == 0) {
      held = m.try_lock();
      seen.returned(who, called, {kind::try_lock, static_cast<bool>(held)});
    } else {
      const outcome how = co_await attempt<By>(what.within(who, nth), locks, locked);
      seen.returned(who, called, {how == outcome::done ? kind::lock : kind::gave_up});
    }
    if (!held) co_return;
    co_await weft::yield();
    called = seen.call();
    held.unlock();
    seen.returned(who, called, {kind::unlock});
  };
  some_rounds<mutex_operation>([](auto&) { return std::make_unique<weft::mutex>(); }, step, nothing_at_last,
                               [](weft::mutex&, const auto& all) { return is_linearizable(mutex_model{}, all); });
}

void permits_are_counted(std::size_t largest) {
  auto step = [largest]<class By>(By, weft::semaphore& s, test::history<semaphore_operation>& seen, std::size_t who,
                                  std::size_t nth, plan& what) -> part<By> {
    using kind = semaphore_operation::kind;
    const std::size_t count = 1 + what.what(who, nth) / 3 % largest;
    weft::semaphore::permit held;
    auto acquires = [&] { return s.acquire(count); };
    auto acquired = [&](weft::semaphore::permit given) { held = std::move(given); };
    std::uint64_t called = seen.call();
    if (what.what(who, nth) % 3 == 0) {
      held = s.try_acquire(count);
      seen.returned(who, called, {kind::try_acquire, count, static_cast<bool>(held)});
    } else {
      const outcome how = co_await attempt<By>(what.within(who, nth), acquires, acquired);
      seen.returned(who, called, {how == outcome::done ? kind::acquire : kind::gave_up, count});
    }
    if (!held) co_return;
    co_await weft::yield();
    called = seen.call();
    held.release();
    seen.returned(who, called, {kind::release, count});
  };
  some_rounds<semaphore_operation>([](auto&) { return std::make_unique<weft::semaphore>(2); }, step, nothing_at_last,
                                   [largest](weft::semaphore& s, const auto& all) {
                                     return s.available() == 2 &&
                                            is_linearizable(semaphore_model{.all = 2, .largest = largest}, all);
                                   });
}
TEST(history_actors, a_semaphore_is_linearizable) { permits_are_counted(1); }
TEST(history_actors, a_semaphore_of_which_some_want_two_is_linearizable) { permits_are_counted(2); }

// Some that share it will want it alone, and some that have it alone share it in the end.
void readers_and_writers(weft::shared_mutex_options options) {
  using kind = shared_mutex_operation::kind;
  using mode = shared_mutex_operation::mode;
  auto step = []<class By>(By, weft::shared_mutex& m, test::history<shared_mutex_operation>& seen, std::size_t who,
                           std::size_t nth, plan& what) -> part<By> {
    const std::uint32_t dice = what.what(who, nth);
    const mode how = static_cast<mode>(dice % 3);
    const bool tries = dice / 3 % 4 == 0;
    const limit within = what.within(who, nth);
    weft::shared_mutex::shared_guard shared;
    weft::shared_mutex::upgradable_guard upgradable;
    weft::shared_mutex::guard alone;
    auto shares = [&] { return m.lock_shared(); };
    auto announces = [&] { return m.lock_upgradable(); };
    auto locks = [&] { return m.lock(); };
    auto upgrades = [&] { return std::move(upgradable).upgrade(); };
    auto keep_shared = [&](auto given) { shared = std::move(given); };
    auto keep_upgradable = [&](auto given) { upgradable = std::move(given); };
    auto keep_alone = [&](auto given) { alone = std::move(given); };
    const auto is_held = [&] { return shared || upgradable || alone; };
    std::uint64_t called = seen.call();
    if (tries) {
      if (how == mode::shared) shared = m.try_lock_shared();
      if (how == mode::upgradable) upgradable = m.try_lock_upgradable();
      if (how == mode::alone) alone = m.try_lock();
    } else {
      if (how == mode::shared) co_await attempt<By>(within, shares, keep_shared);
      if (how == mode::upgradable) co_await attempt<By>(within, announces, keep_upgradable);
      if (how == mode::alone) co_await attempt<By>(within, locks, keep_alone);
    }
    seen.returned(who, called, {tries ? kind::try_take : is_held() ? kind::take : kind::gave_up, how, is_held()});
    if (is_held()) co_await weft::yield();
    if (upgradable && dice / 12 % 2 == 0) {
      called = seen.call();
      const outcome came = co_await attempt<By>(within, upgrades, keep_alone);
      seen.returned(who, called, {came == outcome::done ? kind::upgrade : kind::gave_up});
    }
    if (alone && dice / 24 % 2 == 0) {
      called = seen.call();
      shared = std::move(alone).downgrade();
      seen.returned(who, called, {kind::downgrade, mode::alone});
    }
    if (!is_held()) co_return;
    co_await weft::yield();
    const mode held_as = shared ? mode::shared : upgradable ? mode::upgradable : mode::alone;
    called = seen.call();
    shared.unlock();
    upgradable.unlock();
    alone.unlock();
    seen.returned(who, called, {kind::give_back, held_as});
  };
  some_rounds<shared_mutex_operation>(
      [options](auto&) { return std::make_unique<weft::shared_mutex>(options); }, step, nothing_at_last,
      [](weft::shared_mutex&, const auto& all) { return is_linearizable(shared_mutex_model{}, all); });
}
TEST(history_actors, a_shared_mutex_is_linearizable) { readers_and_writers({}); }
TEST(history_actors, a_shared_mutex_that_prefers_writers_is_linearizable) {
  readers_and_writers({.prefer_writers = true});
}

}  // namespace
