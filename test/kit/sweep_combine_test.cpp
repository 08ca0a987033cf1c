// Every combinator, with a stop at each place, and without memory.
#include <weft/blocking.hpp>
#include <weft/combine.hpp>
#include <weft/parallel.hpp>

#include <functional>
#include <iterator>
#include <ranges>
#include <stdexcept>
#include <utility>
#include <vector>

#include "support/sweep.hpp"

namespace {

using namespace test::in_sweeps;
using weft::when_all;

template <class By>
struct all : counts_values {
  part<By> run() {
    auto [a, b, c] = co_await when_all(hold(*this, 3), make(*this, 1), rest(2));
    require(a == 1, "a value was lost");
    co_await when_all(nap(0), nap(0));
    co_await when_all();
    std::vector<task<counted>> many;
    for (int i = 0; i != 4; ++i) many.push_back(make(*this, i));
    const auto values = co_await when_all(std::move(many));
    require(values.size() == 4, "a value was lost");
  }
};
TEST(sweep, when_all) { sweep_both<all>("when_all, when_all(range)"); }

template <class By>
struct ranges : counts_values {
  part<By> run() {
    const auto is_wanted = [](int n) { return n % 3 != 0; };
    const auto child = [this](int n) { return n % 5 == 0 ? hold(*this, n, n) : hold_at_once(n); };
    auto few = std::views::iota(0, 14) | std::views::filter(is_wanted) | std::views::transform(child);
    std::vector<int> values;
    values.reserve(9);
    co_await when_all(few, std::back_inserter(values));
    require(values.size() == 9 && values.back() == 13, "a value was lost");
    auto many = std::views::iota(0, 20) | std::views::transform(child);
    co_await when_all(many, std::ignore);
  }

 private:
  task<int> hold_at_once(int n) {
    const counted held = value();
    co_return n;
  }
};
TEST(sweep, when_all_of_ranges) { sweep_both<ranges>("when_all(into)"); }

template <class By>
struct made_in_turn : counts_values {
  part<By> run() {
    const auto child = [this](std::size_t i) {
      const int n = static_cast<int>(i);
      return n % 3 == 1 ? hold(*this, n, n) : hold_at_once(n);
    };
    std::vector<int> values;
    values.reserve(7);
    co_await when_all(7, child, std::back_inserter(values));
    require(values.size() == 7 && values.back() == 6, "a value was lost");
    co_await when_all(3, child, std::ignore);
    const auto made = co_await when_all(4, child);
    require(made.size() == 4 && made.back() == 3, "a value was lost");
  }

