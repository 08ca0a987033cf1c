// Histories of timers of the real clock: threads, workers of two pools and the clock record what they do to each timer, with
// when that began and ended, and a checker looks for an order of it which a clock could have had that does a thing at a time
// (support/history.hpp).
//
//   arm      somewhere in the call; the timer was not armed
//   cancel   somewhere in the call. True: it was armed, and is no longer. False: it was not, and its function does not run
//   fire     where its function begins, not before its time: it was armed, and is no longer
//   end      where that function returns, or is about to arm the timer anew, behind which it does nothing
//
// So a timer fires once or was cancelled, never both, and never after a cancel() that took it out.
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>
#include <weft/clock.hpp>
#include <weft/pool.hpp>

#include "support/history.hpp"
#include "support/weft_test.hpp"

namespace {

using namespace std::chrono_literals;
using weft::clock;
using weft::real_clock;
using weft::task;

enum class operation : std::uint8_t { arm, cancelled, found_unarmed, fire, fire_early, end };
using entry = test::history<operation>::entry;

struct one_at_a_time {
  bool is_armed = false, runs = false;

  bool apply(operation next) noexcept {
    switch (next) {
      case operation::arm: return !std::exchange(is_armed, true);
      case operation::cancelled:
        return std::exchange(is_armed, false);  // where it was armed anew, its function may run
      case operation::found_unarmed: return !is_armed && !runs;
      case operation::fire: return std::exchange(is_armed, false) && !std::exchange(runs, true);
      case operation::fire_early: return false;
      case operation::end: return std::exchange(runs, false);
    }
    return false;
  }
  auto operator<=>(const one_at_a_time&) const = default;
};

// Nearly always the order in which they began will do, so that the search is for the others.
bool is_right(std::span<entry> all) {
  std::ranges::sort(all, {}, &entry::called);
  one_at_a_time model;
  if (std::ranges::all_of(all, [&](const entry& each) { return model.apply(each.what); })) return true;
  return is_linearizable(one_at_a_time{}, std::vector<entry>{all.begin(), all.end()});
}

std::string in_words(std::span<const entry> all) {
  static constexpr std::array names{"arm", "cancelled", "found unarmed", "fire", "fire early", "end"};
  std::string out;
  for (const entry& each : all)
    out += names[static_cast<std::size_t>(each.what)] + (" " + std::to_string(each.called)) + ".." +
           std::to_string(each.returned) + "\n";
  return out;
}

std::atomic<std::uint64_t> stamps{0};
std::uint64_t stamp() noexcept { return stamps.fetch_add(1); }

// A timer with its history, which whoever does something to it writes down.
class recorded : weft::timer {
 public:
  recorded() noexcept : timer{ring} {}

  // ---- by its owner

  // `repeats`: it arms itself once more when it fires.
  void arm(std::chrono::nanoseconds after, bool repeats) {
    repeats_.store(repeats);
    due_ = real_clock().now() + after;
    const std::uint64_t called = stamp();
    const std::size_t mine = used_.fetch_add(1);
    real_clock().arm(*this, due_);
    entries_[mine] = {operation::arm, called, stamp()};
    left_for_others_.store(most_of_others);
    visitors_.store(0);
  }
  // Behind it nobody else does anything to it.
  void end() {
    while (cancel()) {
    }
    for (int none = 0; !visitors_.compare_exchange_weak(none, closed); none = 0) std::this_thread::yield();
  }
  /// Empty: what there is of its history is right. It begins anew, unless it has still room.
  std::string check(bool is_last) {
    const std::size_t count = used_.load();
    if (!is_last && count < room / 2) return {};
    used_.store(0);
    const std::span<entry> all{entries_.data(), count};
    return is_right(all) ? std::string{} : in_words(all);
  }

  // ---- by others: where it is not with its owner alone

  void cancel_as_visitor() {
    int seen = visitors_.load();
    while (seen != closed && !visitors_.compare_exchange_weak(seen, seen + 1)) {
    }
    if (seen == closed) return;
    if (left_for_others_.fetch_sub(1) > 0) cancel();
    visitors_.fetch_sub(1);
  }

 private:
  static constexpr int closed = std::numeric_limits<int>::min(), most_of_others = 4;
  static constexpr std::size_t room = 64;  // half of it for one time that it is armed: some ten, and those of others

  void record(operation what, std::uint64_t called) noexcept { entries_[used_.fetch_add(1)] = {what, called, stamp()}; }
  bool cancel() noexcept {
    const std::uint64_t called = stamp();
    const bool was_armed = real_clock().cancel(*this);
    record(was_armed ? operation::cancelled : operation::found_unarmed, called);
    return was_armed;
  }
  static void ring(timer& self) noexcept {
    auto& mine = static_cast<recorded&>(self);
    mine.record(real_clock().now() < mine.due_ ? operation::fire_early : operation::fire, stamp());
    mine.record(operation::end, stamp());
    if (!mine.repeats_.exchange(false)) return;
    mine.due_ = real_clock().now() + 10us;
    mine.entries_[mine.used_.fetch_add(1)] = {operation::arm, stamp(), std::numeric_limits<std::uint64_t>::max()};
    real_clock().arm(mine, mine.due_);  // another thread may end it from here on
  }

