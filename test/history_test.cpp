// Channel and mutex as threads see them: what several of them did at the same time fits an object that does a thing at a
// time. See support/history.hpp.
#include "support/history.hpp"

#include <compare>
#include <deque>
#include <memory>
#include <optional>
#include <random>
#include <thread>
#include <vector>
#include <weft/channel.hpp>
#include <weft/sync.hpp>

#include "support/weft_test.hpp"

namespace {

using weft::sync_wait;

// ---- a channel ------------------------------------------------------------------------------------------------------------

struct channel_operation {
  enum class kind { send, try_send, receive, try_receive, close } what;
  int value = 0;    // sent or received; 0: nothing was received
  bool did = true;  // it was sent
};

struct channel_model {
  std::size_t capacity;
  std::deque<int> values{};
  bool closed = false;

  auto operator<=>(const channel_model&) const = default;

  bool apply(const channel_operation& one) {
    using kind = channel_operation::kind;
    switch (one.what) {
      case kind::send:
      case kind::try_send: {
        const bool full = values.size() == capacity;
        if (!one.did) return closed || (full && one.what == kind::try_send);
        if (closed || full) return false;
        values.push_back(one.value);
        return true;
      }
      case kind::receive:
      case kind::try_receive:
        if (one.value == 0) return values.empty() && (closed || one.what == kind::try_receive);
        if (values.empty() || values.front() != one.value) return false;
        values.pop_front();
        return true;
      case kind::close: closed = true; return true;
    }
    return false;
  }
};

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

struct mutex_operation {
  enum class kind { lock, try_lock, unlock } what;
  bool did = true;
};

struct mutex_model {
  bool held = false;

  auto operator<=>(const mutex_model&) const = default;

  bool apply(const mutex_operation& one) {
    switch (one.what) {
      case mutex_operation::kind::lock:
      case mutex_operation::kind::try_lock:
        if (!one.did) return held;
        if (held) return false;
        held = true;
        return true;
      case mutex_operation::kind::unlock:
        if (!held) return false;
        held = false;
        return true;
    }
    return false;
  }
};

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

}  // namespace
