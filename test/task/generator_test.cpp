#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <memory_resource>
#include <new>
#include <optional>
#include <ranges>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include <weft/generator.hpp>

namespace {

using weft::elements_of;
using weft::generator;

template <class Range>
auto to_vector(Range&& range) {
  std::vector<std::ranges::range_value_t<Range>> values;
  for (auto&& value : range) values.emplace_back(std::forward<decltype(value)>(value));
  return values;
}

generator<int> count(int first, int last) {
  for (int i = first; i <= last; ++i) co_yield i;
}

generator<int> nothing() { co_return; }

// ---- what it is -----------------------------------------------------------------------------------------------------

static_assert(std::ranges::input_range<generator<int>> && !std::ranges::forward_range<generator<int>>);
static_assert(std::ranges::view<generator<int>>);
// Of C++17 it is no iterator: what `it++` gives is nothing.
template <class It>
concept has_category = requires { typename std::iterator_traits<It>::iterator_category; };
static_assert(!has_category<std::ranges::iterator_t<generator<int>>>);
static_assert(std::movable<generator<int>> && !std::copyable<generator<int>>);
static_assert(std::is_same_v<std::ranges::range_reference_t<generator<int>>, int&&>);
static_assert(std::is_same_v<std::ranges::range_reference_t<generator<int&>>, int&>);
static_assert(std::is_same_v<std::ranges::range_reference_t<generator<const int&>>, const int&>);
static_assert(std::is_same_v<std::ranges::range_value_t<generator<const std::string&>>, std::string>);
static_assert(std::is_same_v<std::ranges::range_value_t<generator<std::string_view, std::string>>, std::string>);

// ---- one generator --------------------------------------------------------------------------------------------------

TEST(generator, yields_its_values_in_order) {
  EXPECT_EQ(to_vector(count(1, 4)), (std::vector{1, 2, 3, 4}));
  EXPECT_EQ(to_vector(nothing()), std::vector<int>{});
}

TEST(generator, runs_nothing_before_begin_and_no_further_than_the_value_asked_for) {
  int reached = 0;
  auto steps = [](int& at) -> generator<int> {
    at = 1;
    co_yield 10;
    at = 2;
    co_yield 20;
    at = 3;
  };
  auto values = steps(reached);
  EXPECT_EQ(reached, 0);
  auto it = values.begin();
  EXPECT_EQ(reached, 1);
  EXPECT_EQ(*it, 10);
  EXPECT_EQ(*it, 10) << "looking twice runs nothing";
  ++it;
  EXPECT_EQ(reached, 2);
  it++;
  EXPECT_EQ(reached, 3);
  EXPECT_EQ(it, values.end());
}

TEST(generator, of_references_hands_out_the_very_object) {
  std::array<int, 3> numbers{1, 2, 3};
  auto each = [](std::array<int, 3>& all) -> generator<int&> {
    for (int& n : all) co_yield n;
  };
  for (int& n : each(numbers)) n *= 10;
  EXPECT_EQ(numbers, (std::array{10, 20, 30}));

  auto look = [](const std::array<int, 3>& all) -> generator<const int&> {
    for (const int& n : all) co_yield n;
    co_yield 40;  // a temporary, too: it lives until the next ++
  };
  std::vector<const int*> seen;
  std::vector<int> values;
  for (const int& n : look(numbers)) {
    seen.push_back(&n);
    values.push_back(n);
  }
  EXPECT_EQ(values, (std::vector{10, 20, 30, 40}));
  EXPECT_EQ(seen[0], &numbers[0]);
}

TEST(generator, of_values_copies_an_lvalue_and_moves_nothing_by_itself) {
  auto words = []() -> generator<std::string> {
    std::string kept = "a string too long for the small buffer";
    co_yield kept;
    co_yield kept + "!";  // still whole: the consumer moved from a copy
    co_yield std::move(kept);
    co_yield "converted from a literal that is long enough";
  };
  EXPECT_EQ(to_vector(words()),
            (std::vector<std::string>{
                "a string too long for the small buffer", "a string too long for the small buffer!",
                "a string too long for the small buffer", "converted from a literal that is long enough"}));
}

struct move_only {
  explicit move_only(int n) : number{std::make_unique<int>(n)} {}  // and not default constructible
  std::unique_ptr<int> number;
};

TEST(generator, carries_what_only_moves_and_has_no_default) {
  auto each = []() -> generator<move_only> {
    co_yield move_only{1};
    move_only second{2};
    co_yield std::move(second);
  };
  std::vector<move_only> got;
  for (move_only&& value : each()) got.push_back(std::move(value));
  ASSERT_EQ(got.size(), 2u);
  EXPECT_EQ(*got[0].number, 1);
  EXPECT_EQ(*got[1].number, 2);
}

TEST(generator, may_have_another_value_type) {
  auto words = []() -> generator<std::string_view, std::string> {
    const std::string gone_soon = "one";
    co_yield gone_soon;
    co_yield "two";
  };
  const std::vector<std::string> kept = to_vector(words());
  EXPECT_EQ(kept, (std::vector<std::string>{"one", "two"}));
}

TEST(generator, composes_with_views) {
  auto even_squares = count(1, 1'000'000'000) | std::views::filter([](int n) { return n % 2 == 0; }) |
                      std::views::transform([](int n) { return n * n; }) | std::views::take(3);
  EXPECT_EQ(to_vector(even_squares), (std::vector{4, 16, 36}));

  auto values = count(1, 5);
  EXPECT_EQ(to_vector(std::views::all(std::move(values)) | std::views::drop(3)), (std::vector{4, 5}));
}

TEST(generator, can_be_moved_while_it_is_iterated) {
  auto first = count(1, 3);
  auto it = first.begin();
  auto second = std::move(first);
  ++it;
  EXPECT_EQ(*it, 2);
  second = count(7, 8);  // destroys what it held
  EXPECT_EQ(to_vector(std::move(second)), (std::vector{7, 8}));
}

TEST(generator, passes_on_what_its_body_throws) {
  auto fails_after = [](int n) -> generator<int> {
    for (int i = 0; i < n; ++i) co_yield i;
    throw std::runtime_error{"out of numbers"};
  };
  auto at_once = fails_after(0);
  EXPECT_THROW(at_once.begin(), std::runtime_error);

  auto later = fails_after(1);
  auto it = later.begin();
  EXPECT_THROW(++it, std::runtime_error);
  EXPECT_EQ(it, later.end()) << "after it threw, it is at the end";
}

// ---- nested generators ----------------------------------------------------------------------------------------------

TEST(generator, yields_the_elements_of_another_one) {
  auto outer = []() -> generator<int> {
    co_yield 0;
    co_yield elements_of(count(1, 2));
    co_yield elements_of(nothing());
    co_yield elements_of(count(3, 3));
    auto named = count(4, 5);
    co_yield elements_of(named);  // taken over, too
    co_yield 6;
  };
  EXPECT_EQ(to_vector(outer()), (std::vector{0, 1, 2, 3, 4, 5, 6}));
}

TEST(generator, nests_in_one_with_another_value_type) {
  auto inner = []() -> generator<std::string_view> { co_yield "inner"; };
  auto outer = [&]() -> generator<std::string_view, std::string> { co_yield elements_of(inner()); };
  EXPECT_EQ(to_vector(outer()), std::vector<std::string>{"inner"});
}

TEST(generator, yields_the_elements_of_any_range) {
  std::vector<std::string> words{"a first word that is allocated", "a second word that is allocated"};
  const std::array literals{"converted from an array of literals"};
  auto all = [&]() -> generator<std::string> {
    co_yield elements_of(words);  // copies
    co_yield elements_of(std::vector<std::string>(1, "a temporary vector has this word"));
    co_yield elements_of(std::views::single(std::string{"the one element of a view"}));
    co_yield elements_of(literals);  // converts
  };
  EXPECT_EQ(to_vector(all()),
            (std::vector<std::string>{words[0], words[1], "a temporary vector has this word",
                                      "the one element of a view", "converted from an array of literals"}));

  auto references = [&]() -> generator<const std::string&> { co_yield elements_of(words); };
  std::vector<const std::string*> seen;
  for (const std::string& word : references()) seen.push_back(&word);
  EXPECT_EQ(seen, (std::vector<const std::string*>{&words[0], &words[1]}));

  auto of_another_type = []() -> generator<std::int64_t> { co_yield elements_of(count(1, 3)); };
  EXPECT_EQ(to_vector(of_another_type()), (std::vector<std::int64_t>{1, 2, 3}));
}

// On g++ 12 a temporary in a co_yield expression may be destroyed twice: under the address sanitizer this sees it.
TEST(generator, survives_temporaries_in_the_yielding_expression) {
  struct words {
    static generator<std::string> spell(std::string word, std::shared_ptr<int> uses) {
      ++*uses;
      for (char c : word) co_yield std::string(30, c);
    }
    static generator<std::string> twice(std::shared_ptr<int> uses) {
      co_yield elements_of(spell(std::string{"ab"} + "c", uses));
      co_yield elements_of(spell("de", std::shared_ptr<int>{uses}));
      co_yield elements_of(std::vector<std::string>(2, std::string(30, 'x')));
    }
  };
  auto uses = std::make_shared<int>(0);
  std::string initials;
  for (std::string&& word : words::twice(uses)) initials += word[0];
  EXPECT_EQ(initials, "abcdexx");
  EXPECT_EQ(*uses, 2);
  EXPECT_EQ(uses.use_count(), 1);

  for (int values = 1; values <= 7; ++values) {  // left at each of the values
    auto left = words::twice(uses);
    auto it = left.begin();
    for (int i = 1; i < values; ++i) ++it;
  }
  EXPECT_EQ(uses.use_count(), 1);
}

struct tree {
  int value;
  std::unique_ptr<tree> left, right;

  static std::unique_ptr<tree> perfect(int first, int depth) {
    if (depth == 0) return nullptr;
    const int middle = first + (1 << (depth - 1)) - 1;
    return std::make_unique<tree>(tree{middle, perfect(first, depth - 1), perfect(middle + 1, depth - 1)});
  }
};

generator<const int&> in_order(const tree& node) {
  if (node.left) co_yield elements_of(in_order(*node.left));
  co_yield node.value;
  if (node.right) co_yield elements_of(in_order(*node.right));
}

TEST(generator, walks_a_tree) {
  int expected = 1;
  const auto root = tree::perfect(1, 10);
  for (int value : in_order(*root)) EXPECT_EQ(value, expected++);
  EXPECT_EQ(expected, 1 << 10);
}

// Where the machine stack ends, as seen from a body.
[[gnu::noinline]] std::uintptr_t stack_pointer() {
  return reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
}

struct stack_extent {
  std::uintptr_t low = UINTPTR_MAX, high = 0;
  void mark() {
    const auto here = stack_pointer();
    low = std::min(low, here);
    high = std::max(high, here);
  }
};

// `marked` marks the stack when it is destroyed, too.
struct marked {
  stack_extent& stack;
  ~marked() { stack.mark(); }
};

generator<std::size_t> down_and_up(std::size_t depth, stack_extent& stack, std::size_t leaf_values = 1) {
  const marked local{stack};
  stack.mark();
  if (depth == 0) {
    for (std::size_t i = 0; i < leaf_values; ++i) co_yield i;
  } else {
    co_yield elements_of(down_and_up(depth - 1, stack, leaf_values));
  }
  stack.mark();
  co_yield depth;
}

constexpr std::size_t deep = 1'000'000;
constexpr std::uintptr_t a_few_calls = 16 * 1024;

TEST(generator, a_million_deep_does_not_grow_the_stack) {
  stack_extent stack;
  std::size_t values = 0, last = 0;
  for (std::size_t value : down_and_up(deep, stack)) {
    ++values;
    last = value;
  }
  EXPECT_EQ(values, deep + 2);
  EXPECT_EQ(last, deep);
  EXPECT_LT(stack.high - stack.low, a_few_calls);
}

TEST(generator, a_million_deep_is_destroyed_half_way_in_a_loop) {
  stack_extent stack;
  {
    auto values = down_and_up(deep, stack);
    EXPECT_EQ(*values.begin(), 0u);
  }
  EXPECT_LT(stack.high - stack.low, a_few_calls);
}

TEST(generator, a_value_costs_the_same_at_any_depth) {
  stack_extent stack;
  constexpr std::size_t n = 100'000;  // if a value cost its depth: 10 billion steps, and the test would time out
  std::size_t sum = 0;
  for (std::size_t value : down_and_up(n, stack, n)) sum += value;
  EXPECT_EQ(sum, (n - 1) * n / 2 + n * (n + 1) / 2);
}

TEST(generator, destroys_nested_bodies_from_the_leaf_to_the_root) {
  struct noted {
    std::vector<int>& order;
    int depth;
    ~noted() { order.push_back(depth); }
  };
  struct nested {
    static generator<int> body(std::vector<int>& order, int depth) {
      const noted local{order, depth};
      if (depth < 3) co_yield elements_of(body(order, depth + 1));
      co_yield depth;
    }
  };
  std::vector<int> order;
  {
    auto values = nested::body(order, 0);
    auto it = values.begin();
    EXPECT_EQ(*it, 3);
    ++it;  // 3 has ended
    EXPECT_EQ(*it, 2);
    EXPECT_EQ(order, std::vector{3});
  }
  EXPECT_EQ(order, (std::vector{3, 2, 1, 0}));
}

TEST(generator, throws_from_a_nested_one_into_its_parent) {
  struct nested {
    static generator<int> fails() {
      co_yield 1;
      throw std::runtime_error{"nested"};
    }
    static generator<int> passes_on() {
      co_yield elements_of(fails());
      ADD_FAILURE() << "went on after the failure";
    }
    static generator<int> recovers() {
      bool failed = false;
      try {
        co_yield elements_of(passes_on());
      } catch (const std::runtime_error& e) {
        failed = e.what() == std::string_view{"nested"};
      }
      co_yield failed ? 2 : -1;
      co_yield elements_of(count(3, 4));
    }
  };
  EXPECT_EQ(to_vector(nested::recovers()), (std::vector{1, 2, 3, 4}));

  auto outer = nested::passes_on();
  auto it = outer.begin();
  EXPECT_EQ(*it, 1);
  EXPECT_THROW(++it, std::runtime_error);
  EXPECT_EQ(it, outer.end());
}

TEST(generator, throws_what_a_range_throws_into_the_parent) {
  auto outer = []() -> generator<int> {
    const auto fail_at_2 = [](int n) { return n == 2 ? throw std::out_of_range{"2"} : n; };
    bool failed = false;
    try {
      co_yield elements_of(std::views::iota(1) | std::views::transform(fail_at_2));
    } catch (const std::out_of_range&) {
      failed = true;
    }
    co_yield failed ? 0 : -1;
  };
  EXPECT_EQ(to_vector(outer()), (std::vector{1, 0}));
}

TEST(generator, throws_through_a_thousand_levels) {
  struct nested {
    static generator<int> body(int depth) {
      if (depth == 0) throw std::runtime_error{"from the bottom"};
      co_yield elements_of(body(depth - 1));
    }
  };
  auto values = nested::body(1000);
  EXPECT_THROW(values.begin(), std::runtime_error);
}

// ---- memory ---------------------------------------------------------------------------------------------------------

// Counts what is out.
class counting_resource : public std::pmr::memory_resource {
 public:
  int allocated = 0, out = 0;

 private:
  void* do_allocate(std::size_t bytes, std::size_t alignment) override {
    ++allocated, ++out;
    return std::pmr::new_delete_resource()->allocate(bytes, alignment);
  }
  void do_deallocate(void* p, std::size_t bytes, std::size_t alignment) override {
    --out;
    std::pmr::new_delete_resource()->deallocate(p, bytes, alignment);
  }
  bool do_is_equal(const memory_resource& other) const noexcept override { return this == &other; }
};

// Not inlined: clang would do without the frame of a generator that it sees dropped.
[[gnu::noinline]] generator<int> down_from(std::allocator_arg_t, std::pmr::memory_resource* memory, int n) {
  co_yield n;
  if (n > 1) co_yield elements_of(down_from(std::allocator_arg, memory, n - 1));
}

TEST(generator, takes_its_frame_from_the_resource_it_is_given) {
  counting_resource memory;
  EXPECT_EQ(to_vector(down_from(std::allocator_arg, &memory, 5)), (std::vector{5, 4, 3, 2, 1}));
  EXPECT_EQ(memory.allocated, 5);
  EXPECT_EQ(memory.out, 0);
  {
    auto left = down_from(std::allocator_arg, &memory, 5);
    auto it = left.begin();
    ++it, ++it;
    EXPECT_EQ(memory.out, 3);
  }
  EXPECT_EQ(memory.out, 0);
}

TEST(generator, that_finds_no_memory_throws_at_the_call) {
  EXPECT_THROW((void)down_from(std::allocator_arg, std::pmr::null_memory_resource(), 1), std::bad_alloc);
}

// ---- what is copied, and can't be moved ---------------------------------------------------------------------------------

struct copied_only {
  explicit copied_only(int n) : number{n} {}
  copied_only(const copied_only&) = default;
  copied_only(copied_only&&) = delete;
  int number;
};

TEST(generator, yields_copies_of_what_cannot_be_moved) {
  auto values = []() -> generator<copied_only> {
    copied_only kept{1};
    co_yield kept;
    const copied_only constant{2};
    co_yield constant;
    co_yield copied_only{3};
  };
  std::vector<int> got;
  for (auto&& value : values()) got.push_back(value.number);
  EXPECT_EQ(got, (std::vector{1, 2, 3}));
}

// ---- broken contracts -----------------------------------------------------------------------------------------------

using generator_death = ::testing::Test;

TEST(generator_death, tells_who_broke_what) {
  EXPECT_DEATH(
      {
        auto values = count(1, 2);
        values.begin();
        values.begin();
      },
      "was begun already: it is iterated once");
  EXPECT_DEATH(
      {
        auto values = count(1, 2);
        auto moved = std::move(values);
        values.begin();
      },
      "begin\\(\\) of a generator that was moved from");
  EXPECT_DEATH(
      {
        auto values = nothing();
        (void)*values.begin();
      },
      "dereferenced at the end");
  EXPECT_DEATH(
      {
        auto values = nothing();
        auto it = values.begin();
        ++it;
      },
      "moved past the end");
  EXPECT_DEATH(
      {
        auto outer = []() -> generator<int> {
          auto inner = count(1, 2);
          inner.begin();
          co_yield elements_of(inner);
        }();
        outer.begin();
      },
      "elements_of\\(\\) was given a generator that was begun already");
  EXPECT_DEATH(
      {
        auto outer = []() -> generator<int> {
          auto inner = count(1, 2);
          co_yield elements_of(inner);
          co_yield elements_of(inner);
        }();
        for (int value : outer) (void)value;
      },
      "elements_of\\(\\) was given a generator that was moved from");
  EXPECT_DEATH(
      {
        generator<int> empty;
        empty.begin();
      },
      "begin\\(\\) of a generator that was moved from, or made empty");
}

// What a body does with the generator that it is the body of, directly or as one that is nested in it.
using generator_of_body = generator<int>;
struct held {
  generator_of_body all;
  std::optional<generator_of_body::iterator> at{};
};
generator<int> does(held& self, void (*what)(held& self), int depth = 0) {
  if (depth > 0) {
    co_yield elements_of(does(self, what, depth - 1));
    co_return;
  }
  co_yield 1;
  what(self);
  co_yield 2;
}
void runs_into(void (*what)(held& self), int depth) {
  held one;
  one.all = does(one, what, depth);
  one.at.emplace(one.all.begin());
  ++*one.at;
}
generator<int> yields_itself(held& self) {
  co_yield 1;
  co_yield elements_of(self.all);
}
generator<int> yields_its_root(held& self) { co_yield elements_of(yields_itself(self)); }

TEST(generator_death, a_body_that_uses_its_own_generator) {
  for (const int depth : {0, 1, 3}) {
    EXPECT_DEATH(runs_into([](held& self) { self.all.begin(); }, depth), "begin\\(\\) of a generator by its own body");
    EXPECT_DEATH(runs_into([](held& self) { ++*self.at; }, depth), "advanced by the generator's own body");
    EXPECT_DEATH(runs_into([](held& self) { (void)**self.at; }, depth), "dereferenced by the generator's own body");
    EXPECT_DEATH(runs_into([](held& self) { self.all = generator<int>{}; }, depth),
                 "destroyed, or assigned to, by its own body");
  }
  EXPECT_DEATH(
      {
        held one;
        one.all = yields_itself(one);
        for (int value : one.all) (void)value;
      },
      "elements_of\\(\\) was given the generator whose own body this is");
  EXPECT_DEATH(
      {
        held one;
        one.all = yields_its_root(one);
        for (int value : one.all) (void)value;
      },
      "elements_of\\(\\) was given the generator whose own body this is");
  EXPECT_DEATH(
      {
        held one;  // before its first value
        one.all = [](held& self) -> generator<int> {
          self.all.begin();
          co_yield 1;
        }(one);
        one.all.begin();
      },
      "begin\\(\\) of a generator by its own body");
}

TEST(generator, that_threw_has_ended_and_is_not_running) {
  auto fails = []() -> generator<int> {
    co_yield 1;
    throw std::out_of_range{"2"};
  };
  auto values = fails();
  auto it = values.begin();
  EXPECT_THROW(++it, std::out_of_range);
  EXPECT_EQ(it, values.end());
  values = count(1, 2);  // the old one is destroyed
  EXPECT_EQ(to_vector(std::move(values)), (std::vector{1, 2}));
}

TEST(generator, may_be_made_empty_and_filled_later) {
  generator<int> later;
  EXPECT_FALSE(later);
  later = count(1, 3);
  EXPECT_TRUE(later);
  EXPECT_EQ(to_vector(std::move(later)), (std::vector{1, 2, 3}));
}

}  // namespace
