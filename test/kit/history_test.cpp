// Channel and mutex as threads see them: what several of them did at the same time fits an object that does a thing at a
// time. And what the checker must find, of these and of what history_actors_test.cpp checks. See support/history.hpp.
#include "support/history.hpp"

#include <memory>
#include <optional>
#include <random>
#include <thread>
#include <vector>
#include <weft/channel.hpp>
#include <weft/sync.hpp>

#include "support/models.hpp"
#include "support/weft_test.hpp"

namespace {

using weft::sync_wait;

// ---- a channel ------------------------------------------------------------------------------------------------------------

using test::channel_model;
using test::channel_operation;

channel_operation act(weft::channel<int>& c, channel_operation::kind what, int value) {
  using kind = channel_operation::kind;
  channel_operation did{what, value};
  switch (what) {
    case kind::send: try { sync_wait(c.send(int{value}));
      } catch (const weft::channel_closed<int>&) {
        did.did = false;
      }
      break;
    case kind::try_send: did.did = c.try_send(int{value}); break;
    case kind::receive: did.value = sync_wait(c.receive()).value_or(0); break;
    case kind::try_receive: did.value = c.try_receive().value_or(0); break;
    case kind::close: c.close(); break;
    case kind::gave_up: break;
  }
  return did;
}

TEST(history, a_channel_is_linearizable) {
  constexpr std::size_t threads = 3, each = 6;
  std::mt19937 random{20};
  for (int round = 0; round != test::rounds(400); ++round) {
    const std::size_t capacity = 1 + random() % 2;
    weft::channel<int> c{capacity};
    test::history<channel_operation> seen{threads};
    std::vector<std::jthread> all;
    for (std::size_t i = 0; i != threads; ++i) {
      // The first one closes it at the end, so whoever waits goes on.
      std::vector<channel_operation::kind> plan;
      for (std::size_t n = 0; n != each; ++n) plan.push_back(static_cast<channel_operation::kind>(random() % 4));
      if (i == 0) {
        for (auto& one : plan)  // and does not wait before that
          if (one == channel_operation::kind::send || one == channel_operation::kind::receive)
            one = static_cast<channel_operation::kind>(static_cast<int>(one) + 1);
        plan.push_back(channel_operation::kind::close);
      }
      all.emplace_back([&c, &seen, i, plan = std::move(plan)] {
        for (std::size_t n = 0; n != plan.size(); ++n)
          seen.record(i, [&] { return act(c, plan[n], static_cast<int>(100 * (i + 1) + n)); });
      });
    }
    all.clear();
    ASSERT_TRUE(test::is_linearizable(channel_model{.capacity = capacity}, seen.all())) << "round " << round;
  }
}

// ---- a mutex --------------------------------------------------------------------------------------------------------------

using test::mutex_model;
using test::mutex_operation;

TEST(history, a_mutex_is_linearizable) {
  constexpr std::size_t threads = 3;
  std::mt19937 random{20};
  for (int round = 0; round != test::rounds(400); ++round) {
    weft::mutex m;
    test::history<mutex_operation> seen{threads};
    std::vector<std::jthread> all;
    for (std::size_t i = 0; i != threads; ++i)
      all.emplace_back([&m, &seen, i, tries = random()] {
        using kind = mutex_operation::kind;
        for (int n = 0; n != 5; ++n) {
          weft::mutex::guard held;
          seen.record(i, [&]() -> mutex_operation {
            const bool only_tries = (tries >> n & 1) != 0;
            held = only_tries ? m.try_lock() : sync_wait(m.lock());
            return {only_tries ? kind::try_lock : kind::lock, static_cast<bool>(held)};
          });
          if (held)
            seen.record(i, [&]() -> mutex_operation {
              held.unlock();
              return {kind::unlock};
            });
        }
      });
    all.clear();
    ASSERT_TRUE(test::is_linearizable(mutex_model{}, seen.all())) << "round " << round;
  }
}

// ---- the checker ----------------------------------------------------------------------------------------------------------

using channel_history = std::vector<test::history<channel_operation>::entry>;
using kind = channel_operation::kind;

TEST(history, what_overlaps_may_be_in_any_order_and_what_does_not_may_not) {
  const channel_model start{.capacity = 4};
  const channel_history overlapping{{{kind::send, 1}, 0, 3}, {{kind::send, 2}, 1, 2}, {{kind::receive, 2}, 4, 5}};
  EXPECT_TRUE(test::is_linearizable(start, overlapping));
  const channel_history in_turn{{{kind::send, 1}, 0, 1}, {{kind::send, 2}, 2, 3}, {{kind::receive, 2}, 4, 5}};
  EXPECT_FALSE(test::is_linearizable(start, in_turn)) << "2 has overtaken 1";
}
TEST(history, a_value_that_is_lost_or_comes_twice_is_found) {
  const channel_model start{.capacity = 4};
  const channel_history lost{{{kind::send, 1}, 0, 1}, {{kind::try_receive, 0}, 2, 3}};
  EXPECT_FALSE(test::is_linearizable(start, lost));
  const channel_history twice{{{kind::send, 1}, 0, 1}, {{kind::receive, 1}, 2, 5}, {{kind::receive, 1}, 3, 4}};
  EXPECT_FALSE(test::is_linearizable(start, twice));
  const channel_history early{{{kind::receive, 1}, 0, 1}, {{kind::send, 1}, 2, 3}};
  EXPECT_FALSE(test::is_linearizable(start, early)) << "it was received before it was sent";
}
TEST(history, what_is_closed_is_drained) {
  const channel_model start{.capacity = 4};
  const channel_history drained{
      {{kind::send, 1}, 0, 1}, {{kind::close}, 2, 3}, {{kind::receive, 1}, 4, 5}, {{kind::receive, 0}, 6, 7}};
  EXPECT_TRUE(test::is_linearizable(start, drained));
  const channel_history after{{{kind::close}, 0, 1}, {{kind::send, 1}, 2, 3}};
  EXPECT_FALSE(test::is_linearizable(start, after));
}

TEST(history, an_unbounded_channel_has_room) {
  const channel_model start{.capacity = channel_model::unbounded};
  EXPECT_TRUE(test::is_linearizable(start, channel_history{{{kind::try_send, 1}, 0, 1}, {{kind::receive, 1}, 2, 3}}));
  EXPECT_FALSE(test::is_linearizable(start, channel_history{{{kind::try_send, 1, false}, 0, 1}}));
}
TEST(history, those_that_meet_are_there_at_the_same_time) {
  const auto fits = [](const channel_history& all) {
    const auto met = test::meetings(all);
    return met && test::is_linearizable(test::rendezvous_model{}, *met);
  };
  EXPECT_TRUE(fits({{{kind::send, 1}, 0, 2}, {{kind::receive, 1}, 1, 3}, {{kind::close}, 4, 5}}));
  EXPECT_TRUE(fits({{{kind::try_receive, 0}, 0, 1}, {{kind::close}, 2, 3}, {{kind::send, 1, false}, 4, 5}}));
  EXPECT_FALSE(fits({{{kind::send, 1}, 0, 1}, {{kind::receive, 1}, 2, 3}})) << "the value was kept in between";
  EXPECT_FALSE(fits({{{kind::send, 1}, 0, 1}})) << "nobody came";
  EXPECT_FALSE(fits({{{kind::send, 1}, 0, 5}, {{kind::receive, 1}, 1, 2}, {{kind::receive, 1}, 3, 4}})) << "twice";
  EXPECT_FALSE(fits({{{kind::close}, 0, 1}, {{kind::send, 1}, 2, 4}, {{kind::receive, 1}, 3, 5}})) << "closed";
  EXPECT_FALSE(fits({{{kind::send, 1, false}, 0, 1}, {{kind::close}, 2, 3}})) << "not closed yet";
  EXPECT_FALSE(fits({{{kind::receive, 0}, 0, 1}, {{kind::close}, 2, 3}})) << "not closed yet";
}
TEST(history, a_select_does_one_case) {
  using one = test::select_operation;
  using select_history = std::vector<test::history<one>::entry>;
  const test::two_channels_model start{{{{.capacity = 1}, {.capacity = 1}}}};
  const auto fits = [&](const select_history& all) { return test::is_linearizable(start, all); };
  const one to_a{.sends = {true, false}, .chosen = 0, .value = 1}, from_a{.chosen = 0, .value = 1};
  const one from_b{.chosen = 1, .value = 1}, neither{}, close_b{.what = one::kind::close, .chosen = 1};
  EXPECT_TRUE(fits({{neither, 0, 1}, {to_a, 2, 3}, {from_a, 4, 5}, {neither, 6, 7}}));
  EXPECT_FALSE(fits({{to_a, 0, 1}, {from_b, 2, 3}})) << "it comes from the wrong one";
  EXPECT_FALSE(fits({{to_a, 0, 1}, {neither, 2, 3}})) << "a case was ready";
  EXPECT_FALSE(fits({{close_b, 0, 1}, {neither, 2, 3}})) << "a case was ready, for it was closed";
  EXPECT_FALSE(fits({{to_a, 0, 1}, {to_a, 2, 3}})) << "it was full";
  const one gave_up{.what = one::kind::gave_up};
  EXPECT_FALSE(fits({{to_a, 0, 1}, {gave_up, 2, 3}, {neither, 4, 5}})) << "what gave up has received";
}
TEST(history, permits_are_as_many_as_there_are) {
  using what = test::semaphore_operation::kind;
  using permit_history = std::vector<test::history<test::semaphore_operation>::entry>;
  const auto fits = [](const permit_history& all, std::size_t largest = 1) {
    return test::is_linearizable(test::semaphore_model{.all = 2, .largest = largest}, all);
  };
  EXPECT_TRUE(fits({{{what::acquire}, 0, 1}, {{what::acquire}, 2, 3}, {{what::try_acquire, 1, false}, 4, 5}}));
  EXPECT_TRUE(fits({{{what::acquire, 2}, 0, 1}, {{what::acquire}, 2, 5}, {{what::release, 2}, 3, 4}}));
  EXPECT_FALSE(fits({{{what::acquire, 2}, 0, 1}, {{what::acquire}, 2, 3}, {{what::release, 2}, 4, 5}})) << "three";
  EXPECT_FALSE(fits({{{what::acquire}, 0, 1}, {{what::try_acquire, 1, false}, 2, 3}})) << "one was free";
  EXPECT_TRUE(fits({{{what::acquire}, 0, 1}, {{what::try_acquire, 1, false}, 2, 3}}, 2)) << "one may wait for two";
  EXPECT_FALSE(fits({{{what::acquire}, 0, 1}, {{what::release, 2}, 2, 3}})) << "one too many came back";
  EXPECT_FALSE(fits({{{what::gave_up, 2}, 0, 1}, {{what::try_acquire, 1, false}, 2, 3}})) << "who gave up has permits";
}
TEST(history, readers_or_one_writer) {
  using what = test::shared_mutex_operation::kind;
  using mode = test::shared_mutex_operation::mode;
  using lock_history = std::vector<test::history<test::shared_mutex_operation>::entry>;
  const auto fits = [](const lock_history& all) { return test::is_linearizable(test::shared_mutex_model{}, all); };
  EXPECT_TRUE(fits({{{what::take, mode::shared}, 0, 1}, {{what::take, mode::upgradable}, 2, 3}}));
  EXPECT_FALSE(fits({{{what::take, mode::shared}, 0, 1}, {{what::take, mode::alone}, 2, 3}})) << "beside a reader";
  EXPECT_FALSE(fits({{{what::take, mode::alone}, 0, 1}, {{what::take, mode::shared}, 2, 3}})) << "beside a writer";
  EXPECT_FALSE(fits({{{what::take, mode::upgradable}, 0, 1}, {{what::take, mode::upgradable}, 2, 3}}));
  EXPECT_FALSE(fits({{{what::try_take, mode::shared, false}, 0, 1}})) << "nobody had it";
  const lock_history between{{{what::take, mode::upgradable}, 0, 1},
                             {{what::take, mode::alone}, 2, 3},
                             {{what::give_back, mode::alone}, 4, 5},
                             {{what::upgrade}, 6, 7}};
  EXPECT_FALSE(fits(between)) << "a writer came before the upgrade";
  const lock_history beside{
      {{what::take, mode::upgradable}, 0, 1}, {{what::take, mode::shared}, 2, 3}, {{what::upgrade}, 4, 5}};
  EXPECT_FALSE(fits(beside)) << "a reader was still there";
  const lock_history lost{{{what::take, mode::upgradable}, 0, 1},
                          {{what::gave_up}, 2, 3},
                          {{what::give_back, mode::upgradable}, 4, 5},
                          {{what::try_take, mode::alone, false}, 6, 7}};
  EXPECT_FALSE(fits(lost)) << "the upgrade that gave up has it";
}
TEST(history, what_gave_up_has_no_effect) {
  const channel_model start{.capacity = 1};
  EXPECT_TRUE(test::is_linearizable(start, channel_history{{{kind::gave_up, 1}, 0, 1}, {{kind::try_receive}, 2, 3}}));
  EXPECT_FALSE(test::is_linearizable(start, channel_history{{{kind::gave_up, 1}, 0, 3}, {{kind::receive, 1}, 1, 2}}));
  const channel_history eaten{{{kind::send, 1}, 0, 1}, {{kind::gave_up}, 2, 3}, {{kind::try_receive, 0}, 4, 5}};
  EXPECT_FALSE(test::is_linearizable(start, eaten));
  using what = mutex_operation::kind;
  const std::vector<test::history<mutex_operation>::entry> kept{{{what::gave_up}, 0, 1},
                                                                {{what::try_lock, false}, 2, 3}};
  EXPECT_FALSE(test::is_linearizable(mutex_model{}, kept)) << "who gave up has it";
}

}  // namespace