 private:
  task<int> hold_at_once(int n) {
    const counted held = value();
    co_return n;
  }
};
TEST(sweep, when_all_of_made) { sweep_both<made_in_turn>("when_all(make), when_all(into)"); }

template <class By>
struct all_but_one : counts_values {
  part<By> run() {
    const auto how = co_await as_result(when_all(hold(*this, 1), fail(2), hold(*this, 3)));
    require(how.is_stopped() || how.exception() != nullptr, "a failure was lost");
    co_await rest(1);
  }
};
TEST(sweep, when_all_with_a_failure) { sweep_both<all_but_one>("when_all"); }

template <class By>
struct nested : counts_values {
  task<> inner(int base) { co_await when_all(hold(*this, base), hold(*this, base + 1)); }
  part<By> run() { co_await when_all(inner(1), inner(2)); }
};
TEST(sweep, when_all_nested) { sweep_both<nested>("when_all"); }

template <class By>
struct any : counts_values {
  part<By> run() {
    const auto [index, value] = co_await weft::when_any(hold(*this, 3), make(*this, 1), rest(2));
    require(index < 3, "a value was lost");
    std::vector<task<int>> many;
    for (int i = 0; i != 3; ++i) many.push_back(hold(*this, 3 - i, i));
    const auto first = co_await weft::when_any(std::move(many));
    require(first.index < 3, "a value was lost");
    co_await rest(1);
  }
};
TEST(sweep, when_any) { sweep_both<any>("when_any, when_any(range)"); }

template <class By>
struct any_that_fails : counts_values {
  part<By> run() {
    const auto how = co_await as_result(weft::when_any(hold(*this, 3), fail(1)));
    require(how.is_stopped() || how.has_value() || how.exception() != nullptr, "a failure was lost");
    co_await rest(1);
  }
};
TEST(sweep, when_any_with_a_failure) { sweep_both<any_that_fails>("when_any"); }

template <class By>
struct some : counts_values {
  std::vector<task<counted>> many() {
    std::vector<task<counted>> all;
    for (int i = 0; i != 4; ++i) all.push_back(make(*this, 4 - i));
    return all;
  }
  part<By> run() {
    {
      const auto two = co_await weft::when_some(2, many());
      require(two.size() == 2, "a value was lost");
    }
    auto piped = many() | weft::when(3);
    const auto three = co_await std::move(piped);
    require(three.size() == 3, "a value was lost");
    co_await rest(1);
  }
};
TEST(sweep, when_some) {
  // One that is stopped alone leaves too few.
  sweep_both<some>("when_some, when", {.may_throw = true});
}

template <class By>
struct windows : counts_values {
  part<By> run() {
    auto one = [this](int i) { return make(*this, 1 + i % 2); };
    auto range = std::views::iota(0, 5) | std::views::transform(one);
    const auto values = co_await weft::windowed(2, range);
    require(values.size() == 5, "a value was lost");
    auto piped = range | weft::windowed(3);
    const auto all = co_await std::move(piped);
    require(all.size() == 5, "a value was lost");
  }
};
TEST(sweep, windowed) { sweep_both<windows>("windowed, windowed(n)"); }

template <class By>
struct loops : counts_values {
  part<By> run() {
    auto body = [this](int n) -> task<> { static_cast<void>(co_await hold(*this, n % 2)); };
    co_await weft::for_each({.grain = 2}, std::views::iota(0, 5), body);
    const auto same = [](int n) { return n; };
    const int sum = co_await weft::reduce({.grain = 2}, std::views::iota(0, 5), 0, std::plus<>{}, same);
    require(sum == 10, "a value was lost");
    co_await rest(1);
  }
};
TEST(sweep, loops) { sweep_both<loops>("for_each, reduce"); }

// Over real threads: what the sweep sees is another run each time.
template <class By>
struct blocks : counts_values {
  weft::blocking_pool one{{.threads = 1}};
  part<By> run() {
    const counted held = value();
    const auto call = [](int n) { return n; };
    const auto [a, b] = co_await when_all(one.run(call, 1), one.run(call, 2));
    require(a + b == 3, "a value was lost");
    require(co_await weft::blocking(call, 7) == 7, "a value was lost");
    require(co_await one.run(weft::abandon_on_stop, call, 8) == 8, "a value was lost");
    require(co_await weft::blocking(weft::abandon_on_stop, call, 9) == 9, "a value was lost");
  }
};
TEST(sweep, blocking) { sweep_both<blocks>("blocking, blocking_pool::run", {.inline_completion = false}); }

template <class By>
struct times_out : counts_values {
  part<By> run() {
    require(co_await weft::timeout(5ms, hold(*this, 1)) == 1, "a value was lost");
    const auto late = co_await as_result(weft::timeout(1ms, hold(*this, 5)));
    require(late.is_stopped() || late.exception() != nullptr, "it was too late");
    const auto race = co_await as_result(weft::timeout(2ms, make(*this, 2)));
    static_cast<void>(race);
    auto piped = hold(*this, 1) | weft::timeout(3ms);
    co_await std::move(piped);
    const auto nested = co_await as_result(weft::timeout(1ms, weft::timeout(1ms, hold(*this, 5))));
    static_cast<void>(nested);
    co_await rest(1);
  }
};
// A stop of what it waits for alone, from another thread, may come together with the time: then it is too late.
TEST(sweep, timeout) { sweep_both<times_out>("timeout, timeout(limit)", {.may_throw = true}); }

template <class By>
struct tries_again : counts_values {
  int left = 0;
  part<By> run() {
    left = 2;
    auto attempt = [this]() -> task<int> {
      const counted held = value();
      co_await rest(1);
      if (left-- > 0) throw std::runtime_error{"as planned"};
      co_return 1;
    };
    // One attempt more than the planned failures want: one that has no memory fails, too.
    require(co_await weft::retry({.attempts = 4, .delay = 1ms, .seed = 1}, attempt) == 1, "a value was lost");
    left = 1;
    auto piped = attempt | weft::retry({.attempts = 3, .delay = 1ms, .seed = 1});
    co_await std::move(piped);
  }
};
TEST(sweep, retry) { sweep_both<tries_again>("retry, retry(policy)"); }

}  // namespace