  std::array<entry, room> entries_{};
  std::atomic<std::size_t> used_{0};
  std::atomic<bool> repeats_{false};
  std::atomic<int> visitors_{closed}, left_for_others_{0};
  clock::time_point due_{};
};

task<> in_a_task(auto& f) {
  f();
  co_return;
}

// A million times a timer is armed, by plain threads and the workers of two pools, each of which cancels its own and those of
// its neighbour at random.
TEST(timer_history, is_that_of_a_clock_that_does_a_thing_at_a_time) {
  constexpr std::size_t parties = 6, timers_of_each = 16;
  const std::size_t times = static_cast<std::size_t>(test::rounds(1'000'000)) / parties;
  std::vector<std::vector<recorded>> all;
  for (std::size_t i = 0; i != parties; ++i) all.emplace_back(timers_of_each);
  std::array<std::string, parties> wrong;

  const auto use = [&](std::size_t party) {
    std::minstd_rand random{static_cast<unsigned>(party) + 1};
    auto& neighbours = all[(party + 1) % parties];
    for (std::size_t i = 0; i != times && wrong[party].empty(); ++i) {
      recorded& mine = all[party][i % timers_of_each];
      if (i >= timers_of_each) mine.end();
      wrong[party] = mine.check(false);
      const auto range = std::uint64_t{1} << random() % 18;  // up to a quarter of a millisecond
      mine.arm(std::chrono::nanoseconds{random() % range}, random() % 8 == 0);
      if (random() % 2 == 0) neighbours[random() % timers_of_each].cancel_as_visitor();
    }
    for (recorded& mine : all[party]) {
      mine.end();
      if (wrong[party].empty()) wrong[party] = mine.check(true);
    }
  };
  {
    weft::pool one{{.threads = 2}}, other{{.threads = 2}};
    std::vector<std::jthread> threads;
    for (std::size_t party = 0; party != parties; ++party)
      threads.emplace_back([&, party] {
        const auto mine = [&] { use(party); };
        if (party < 2)
          mine();
        else
          weft::sync_wait(weft::start_on((party < 4 ? one : other).executor(), in_a_task(mine)));
      });
  }
  for (const std::string& each : wrong) EXPECT_EQ(each, "");
}

// ---- what the checker finds -----------------------------------------------------------------------------------------------

bool finds_right(std::vector<entry> all) { return is_right(all); }

TEST(timer_history, of_what_overlaps_may_have_any_order) {
  using enum operation;
  EXPECT_TRUE(finds_right({{arm, 0, 3}, {cancelled, 1, 2}}));
  EXPECT_TRUE(finds_right({{arm, 0, 1}, {fire, 3, 4}, {end, 5, 6}, {found_unarmed, 2, 7}}));
  EXPECT_TRUE(finds_right({{arm, 0, 1}, {cancelled, 2, 7}, {found_unarmed, 3, 6}}));
  EXPECT_TRUE(finds_right({{arm, 0, 1}, {fire, 2, 3}, {arm, 4, 5}, {cancelled, 6, 7}, {end, 8, 9}}));
}
TEST(timer_history, shows_what_no_clock_may_do) {
  using enum operation;
  EXPECT_FALSE(finds_right({{arm, 0, 1}, {cancelled, 2, 3}, {fire, 4, 5}, {end, 6, 7}})) << "it fires all the same";
  EXPECT_FALSE(finds_right({{arm, 0, 1}, {fire, 2, 3}, {end, 4, 5}, {cancelled, 6, 7}})) << "it was armed no longer";
  EXPECT_FALSE(finds_right({{arm, 0, 1}, {fire, 2, 3}, {end, 4, 5}, {fire, 6, 7}, {end, 8, 9}})) << "twice";
  EXPECT_FALSE(finds_right({{arm, 0, 1}, {cancelled, 2, 5}, {cancelled, 3, 4}})) << "by both";
  EXPECT_FALSE(finds_right({{arm, 0, 1}, {found_unarmed, 2, 3}, {fire, 4, 5}, {end, 6, 7}})) << "it was armed";
  EXPECT_FALSE(finds_right({{arm, 0, 1}, {fire, 2, 3}, {found_unarmed, 4, 5}, {end, 6, 7}})) << "its function runs";
  EXPECT_FALSE(finds_right({{arm, 0, 1}, {fire_early, 2, 3}, {end, 4, 5}}));
}

}  // namespace
