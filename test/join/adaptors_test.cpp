#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <weft/combine.hpp>
#include <weft/from_callback.hpp>
#include <weft/future.hpp>
#include <weft/pipe.hpp>
#include <weft/select.hpp>

#include "support/weft_test.hpp"

namespace {

using weft::as_result;
using weft::on_error;
using weft::on_stop;
using weft::on_value;
using weft::result;
using weft::stop_source;
using weft::stopped;
using weft::sync_wait;
using weft::task;
using weft::then;

task<int> number(int n) { co_return n; }
task<> nothing() { co_return; }
template <class Error>
task<int> fails(Error error) {
  throw error;
  co_return 0;
}
task<int> stops() {
  weft::promise<int> never;
  never.set_stopped();
  co_return co_await never.get_future();
}

// ---- on_value, then -------------------------------------------------------------------------------------------------

WEFT_TEST("on_value: makes another value of the value") {
  EXPECT_EQ(co_await (number(1) | on_value([](int n) { return n + 1; })), 2);
  EXPECT_EQ(co_await (number(1) | on_value([](int n) { return std::to_string(n); })), "1");
  EXPECT_EQ(co_await (nothing() | on_value([] { return 3; })), 3);
  int seen = 0;
  co_await (number(4) | on_value([&](int n) { seen = n; }));
  EXPECT_EQ(seen, 4);
  co_await (nothing() | on_value([&] { seen = 5; }));
  EXPECT_EQ(seen, 5);
}

WEFT_TEST("on_value: keeps references, and moves what only moves") {
  int n = 0;
  auto refers = [](int& n) -> task<int&> { co_return n; };
  int& same = co_await (refers(n) | on_value([](int& n) -> int& { return n; }));
  EXPECT_EQ(&same, &n);
  auto owns = []() -> task<std::unique_ptr<int>> { co_return std::make_unique<int>(1); };
  auto moved = co_await (owns() | on_value([](std::unique_ptr<int> p) { return p; }));
  EXPECT_EQ(*moved, 1);
}

WEFT_TEST("on_value: awaits what can be awaited") {
  auto twice = [](int n) -> task<int> { co_return 2 * n; };
  EXPECT_EQ(co_await (number(1) | on_value(twice) | on_value(twice)), 4);
  EXPECT_EQ(co_await (number(1) | on_value([](int n) { return weft::make_ready_future(n); })), 1);
}

WEFT_TEST("on_value: failures and stops pass it by") {
  int calls = 0;
  auto count = [&](int) { ++calls; };
  EXPECT_THROW((co_await as_result(fails(std::runtime_error{"no"}) | on_value(count))).value(), std::runtime_error);
  EXPECT_TRUE((co_await as_result(stops() | on_value(count))).is_stopped());
  EXPECT_EQ(calls, 0);
}

WEFT_TEST("on_value: runs nothing before it is awaited, and keeps what it needs") {
  int calls = 0;
  auto function = std::make_unique<int>(1);
  auto later = number(1) | on_value([&calls, &function](int n) {
                 ++calls;
                 return n + *function;
               });
  EXPECT_EQ(calls, 0);
  EXPECT_EQ(co_await std::move(later), 2);
}

WEFT_TEST("on_value: stands behind a gate, a future, a callback") {
  test::gate door;
  std::jthread porter{[&] { door.open(); }};
  EXPECT_EQ(co_await (door.pass() | on_value([] { return 1; })), 1);
  EXPECT_EQ(co_await (weft::make_ready_future(1) | on_value([](int n) { return n + 1; })), 2);
  EXPECT_EQ(co_await (weft::from_callback<int>([](weft::callback<int> done) { done(2); }) |
                      on_value([](int n) { return n + 1; })),
            3);
}

WEFT_TEST("then: takes the value, or the result where it asks for one") {
  EXPECT_EQ(co_await (number(1) | then([](int n) { return n + 1; })), 2);
  EXPECT_EQ(co_await (nothing() | then([] { return 1; })), 1);
  auto kind = [](const result<int>& how) { return how ? 'v' : how.is_stopped() ? 's' : 'e'; };
  EXPECT_EQ(co_await (number(1) | then(kind)), 'v');
  EXPECT_EQ(co_await (fails(1) | then(kind)), 'e');
  EXPECT_EQ(co_await (stops() | then(kind)), 's');
  auto none = [](result<void> how) { return how.has_value(); };
  EXPECT_TRUE(co_await (nothing() | then(none)));
  auto awaits = [](result<int> how) -> task<int> { co_return how.value() + 1; };
  EXPECT_EQ(co_await (number(1) | then(awaits)), 2);
}

// ---- on_error -------------------------------------------------------------------------------------------------------

int from_pointer(std::exception_ptr failure) {
  EXPECT_THROW(std::rethrow_exception(failure), std::runtime_error);
  return 7;
}

WEFT_TEST("on_error: gives a value in the place of a failure") {
  const std::runtime_error no{"no"};
  EXPECT_EQ(co_await (fails(no) | on_error(from_pointer)), 7);
  EXPECT_EQ(co_await (fails(no) | on_error([](auto) { return 1; })), 1);
  EXPECT_EQ(co_await (fails(no) | on_error([](const std::exception& e) { return e.what()[0] == 'n' ? 2 : 0; })), 2);
  EXPECT_EQ(co_await (fails(no) | on_error([](std::runtime_error) noexcept { return 3; })), 3);
  EXPECT_EQ(co_await (fails(no) | on_error([](std::runtime_error& e) mutable { return int(e.what()[1] == 'o'); })), 1);
  EXPECT_EQ(co_await (number(5) | on_error(from_pointer)), 5);
  bool called = false;
  auto none = [](std::runtime_error no) -> task<> {
    throw no;
    co_return;
  };
  co_await (none(no) | on_error([&](std::exception_ptr) { called = true; }));
  EXPECT_TRUE(called);
}

WEFT_TEST("on_error: takes its type only") {
  auto of_system = [](const std::system_error&) { return 1; };
  auto of_any = [](const std::exception&) { return 2; };
  const std::runtime_error other{"other"};
  const std::system_error system{std::make_error_code(std::errc::timed_out)};
  EXPECT_EQ(co_await (fails(other) | on_error(of_system) | on_error(of_any)), 2);
  EXPECT_EQ(co_await (fails(system) | on_error(of_system) | on_error(of_any)), 1);
  EXPECT_THROW((co_await as_result(fails(other) | on_error(of_system))).value(), std::runtime_error);
}

WEFT_TEST("on_error: awaits what can be awaited, which may refer to the failure") {
  auto length = [](const std::exception& e) -> task<int> {
    co_await nothing();
    co_return static_cast<int>(std::string_view{e.what()}.size());
  };
  EXPECT_EQ(co_await (fails(std::runtime_error{"four"}) | on_error(length)), 4);
  auto any = [](std::exception_ptr) -> task<int> { co_return 1; };
  EXPECT_EQ(co_await (fails(1) | on_error(any)), 1);
}

WEFT_TEST("on_error: what it throws takes the failure's place; a stop passes it by") {
  auto rethrows = [](std::exception_ptr) -> int { throw std::logic_error{"worse"}; };
  EXPECT_THROW((co_await as_result(fails(1) | on_error(rethrows))).value(), std::logic_error);
  bool called = false;
  auto any = [&](std::exception_ptr) {
    called = true;
    return 1;
  };
  EXPECT_TRUE((co_await as_result(stops() | on_error(any))).is_stopped());
  EXPECT_FALSE(called);
}

// ---- on_stop --------------------------------------------------------------------------------------------------------

WEFT_TEST("on_stop: gives a value in the place of a stop") {
  EXPECT_EQ(co_await (stops() | on_stop([] { return 1; })), 1);
  auto awaits = []() -> task<int> { co_return 2; };
  EXPECT_EQ(co_await (stops() | on_stop(awaits)), 2);
  EXPECT_EQ(co_await (number(3) | on_stop([] { return 1; })), 3);
  auto owns = []() -> task<std::unique_ptr<int>> { co_return std::make_unique<int>(4); };
  EXPECT_EQ(*co_await (owns() | on_stop([] { return nullptr; })), 4);
  EXPECT_THROW((co_await as_result(fails(1) | on_stop([] { return 1; }))).value(), int);
  co_await (nothing() | on_stop([] {}));
}

TEST(on_stop, sees_a_stop_of_the_whole_but_does_not_swallow_it) {
  stop_source stop;
  test::gate never;
  bool seen = false, went_on = false;
  auto body = [](stop_source& stop, test::gate& never, bool& seen, bool& went_on) -> task<> {
    stop.request_stop();
    co_await (never.pass() | on_stop([&] { seen = true; }));
    co_await never;
    went_on = true;
  };
  EXPECT_THROW(sync_wait(body(stop, never, seen, went_on), stop.token()), stopped);
  EXPECT_TRUE(seen);
  EXPECT_FALSE(went_on);
}

task<int> any_of_three(int n) {
  if (n < 0) throw std::runtime_error{"negative"};
  if (n > 9) co_await stops();  // in an `?:`, g++ 12 awaits it in any case
  co_return n;
}

WEFT_TEST("adaptors: stand in a row") {
  auto answer = [](int n) -> task<int> {
    co_return co_await (any_of_three(n) | on_value([](int n) { return 2 * n; }) |
                        on_error([](const std::runtime_error&) { return -1; }) | on_stop([] { return -2; }));
  };
  EXPECT_EQ(co_await answer(1), 2);
  EXPECT_EQ(co_await answer(-5), -1);
  EXPECT_EQ(co_await answer(50), -2);
}

// Each holds the one before in its frame; none has run.
TEST(adaptors, a_row_of_five_thousand_that_is_dropped) {
  std::atomic<int> alive = 0;
  {
    auto first = [](test::counted) -> task<int> { co_return 0; };
    auto add = [](int n) { return n + 1; };
    task<int> row = first(test::counted{alive});
    for (int i = 0; i < 5'000; ++i) row = std::move(row) | on_value(add);
    EXPECT_EQ(alive, 1);
  }
  EXPECT_EQ(alive, 0);
}

}  // namespace
