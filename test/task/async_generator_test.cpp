#include <gtest/gtest.h>

#include <algorithm>
#include <coroutine>
#include <cstddef>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>
#include <weft/async_generator.hpp>
#include <weft/merge.hpp>

namespace {

using weft::async_generator;
using weft::sync_wait;
using weft::task;

task<int> later(int n) { co_return n; }

async_generator<int> count(int first, int last) {
  for (int i = first; i <= last; ++i) co_yield co_await later(i);
}

// ---- one generator --------------------------------------------------------------------------------------------------

TEST(async_generator, yields_its_values_in_order_and_then_null) {
  auto consumer = []() -> task<std::vector<int>> {
    std::vector<int> got;
    auto numbers = count(1, 4);
    while (int* n = co_await numbers.next()) got.push_back(*n);
    EXPECT_EQ(co_await numbers.next(), nullptr) << "and ever after";
    auto moved = std::move(numbers);
    EXPECT_EQ(co_await numbers.next(), nullptr) << "moved from";
    EXPECT_EQ(co_await moved.next(), nullptr);
    co_return got;
  };
  EXPECT_EQ(sync_wait(consumer()), (std::vector{1, 2, 3, 4}));
}

TEST(async_generator, is_iterated_with_begin_and_increment) {
  auto consumer = []() -> task<std::vector<int>> {
    std::vector<int> got;
    auto numbers = count(1, 3);
    for (auto it = co_await numbers.begin(); it != numbers.end(); co_await ++it) got.push_back(*it);
    auto nothing = count(1, 0);
    EXPECT_EQ(co_await nothing.begin(), nothing.end());
    co_return got;
  };
  EXPECT_EQ(sync_wait(consumer()), (std::vector{1, 2, 3}));
}

TEST(async_generator, runs_no_further_than_the_value_asked_for) {
  auto consumer = []() -> task<> {
    int reached = 0;
    auto steps = [](int& at) -> async_generator<int> {
      at = 1;
      co_yield 10;
      at = 2;
    };
    auto values = steps(reached);
    EXPECT_EQ(reached, 0);
    EXPECT_EQ(*co_await values.next(), 10);
    EXPECT_EQ(reached, 1);
    EXPECT_EQ(co_await values.next(), nullptr);
    EXPECT_EQ(reached, 2);
  };
  sync_wait(consumer());
}

struct move_only {
  explicit move_only(int n) : number{std::make_unique<int>(n)} {}  // and not default constructible
  std::unique_ptr<int> number;
};

TEST(async_generator, carries_references_copies_and_what_only_moves) {
  auto consumer = []() -> task<> {
    std::vector<std::string> words{"a first word that is allocated", "a second word that is allocated"};
    auto references = [](auto& all) -> async_generator<std::string&> {
      for (std::string& word : all) co_yield word;
    };
    auto each = references(words);
    EXPECT_EQ(co_await each.next(), &words[0]);

    auto copies = [](auto& all) -> async_generator<std::string> {
      for (std::string& word : all) co_yield word;
      co_yield std::move(all[0]);
      co_yield "converted from a literal that is long enough";
    };
    auto got = co_await collect(copies(words));
    EXPECT_EQ(words[0], "");
    EXPECT_EQ(words[1], "a second word that is allocated");
    EXPECT_EQ(got[0], "a first word that is allocated");
    EXPECT_EQ(got[2], "a first word that is allocated");
    EXPECT_EQ(got.size(), 4u);

    auto moved = []() -> async_generator<move_only> {
      co_yield move_only{1};
      move_only second{2};
      co_yield std::move(second);
    };
    auto values = moved();
    move_only first = std::move(*co_await values.next());
    EXPECT_EQ(*first.number, 1);
    EXPECT_EQ(*(co_await values.next())->number, 2);
  };
  sync_wait(consumer());
}

TEST(async_generator, passes_on_what_its_body_throws_and_is_at_its_end) {
  auto consumer = []() -> task<> {
    auto fails = []() -> async_generator<int> {
      co_yield 1;
      throw std::runtime_error{"out of numbers"};
    };
    auto numbers = fails();
    EXPECT_EQ(*co_await numbers.next(), 1);
    auto failed = co_await as_result(numbers.next());
    EXPECT_THROW((void)failed.value(), std::runtime_error);
    EXPECT_EQ(co_await numbers.next(), nullptr);

    auto again = fails();
    auto it = co_await again.begin();
    bool thrown = false;
    try {
      co_await ++it;
    } catch (const std::runtime_error&) {
      thrown = true;
    }
    EXPECT_TRUE(thrown);
    EXPECT_EQ(it, again.end());
  };
  sync_wait(consumer());
}

TEST(async_generator, is_destroyed_where_it_stands) {
  auto alive = std::make_shared<int>(0);
  auto holds = [](std::shared_ptr<int> held) -> async_generator<int> {
    auto local = held;
    co_yield 1;
    co_yield 2;
  };
  auto consumer = [&]() -> task<> {
    {
      [[maybe_unused]] auto unstarted = holds(alive);
      EXPECT_EQ(alive.use_count(), 2);
    }
    EXPECT_EQ(alive.use_count(), 1);
    auto left = holds(alive);
    EXPECT_EQ(*co_await left.next(), 1);
    EXPECT_EQ(alive.use_count(), 3);
    left = count(1, 1);  // swaps: what it held goes with the temporary
    EXPECT_EQ(alive.use_count(), 1);
  };
  sync_wait(consumer());
  EXPECT_EQ(alive.use_count(), 1);
}

// An awaitable of another library: resumed, or destroyed, by a thread of its own.
struct elsewhere {
  bool drops = false;
  bool await_ready() const noexcept { return false; }
  void await_suspend(std::coroutine_handle<> who) const {
    std::thread{[who, drops = drops] { drops ? who.destroy() : who.resume(); }}.detach();
  }
  void await_resume() const noexcept {}
};

async_generator<int> from_elsewhere(int n, int dropped_at = -1) {
  for (int i = 0; i < n; ++i) {
    co_await elsewhere{i == dropped_at};
    co_yield i;
  }
}

TEST(async_generator, may_wait_and_resumes_on_the_consumers_executor) {
  auto consumer = []() -> task<int> {
    const auto home = std::this_thread::get_id();
    int sum = 0;
    auto numbers = from_elsewhere(10);
    while (int* n = co_await numbers.next()) {
      EXPECT_EQ(std::this_thread::get_id(), home);
      sum += *n;
    }
    co_return sum;
  };
  EXPECT_EQ(sync_wait(consumer()), 45);
}

TEST(async_generator, may_have_another_consumer_each_time) {
  auto numbers = from_elsewhere(3);
  auto one = [](async_generator<int>& from) -> task<int> { co_return *co_await from.next(); };
  EXPECT_EQ(sync_wait(one(numbers)), 0);
  EXPECT_EQ(sync_wait(one(numbers)), 1);
  int third = -1;
  std::thread{[&] { third = sync_wait(one(numbers)); }}.join();
  EXPECT_EQ(third, 2);
}

// ---- stops ----------------------------------------------------------------------------------------------------------

TEST(async_generator, is_unwound_with_its_consumer) {
  auto alive = std::make_shared<int>(0);
  auto consumer = [](std::shared_ptr<int> held) -> task<int> {
    auto others = count(1, 2);  // stands at a value, and is destroyed with this frame
    (void)co_await others.next();
    auto numbers = from_elsewhere(3, 1);
    auto doubled = std::move(numbers) | weft::transform([](int n) { return 2 * n; });
    int sum = *held;
    while (int* n = co_await doubled.next()) sum += *n;
    ADD_FAILURE() << "went on after the stop";
    co_return sum;
  };
  EXPECT_THROW(sync_wait(consumer(alive)), weft::stopped);
  EXPECT_EQ(alive.use_count(), 1);
}

TEST(async_generator, that_outlives_the_stop_is_at_its_end) {
  auto consumer = []() -> task<> {
    auto numbers = from_elsewhere(3, 1);
    auto first = co_await as_result(numbers.next());
    EXPECT_EQ(**first, 0);
    auto sum_up = [](async_generator<int>& from) -> task<int> {
      int sum = 0;
      while (int* n = co_await from.next()) sum += *n;
      co_return sum;
    };
    auto rest = co_await as_result(sum_up(numbers));
    EXPECT_TRUE(rest.is_stopped());
    EXPECT_EQ(co_await numbers.next(), nullptr);
  };
  sync_wait(consumer());
}

// ---- the stack ------------------------------------------------------------------------------------------------------

TEST(async_generator, ten_million_values_take_no_stack) {
  auto numbers = []() -> async_generator<int> {
    for (int i = 0; i < 10'000'000; ++i) co_yield 1;
  };
  EXPECT_EQ(sync_wait(accumulate(numbers(), 0)), 10'000'000);
}

TEST(async_generator, a_thousand_adaptors_pass_each_value_on) {
  auto consumer = []() -> task<int> {
    auto numbers = count(1, 1000);
    for (int i = 0; i < 1000; ++i) numbers = take(std::move(numbers), 100);
    co_return co_await accumulate(std::move(numbers), 0);
  };
  EXPECT_EQ(sync_wait(consumer()), 5050);
}

// Each holds the one before. Longer rows: let_go_test.
TEST(async_generator, five_thousand_adaptors_are_destroyed_where_they_stand) {
  auto consumer = []() -> task<int> {
    auto numbers = count(1, 1000);
    for (int i = 0; i < 5'000; ++i) numbers = take(std::move(numbers), 100);
    co_return *co_await numbers.next();
  };
  EXPECT_EQ(sync_wait(consumer()), 1);
}

// ---- adaptors -------------------------------------------------------------------------------------------------------

TEST(async_generator_adaptors, transform) {
  auto consumer = []() -> task<> {
    const auto squares = co_await collect(transform(count(1, 3), [](int n) { return n * n; }));
    EXPECT_EQ(squares, (std::vector{1, 4, 9}));
    const auto awaited = co_await (count(1, 3) | weft::transform(later) | weft::collect());
    EXPECT_EQ(awaited, (std::vector{1, 2, 3}));
    const std::string prefix = "a prefix that is long enough to be allocated: ";
    auto named = [prefix](int n) { return prefix + std::to_string(n); };
    const auto prefixed = co_await (count(1, 1) | weft::transform(named) | weft::collect());
    EXPECT_EQ(prefixed, std::vector{prefix + "1"});
  };
  sync_wait(consumer());
}

TEST(async_generator_adaptors, transform_to_references) {
  auto consumer = []() -> task<> {
    std::vector<std::string> words{"zero", "one"};
    auto chosen = transform(count(0, 1), [&](int n) -> std::string& { return words[static_cast<std::size_t>(n)]; });
    static_assert(std::is_same_v<decltype(chosen), async_generator<std::string&>>);
    EXPECT_EQ(co_await chosen.next(), &words[0]);
  };
  sync_wait(consumer());
}

TEST(async_generator_adaptors, filter) {
  auto consumer = []() -> task<> {
    const auto even = co_await collect(filter(count(1, 6), [](int n) { return n % 2 == 0; }));
    EXPECT_EQ(even, (std::vector{2, 4, 6}));
    auto is_odd = [](int n) -> task<bool> { co_return n % 2 != 0; };
    const auto odd = co_await (count(1, 6) | weft::filter(is_odd) | weft::collect());
    EXPECT_EQ(odd, (std::vector{1, 3, 5}));

    auto pointers = []() -> async_generator<std::unique_ptr<int>> {
      co_yield std::make_unique<int>(1);
      co_yield nullptr;
    };
    auto there = co_await (pointers() | weft::filter([](const auto& p) { return p != nullptr; }) | weft::collect());
    EXPECT_EQ(there.size(), 1u);
  };
  sync_wait(consumer());
}

TEST(async_generator_adaptors, stand_behind_a_merge) {
  auto consumer = []() -> task<> {
    const auto is_even = [](int n) { return n % 2 == 0; };
    const auto squared = [](int n) { return n * n; };
    auto two = co_await (weft::merge(count(1, 4), count(5, 8)) | weft::filter(is_even) | weft::transform(squared) |
                         weft::collect());
    std::ranges::sort(two);
    EXPECT_EQ(two, (std::vector{4, 16, 36, 64}));
    const auto first = co_await (weft::merge(count(1, 100), count(1, 100)) | weft::take(5) | weft::collect());
    EXPECT_EQ(first.size(), 5U);
  };
  sync_wait(consumer());
}

TEST(async_generator_adaptors, take_runs_its_source_no_further) {
  auto consumer = []() -> task<> {
    int reached = 0;
    auto endless = [](int& at) -> async_generator<int> {
      for (;;) co_yield ++at;
    };
    const auto three = co_await (endless(reached) | weft::take(3) | weft::collect());
    EXPECT_EQ(three, (std::vector{1, 2, 3}));
    EXPECT_EQ(reached, 3);
    const auto none = co_await collect(take(endless(reached), 0));
    EXPECT_TRUE(none.empty());
    EXPECT_EQ(reached, 3);
    const auto all = co_await collect(take(count(1, 2), 5));
    EXPECT_EQ(all, (std::vector{1, 2}));
  };
  sync_wait(consumer());
}

TEST(async_generator_adaptors, concat) {
  auto consumer = []() -> task<> {
    const auto joined = co_await collect(concat(count(1, 2), count(1, 0), from_elsewhere(2)));
    EXPECT_EQ(joined, (std::vector{1, 2, 0, 1}));
    std::vector<async_generator<int>> some;
    some.push_back(count(1, 1));
    some.push_back(count(2, 2));
    const auto both = co_await collect(concat(std::move(some)));
    EXPECT_EQ(both, (std::vector{1, 2}));
  };
  sync_wait(consumer());
}

TEST(async_generator_adaptors, accumulate) {
  auto consumer = []() -> task<> {
    EXPECT_EQ(co_await accumulate(count(1, 4), 0), 10);
    EXPECT_EQ(co_await (count(1, 4) | weft::accumulate(1, [](int product, int n) { return product * n; })), 24);
    auto join = [](std::string all, int n) -> task<std::string> { co_return all + std::to_string(n); };
    EXPECT_EQ(co_await accumulate(count(1, 3), std::string{"digits: "}, join), "digits: 123");
    EXPECT_EQ(co_await accumulate(count(1, 0), 7), 7);
  };
  sync_wait(consumer());
}

TEST(async_generator_adaptors, pass_failures_on) {
  auto consumer = []() -> task<> {
    auto fails_at_2 = [](int n) { return n == 2 ? throw std::out_of_range{"2"} : n; };
    auto all = co_await as_result(count(1, 3) | weft::transform(fails_at_2) | weft::take(3) | weft::collect());
    EXPECT_THROW((void)all.value(), std::out_of_range);
  };
  sync_wait(consumer());
}

// ---- what is copied, and can't be moved; empty ones -----------------------------------------------------------------------

struct copied_only {
  explicit copied_only(int n) : number{n} {}
  copied_only(const copied_only&) = default;
  copied_only(copied_only&&) = delete;
  int number;
};

TEST(async_generator, yields_copies_of_what_cannot_be_moved) {
  auto values = []() -> async_generator<copied_only> {
    copied_only kept{1};
    co_yield kept;
    const copied_only constant{2};
    co_yield constant;
    co_yield copied_only{3};
  };
  auto consumer = [](async_generator<copied_only> all) -> task<std::vector<int>> {
    std::vector<int> got;
    while (auto* value = co_await all.next()) got.push_back(value->number);
    co_return got;
  };
  EXPECT_EQ(sync_wait(consumer(values())), (std::vector{1, 2, 3}));
}

TEST(async_generator, made_empty_is_at_its_end) {
  auto consumer = []() -> task<> {
    async_generator<int> later;
    EXPECT_FALSE(later);
    EXPECT_EQ(co_await later.next(), nullptr);
    EXPECT_TRUE((co_await later.begin()) == later.end());
    auto none = co_await (async_generator<int>{} | weft::take(3) | weft::collect());
    EXPECT_TRUE(none.empty());
    later = count(1, 2);
    EXPECT_TRUE(later);
    EXPECT_EQ(*co_await later.next(), 1);
  };
  sync_wait(consumer());
}

// ---- broken contracts -----------------------------------------------------------------------------------------------

TEST(async_generator_death, two_consumers_at_once) {
  EXPECT_DEATH(
      {
        auto numbers = [](async_generator<int>*& self) -> async_generator<int> {
          (void)co_await self->next();
          co_yield 1;
        };
        async_generator<int>* self = nullptr;
        auto asks_itself = numbers(self);
        self = &asks_itself;
        auto consumer = [](async_generator<int>& from) -> task<> { (void)co_await from.next(); };
        sync_wait(consumer(asks_itself));
      },
      "was asked for a value while another consumer waits");
}

// What a body does with the async_generator that it is the body of.
struct held_async {
  async_generator<int> all;
  std::optional<async_generator<int>::iterator> at{};
};
void runs_into(void (*what)(held_async& self)) {
  auto body = [](held_async& self, void (*what)(held_async& self)) -> async_generator<int> {
    co_yield 1;
    what(self);
    co_yield 2;
  };
  auto consumer = [](held_async& one) -> task<> {
    one.at.emplace(co_await one.all.begin());
    co_await ++*one.at;
  };
  held_async one;
  one.all = body(one, what);
  sync_wait(consumer(one));
}

TEST(async_generator_death, a_body_that_uses_its_own_generator) {
  auto through_iterators = [](bool begins) {
    auto body = [](held_async& self, bool begins) -> async_generator<int> {
      co_yield 1;
      if (begins)
        (void)co_await self.all.begin();
      else
        co_await ++*self.at;
    };
    auto consumer = [](held_async& one) -> task<> {
      one.at.emplace(co_await one.all.begin());
      co_await ++*one.at;
    };
    held_async one;
    one.all = body(one, begins);
    sync_wait(consumer(one));
  };
  EXPECT_DEATH(through_iterators(true), "was asked for a value while another consumer waits, or by its own body");
  EXPECT_DEATH(through_iterators(false), "was asked for a value while another consumer waits, or by its own body");
  EXPECT_DEATH(runs_into([](held_async& self) { (void)**self.at; }), "dereferenced at the end, or while its \\+\\+");
  EXPECT_DEATH(runs_into([](held_async& self) { self.all = async_generator<int>{}; }), "moved while a consumer waits");
  EXPECT_DEATH(runs_into([](held_async& self) { [[maybe_unused]] auto mine = std::move(self.all); }),
               "moved while a consumer waits");
}

}  // namespace
