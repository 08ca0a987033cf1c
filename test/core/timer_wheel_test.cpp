#include "core/timer_wheel.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <vector>

#include "core/timer_heap.hpp"
#include "support/weft_test.hpp"

namespace {

using weft::detail::timer_heap;
using weft::detail::timer_wheel;
using tick = timer_wheel::tick;
using time_point = weft::timer::time_point;

constexpr tick last = timer_wheel::tick{1} << (63 - timer_wheel::nanosecond_bits);  // one behind the last that there is

struct node : weft::timer {
  node() : timer{[](timer&) noexcept {}} {}
  explicit node(tick t) : node{} { when = timer_wheel::begin_of(t); }
};

// All that is due by `to`, in as many steps as it takes.
std::multiset<tick> advance(timer_wheel& wheel, tick to, unsigned most = 1000) {
  std::multiset<tick> due;
  while (!wheel.advance(to, most, [&](weft::timer& one) { due.insert(timer_wheel::tick_of(one.when)); })) {
  }
  return due;
}

TEST(timer_wheel, tells_the_tick_of_any_time) {
  using namespace std::chrono_literals;
  constexpr std::chrono::nanoseconds one{1 << timer_wheel::nanosecond_bits};
  EXPECT_EQ(timer_wheel::tick_of(time_point{}), 0U);
  EXPECT_EQ(timer_wheel::tick_of(time_point{one - 1ns}), 0U);
  EXPECT_EQ(timer_wheel::tick_of(time_point{one}), 1U);
  EXPECT_EQ(timer_wheel::tick_of(time_point{-1ns}), 0U);
  EXPECT_EQ(timer_wheel::tick_of(time_point::min()), 0U);
  EXPECT_EQ(timer_wheel::tick_of(time_point::max()), last - 1);
  EXPECT_EQ(timer_wheel::begin_of(1), time_point{one});
}

TEST(timer_wheel, of_nothing_has_nothing_to_do) {
  timer_wheel wheel;
  EXPECT_EQ(wheel.first(), timer_wheel::never);
  EXPECT_TRUE(advance(wheel, last).empty());
  EXPECT_EQ(wheel.position(), last);
}

// One tick before the border of a level, at it, and one behind, from positions on both sides of borders.
TEST(timer_wheel, gives_each_timer_at_its_tick_whatever_borders_lie_between) {
  std::vector<tick> borders{0};
  for (unsigned level = 0; level * timer_wheel::digit_bits < 63 - timer_wheel::nanosecond_bits; ++level)
    borders.push_back(tick{1} << level * timer_wheel::digit_bits);
  borders.push_back(last - 2);
  for (const tick from : borders)
    for (const tick begin : {from, from - (from != 0 ? 1 : 0), from * 63, from + 5})
      for (const tick border : borders)
        for (const tick off : {border, border + 1, border + 2, border * 63, border * 64 - 1}) {
          const tick due = begin + off;
          if (begin >= last || due >= last || due <= begin) continue;
          timer_wheel wheel;
          advance(wheel, begin);
          node one{due};
          EXPECT_LE(wheel.add(one), due);
          // Moves on to each slot that it is put into, and finds it only at its own tick.
          unsigned moves = 0;
          while (wheel.first() != timer_wheel::never && wheel.first() < due) {
            const tick to = wheel.first();
            EXPECT_GT(to, wheel.position());
            EXPECT_TRUE(advance(wheel, to).empty()) << begin << ' ' << due;
            ++moves;
          }
          EXPECT_LT(moves, timer_wheel::levels);
          EXPECT_TRUE(advance(wheel, due - 1).empty()) << begin << ' ' << due;
          EXPECT_EQ(advance(wheel, due).size(), 1U) << begin << ' ' << due;
          EXPECT_EQ(wheel.first(), timer_wheel::never);
        }
}

// As one whose clock jumps: far ahead, and back.
TEST(timer_wheel, follows_a_jump_ahead_and_none_back) {
  timer_wheel wheel;
  node soon{100}, late{100'000'000}, later{100'000'001};
  for (node* one : {&soon, &late, &later}) wheel.add(*one);
  EXPECT_EQ(advance(wheel, 100'000'000), (std::multiset<tick>{100, 100'000'000}));
  EXPECT_TRUE(advance(wheel, 50).empty());
  EXPECT_EQ(wheel.position(), 100'000'000U);
  EXPECT_EQ(wheel.first(), 100'000'001U);
  EXPECT_EQ(advance(wheel, 100'000'001).size(), 1U);
}

TEST(timer_wheel, keeps_what_is_armed_for_ever) {
  timer_wheel wheel;
  node never;
  never.when = time_point::max();
  wheel.add(never);
  EXPECT_TRUE(advance(wheel, last - 2).empty());
  wheel.remove(never);
  EXPECT_EQ(wheel.first(), timer_wheel::never);
  wheel.add(never);
  EXPECT_EQ(advance(wheel, last - 1).size(), 1U);
}

TEST(timer_wheel, has_no_slot_to_look_at_when_its_last_timer_was_removed) {
  timer_wheel wheel;
  for (tick far = 1; far < last; far *= 2) {
    node a{far}, b{far}, c{far};
    for (node* one : {&a, &b, &c}) wheel.add(*one);
    EXPECT_LE(wheel.first(), far);
    wheel.remove(b);
    wheel.remove(c);
    EXPECT_LE(wheel.first(), far);
    wheel.remove(a);
    EXPECT_EQ(wheel.first(), timer_wheel::never);
  }
}

// Against a map: any steps, any number of timers at once, and timers that go while the wheel has stopped halfway.
TEST(timer_wheel, gives_what_a_sorted_map_gives) {
  for (unsigned seed = 0; seed != 20; ++seed) {
    std::mt19937_64 random{seed};
    const auto any_of = [&](tick below) { return random() % below; };
    timer_wheel wheel;
    tick now = 0;
    std::map<node*, std::unique_ptr<node>> armed;
    for (int step = 0; step != test::rounds(20'000); ++step) {
      if (any_of(4) != 0) {
        auto one = std::make_unique<node>(now + 1 + any_of(tick{1} << any_of(30)));
        if (timer_wheel::tick_of(one->when) <= wheel.position()) continue;
        wheel.add(*one);
        node* const key = one.get();
        armed[key] = std::move(one);
      }
      if (any_of(3) == 0 && !armed.empty()) {
        const auto some = std::next(armed.begin(), static_cast<std::ptrdiff_t>(any_of(armed.size())));
        wheel.remove(*some->first);
        armed.erase(some);
      }
      if (any_of(8) != 0) continue;
      now = wheel.position() + any_of(tick{1} << any_of(28));
      const auto take = [&](weft::timer& one) {
        EXPECT_LE(timer_wheel::tick_of(one.when), now);
        EXPECT_EQ(armed.erase(static_cast<node*>(&one)), 1U);
      };
      while (!wheel.advance(now, static_cast<unsigned>(any_of(5)), take)) {
        EXPECT_LE(wheel.first(), now);
        if (armed.empty() || any_of(2) == 0) continue;
        const auto some = std::next(armed.begin(), static_cast<std::ptrdiff_t>(any_of(armed.size())));
        wheel.remove(*some->first);
        armed.erase(some);
      }
      EXPECT_EQ(wheel.position(), now);
      tick first = timer_wheel::never;
      for (const auto& [one, owned] : armed) {
        EXPECT_GT(timer_wheel::tick_of(one->when), now);
        first = std::min(first, timer_wheel::tick_of(one->when));
      }
      EXPECT_LE(wheel.first(), first);
      EXPECT_GT(wheel.first(), now);
    }
    std::size_t left = 0;
    wheel.clear([&](weft::timer&) { ++left; });
    EXPECT_EQ(left, armed.size());
    EXPECT_EQ(wheel.first(), timer_wheel::never);
  }
}

TEST(timer_wheel, clears_also_what_it_has_not_looked_at_yet) {
  timer_wheel wheel;
  std::vector<std::unique_ptr<node>> all;
  for (int i = 0; i != 10; ++i) wheel.add(*all.emplace_back(std::make_unique<node>(5'000)));
  std::size_t due = 0, left = 0;
  EXPECT_FALSE(wheel.advance(5'000, 4, [&](weft::timer&) { ++due; }));
  wheel.clear([&](weft::timer&) { ++left; });
  EXPECT_EQ(due, 4U);
  EXPECT_EQ(left, 6U);
  EXPECT_TRUE(wheel.advance(6'000, 4, [&](weft::timer&) { ADD_FAILURE() << "it was cleared"; }));
}

TEST(timer_heap, gives_the_earliest_first_whatever_was_removed) {
  std::mt19937_64 random{1};
  timer_heap heap;
  std::multimap<time_point, std::unique_ptr<node>> armed;
  for (int step = 0; step != test::rounds(50'000); ++step) {
    auto one = std::make_unique<node>();
    one->when = time_point{std::chrono::nanoseconds{random() % 1'000}};
    heap.push(*one);
    armed.emplace(one->when, std::move(one));
    while (!armed.empty() && random() % 2 == 0) {
      const auto some = std::next(armed.begin(), static_cast<std::ptrdiff_t>(random() % 2 == 0 ? 0 : armed.size() / 2));
      node* const gone = random() % 2 == 0 ? static_cast<node*>(heap.first()) : some->second.get();
      heap.remove(*gone);
      armed.erase(std::ranges::find_if(armed, [&](const auto& entry) { return entry.second.get() == gone; }));
    }
    if (!armed.empty()) {
      EXPECT_EQ(heap.first()->when, armed.begin()->first);
    }
  }
}

}  // namespace
