#include <gtest/gtest.h>

#include <exception>
#include <functional>
#include <memory>
#include <memory_resource>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>
#include <weft/weft.hpp>

#include "support/weft_test.hpp"

// Whatever takes a callable calls it as std::invoke does: so a pointer to a member will do, with an object, a pointer to
// one or a std::reference_wrapper before the other arguments.

namespace {

namespace w = weft;
using namespace std::chrono_literals;

struct thing {
  int v = 3;

  int plus(int k) const { return v + k; }
  w::task<int> later(int k) const {
    co_await w::yield();
    co_return v + k;
  }
  w::task<> bump() {
    ++v;
    co_return;
  }
  bool is_odd() const noexcept { return v % 2 == 1; }
  w::task<int> body(w::scope& here) { co_return co_await here.fork(&thing::plus, *this, 10); }
  w::task<int> body_with(w::scope&, int k) { co_return v + k; }
};

struct heir : thing {};

struct holds_a_task {
  w::task<int> work;
};

w::task<int> number(int n) { co_return n; }
w::task<thing> make(int v) { co_return thing{v}; }
w::async_generator<thing> things(int from, int to) {
  for (; from <= to; ++from) co_yield thing{from};
}

// ---- detail::invoke -------------------------------------------------------------------------------------------------

template <class F, class... Args>
constexpr bool gives_what_std_invoke_gives =
    std::is_same_v<decltype(weft::detail::invoke(std::declval<F>(), std::declval<Args>()...)),
                   std::invoke_result_t<F, Args...>>;

TEST(invoke, gives_the_types_that_std_invoke_gives) {
  using data = int thing::*;
  using function = int (thing::*)(int) const;
  EXPECT_TRUE((gives_what_std_invoke_gives<data, thing&>));
  EXPECT_TRUE((gives_what_std_invoke_gives<data, const thing&>));
  EXPECT_TRUE((gives_what_std_invoke_gives<data, thing>));
  EXPECT_TRUE((gives_what_std_invoke_gives<data&, heir>));
  EXPECT_TRUE((gives_what_std_invoke_gives<data, thing*>));
  EXPECT_TRUE((gives_what_std_invoke_gives<data, const heir* const&>));
  EXPECT_TRUE((gives_what_std_invoke_gives<data, std::unique_ptr<thing>>));
  EXPECT_TRUE((gives_what_std_invoke_gives<data, std::reference_wrapper<const thing>>));
  EXPECT_TRUE((gives_what_std_invoke_gives<const function&, heir&, int>));
  EXPECT_TRUE((gives_what_std_invoke_gives<function, std::reference_wrapper<heir>&, int>));
  EXPECT_TRUE((gives_what_std_invoke_gives<function, std::shared_ptr<thing>, int>));
  EXPECT_TRUE((gives_what_std_invoke_gives<int (*)(int), int>));
}

TEST(invoke, reaches_the_object_that_was_meant) {
  heir one{{4}};
  auto owned = std::make_unique<thing>(thing{5});
  EXPECT_EQ(&weft::detail::invoke(&thing::v, one), &one.v);
  EXPECT_EQ(&weft::detail::invoke(&thing::v, &one), &one.v);
  EXPECT_EQ(&weft::detail::invoke(&thing::v, std::ref(one)), &one.v);
  EXPECT_EQ(weft::detail::invoke(&thing::plus, owned, 1), 6);
  EXPECT_EQ(weft::detail::invoke(&thing::plus, std::as_const(one), 1), 5);
}

// ---- scopes ---------------------------------------------------------------------------------------------------------

WEFT_TEST("invoke: scope::fork, fork_on and go take members, with each kind of object") {
  auto all = [](w::scope& s) -> w::task<> {
    thing one;
    w::inline_executor here;
    EXPECT_EQ(co_await s.fork(&thing::later, &one, 4), 7);
    EXPECT_EQ(co_await s.fork(&thing::later, std::ref(one), 4), 7);
    EXPECT_EQ(co_await s.fork(&thing::later, one, 4), 7);
    EXPECT_EQ(co_await s.fork(&thing::plus, &one, 4), 7);
    EXPECT_EQ(co_await s.fork(&thing::plus, std::cref(one), 4), 7);
    EXPECT_EQ(co_await s.fork(&thing::plus, heir{}, 4), 7);
    EXPECT_EQ(co_await s.fork(&thing::v, one), 3);
    auto refers = s.fork(&thing::v, &one);
    static_assert(std::is_same_v<decltype(refers), w::fork<int&>>);
    EXPECT_EQ(&co_await std::move(refers), &one.v);
    EXPECT_EQ(co_await s.fork_on(here, &thing::later, &one, 4), 7);
    EXPECT_EQ(co_await s.fork_on(here, &thing::plus, one, 4), 7);
    EXPECT_EQ(co_await s.fork_on(here, &thing::v, std::ref(one)), 3);
    EXPECT_EQ(co_await s.go(&thing::plus, &one, 4), 7);
    EXPECT_EQ(co_await s.go(&thing::v, one), 3);
    holds_a_task holds{number(8)};  // g++ 12 destroys such an aggregate twice where it is a temporary beside co_await
    EXPECT_EQ(co_await s.fork(&holds_a_task::work, std::move(holds)), 8);
  };
  co_await w::with_scope(all);
}

WEFT_TEST("invoke: a restarted fork calls its member again") {
  struct fails_twice {
    int* left;
    int run() {
      if ((*left)-- > 0) throw std::runtime_error{"not yet"};
      return 5;
    }
  };
  int left = 2;
  auto again = [](std::exception_ptr) { return w::on_failure::restart; };
  auto all = [&](w::scope& s) -> w::task<int> { co_return co_await s.fork(&fails_twice::run, fails_twice{&left}); };
  EXPECT_EQ(co_await w::with_scope({.on_error = w::supervise(again)}, all), 5);
}

WEFT_TEST("invoke: with_scope gives a member function its object, then the scope") {
  thing one;
  EXPECT_EQ(co_await w::with_scope(&thing::body, &one), 13);
  EXPECT_EQ(co_await w::with_scope(&thing::body, std::ref(one)), 13);
  EXPECT_EQ(co_await w::with_scope(&thing::body, one), 13);
  EXPECT_EQ(co_await w::with_scope({}, &thing::body, &one), 13);
  EXPECT_EQ(co_await w::with_scope(&thing::body_with, &one, 4), 7);
}

WEFT_TEST("invoke: with_memory, with_local, with_stop, with_deadline, with_env, with_executors") {
  thing one;
  std::pmr::monotonic_buffer_resource arena;
  const w::local<int> key;
  w::stop_source source;
  w::inline_executor here;
  const w::executor_set places{here};
  EXPECT_EQ(co_await w::with_memory(&arena, &thing::later, &one, 4), 7);
  EXPECT_EQ(co_await w::with_memory(&arena, &thing::later, one, 4), 7);
  EXPECT_EQ(co_await w::with_local(key, 3, &thing::later, &one, 4), 7);
  EXPECT_EQ(co_await w::with_local(key, 3, &thing::later, std::ref(one), 4), 7);
  EXPECT_EQ(co_await w::with_stop(source.token(), &thing::later, &one, 4), 7);
  EXPECT_EQ(co_await w::with_stop(source.token(), &thing::later, one, 4), 7);
  EXPECT_EQ(co_await w::with_deadline(1h, &thing::later, &one, 4), 7);
  EXPECT_EQ(co_await w::with_deadline(1h, &thing::later, one, 4), 7);
  EXPECT_EQ(co_await w::with_env(w::current_env(), &thing::later, &one, 4), 7);
  EXPECT_EQ(co_await w::with_env(w::current_env(), &thing::later, one, 4), 7);
  EXPECT_EQ(co_await w::with_executors(places, &thing::later, &one, 4), 7);
  EXPECT_EQ(co_await w::with_executors(places, &thing::later, std::ref(one), 4), 7);
  holds_a_task held{number(8)};
  EXPECT_EQ(co_await w::with_deadline(1h, &holds_a_task::work, std::move(held)), 8);
}

WEFT_TEST("invoke: on_scope_exit, detach_on_stop and registry") {
  thing one;
  auto leaves = [](thing& of) -> w::task<> {
    co_await w::on_scope_exit(&thing::bump, &of);
    co_await w::on_scope_exit(&thing::bump, std::ref(of));
  };
  co_await leaves(one);
  EXPECT_EQ(one.v, 5);
  EXPECT_EQ(co_await w::detach_on_stop(&thing::later, one, 4), 9);
  EXPECT_EQ(co_await w::detach_on_stop(&thing::plus, one, 4), 9);
  EXPECT_EQ(co_await w::detach_on_stop(&thing::v, one), 5);
  w::registry jobs;
  auto all = [&](w::scope& s) -> w::task<> {
    EXPECT_EQ(co_await jobs.fork(s, &thing::later, &one, 4).work, 9);
    EXPECT_EQ(co_await jobs.fork(s, &thing::plus, one, 4).work, 9);
    EXPECT_EQ(co_await jobs.fork(s, &thing::v, one).work, 5);
    EXPECT_EQ(co_await jobs.go(s, &thing::plus, std::ref(one), 4).work, 9);
    EXPECT_EQ(co_await jobs.go(s, &thing::v, one).work, 5);
  };
  co_await w::with_scope(all);
}

TEST(invoke, detach_takes_a_member_whose_object_it_owns) {
  struct sets {
    std::shared_ptr<int> to;
    w::task<> set(int n) {
      *to = n;
      co_return;
    }
  };
  w::manual_executor loop;
  auto seen = std::make_shared<int>(0);
  w::detach(loop, &sets::set, [](std::exception_ptr) {}, sets{seen}, 4);
  w::detach(loop, &sets::to, [](std::exception_ptr) {}, sets{seen});
  loop.run_all();
  EXPECT_EQ(*seen, 4);
}

// ---- what follows an awaitable --------------------------------------------------------------------------------------

struct my_error {
  int number = 6;
  int twice() const noexcept { return 2 * number; }
  w::task<int> thrice() { co_return 3 * number; }
};

w::task<int> fails() {
  throw my_error{};
  co_return 0;
}

WEFT_TEST("invoke: on_value, then and on_error") {
  thing one;
  auto pointer = [](thing& of) -> w::task<thing*> { co_return &of; };
  auto reference = [](thing& of) -> w::task<thing&> { co_return of; };
  EXPECT_EQ(co_await (make(5) | w::on_value(&thing::v)), 5);
  EXPECT_EQ(co_await (make(5) | w::on_value(&thing::is_odd)), true);
  EXPECT_EQ(&co_await (pointer(one) | w::on_value(&thing::v)), &one.v);
  EXPECT_EQ(&co_await (reference(one) | w::on_value(&thing::v)), &one.v);
  co_await (pointer(one) | w::then(&thing::bump));
  co_await (reference(one) | w::then(&thing::bump));
  EXPECT_EQ(one.v, 5);
  EXPECT_EQ(co_await (make(5) | w::then(&w::result<thing>::has_value)), true);
  EXPECT_EQ(co_await (fails() | w::on_error(&my_error::number)), 6);
  EXPECT_EQ(co_await (fails() | w::on_error(&my_error::twice)), 12);
  EXPECT_EQ(co_await (fails() | w::on_error(&my_error::thrice)), 18);
}

TEST(invoke, future_then_and_the_callback_of_start) {
  w::promise<thing> data;
  w::promise<thing*> function;
  thing one;
  auto value = data.get_future().then(&thing::v);
  auto bumped = function.get_future().then(&thing::bump);
  data.set_value(thing{4});
  function.set_value(&one);
  EXPECT_EQ(std::move(value).get(), 4);
  std::move(bumped).get();
  EXPECT_EQ(one.v, 4);
  w::start(number(1), &w::result<int>::has_value);
}

WEFT_TEST("invoke: a callback's own member is a start function") {
  auto how = co_await w::as_result(w::from_callback<int>(&w::callback<int>::set_stopped));
  EXPECT_TRUE(how.is_stopped());
}

// ---- streams and ranges ---------------------------------------------------------------------------------------------

WEFT_TEST("invoke: transform, filter, accumulate and for_each of an async_generator, and of a merge") {
  const auto data = co_await (things(1, 3) | w::transform(&thing::v) | w::collect());
  EXPECT_EQ(data, (std::vector{1, 2, 3}));
  const auto calls = co_await (things(1, 3) | w::transform(&thing::is_odd) | w::collect());
  EXPECT_EQ(calls, (std::vector{true, false, true}));
  const auto odd = co_await (things(1, 3) | w::filter(&thing::is_odd) | w::transform(&thing::v) | w::collect());
  EXPECT_EQ(odd, (std::vector{1, 3}));
  co_await (things(1, 3) | w::for_each(&thing::bump));
  co_await (w::merge(things(1, 2), things(3, 4)) | w::for_each(&thing::bump));

  struct sum {
    int so_far = 0;
    sum plus(const thing& one) const { return {so_far + one.v}; }
  };
  const auto all = co_await w::accumulate(things(1, 3), sum{}, &sum::plus);
  EXPECT_EQ(all.so_far, 6);
}

WEFT_TEST("invoke: for_each and reduce of a range, and where when_all puts its values") {
  std::vector<thing> all(4);
  std::vector<thing*> pointers;
  for (thing& one : all) pointers.push_back(&one);
  co_await w::for_each(all, &thing::bump);
  co_await w::for_each(pointers, &thing::bump);
  EXPECT_EQ(co_await w::reduce(all, 0, std::plus<>{}, &thing::v), 4 * 5);
  EXPECT_EQ(co_await w::reduce(pointers, 0, std::plus<>{}, &thing::is_odd), 4);

  struct counts {
    int* into;
    void count() const { ++*into; }
  };
  int counted = 0;
  auto one = [&](std::size_t) -> w::task<counts> { co_return counts{&counted}; };
  co_await w::when_all(std::size_t{3}, one, &counts::count);
  std::vector<w::task<counts>> some;
  some.push_back(one(0));
  co_await w::when_all(std::move(some), &counts::count);
  EXPECT_EQ(counted, 4);
}

WEFT_TEST("invoke: the function of an any_case") {
  struct notes {
    int* at;
    void note() const { ++*at; }
  };
  int noted = 0;
  w::channel<notes> from{1};
  co_await from.send(notes{&noted});
  std::vector<w::any_case> cases;
  cases.emplace_back(w::on_receive(from), &notes::note);
  EXPECT_EQ(co_await w::select(std::move(cases)), 0U);
  EXPECT_EQ(noted, 1);
}

WEFT_TEST("invoke: blocking, by the process's pool and by one's own") {
  thing one;
  EXPECT_EQ(co_await w::blocking(&thing::plus, &one, 4), 7);
  EXPECT_EQ(co_await w::blocking(&thing::plus, std::ref(one), 4), 7);
  EXPECT_EQ(co_await w::blocking(&thing::v, one), 3);
  w::blocking_pool pool;
  EXPECT_EQ(co_await pool.run(&thing::plus, one, 4), 7);
}

// What a callable returns by rvalue reference is kept as a value, whatever the callable is.
WEFT_TEST("invoke: an rvalue reference that a callable returns becomes a value") {
  auto moves = [](thing& one) -> thing&& { return std::move(one); };
  thing one{9};
  auto all = [&](w::scope& s) -> w::task<> {
    const thing forked = co_await s.fork(moves, std::ref(one));
    const thing fiber = co_await s.go(moves, std::ref(one));
    EXPECT_EQ(forked.v + fiber.v, 18);
  };
  co_await w::with_scope(all);
  const thing blocked = co_await w::blocking(moves, std::ref(one));
  EXPECT_EQ(blocked.v, 9);
}

}  // namespace
