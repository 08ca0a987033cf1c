// Failures that are not thrown: fail_with and nothrow.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <exception>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>
#include <vector>
#include <weft/combine.hpp>
#include <weft/executor.hpp>
#include <weft/fiber.hpp>
#include <weft/nothrow.hpp>
#include <weft/on_scope_exit.hpp>
#include <weft/scope.hpp>
#include <weft/shared_task.hpp>
#include <weft/sync.hpp>
#include <weft/task.hpp>

#include "support/weft_test.hpp"

namespace {

using namespace std::chrono_literals;
using weft::as_result;
using weft::fail_with;
using weft::nothrow;
using weft::sync_wait;
using weft::task;

// Counts the variables that go while an exception is on its way, and those that go without one.
struct seen {
  int thrown = 0, quiet = 0;
};
class variable {
 public:
  explicit variable(seen& to) noexcept : to_{to} {}
  variable(const variable&) = delete;
  ~variable() { ++(std::uncaught_exceptions() > 0 ? to_.thrown : to_.quiet); }

 private:
  seen& to_;
};

struct refused : std::runtime_error {
  using runtime_error::runtime_error;
};

std::string what_of(const std::exception_ptr& failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const std::exception& thrown) {
    return thrown.what();
  }
}

task<int> refuse(seen& to) {
  const variable mine{to};
  const refused why{"refused"};
  co_await fail_with(why);
  ADD_FAILURE() << "a task that has failed went on";
  co_return 0;
}
task<> refuse_to_do(seen& to) {
  const variable mine{to};
  const refused why{"refused"};
  co_await fail_with(why);
}
task<int> refuse_later(seen& to) {
  const variable mine{to};
  co_await weft::yield();
  const refused why{"refused"};
  co_await fail_with(why);
  co_return 0;
}
template <class Function>
Function* opaque(Function* function) {
  Function* volatile hidden = function;
  return hidden;
}
task<int> through(seen& to, int levels, task<int> (*callee)(seen&)) {
  const variable mine{to};
  if (levels == 0) co_return 1 + co_await nothrow(callee(to));
  co_return 1 + co_await nothrow(through(to, levels - 1, callee));
}

WEFT_TEST("nothrow: a failure passes any number of tasks, and nothing is thrown") {
  for (auto* const callee : {refuse, refuse_later}) {
    seen variables;
    const auto how = co_await as_result(through(variables, 10, callee));
    EXPECT_EQ(what_of(how.exception()), "refused");
    EXPECT_EQ(variables.quiet, 12);
    EXPECT_EQ(variables.thrown, 0);
  }
}

WEFT_TEST("nothrow: who awaits without it has the failure thrown") {
  seen variables;
  auto elided = [](seen& to) -> task<int> { co_return co_await refuse(to); };
  auto not_elided = [](seen& to) -> task<int> { co_return co_await opaque(refuse)(to); };
  auto named = [](seen& to) -> task<int> {
    auto one = refuse(to);
    co_return co_await std::move(one);
  };
  auto none = [](seen& to) -> task<int> {
    co_await refuse_to_do(to);
    co_return 0;
  };
  int times = 0;
  for (task<int> (*const one)(seen&) : {+elided, +not_elided, +named, +none}) {
    try {
      static_cast<void>(co_await one(variables));
      ADD_FAILURE() << "it failed";
    } catch (const refused& failure) {
      EXPECT_STREQ(failure.what(), "refused");
      EXPECT_EQ(variables.quiet, ++times);  // gone before it was thrown
    }
  }
  EXPECT_EQ(variables.thrown, 0);
}

WEFT_TEST("nothrow: gives a value, nothing, a reference") {
  int object = 3;
  auto number = []() -> task<int> { co_return 7; };
  auto none = []() -> task<> { co_return; };
  auto refers = [&]() -> task<int&> { co_return object; };
  auto owns = []() -> task<std::unique_ptr<int>> {
    co_await weft::yield();
    co_return std::make_unique<int>(5);
  };
  EXPECT_EQ(co_await nothrow(number()), 7);
  co_await nothrow(none());
  EXPECT_EQ(&co_await nothrow(refers()), &object);
  const auto five = co_await nothrow(owns());
  EXPECT_EQ(*five, 5);
  auto named = number();
  auto awaited_later = nothrow(std::move(named));
  EXPECT_EQ(co_await std::move(awaited_later), 7);
  EXPECT_FALSE(named);  // NOLINT(bugprone-use-after-move): it was taken over
}

WEFT_TEST("nothrow: what was thrown further in goes on without a throw") {
  seen variables;
  auto throws = [](seen& to) -> task<int> {
    const variable mine{to};
    throw refused{"thrown"};
    co_return 0;
  };
  const auto how = co_await as_result(through(variables, 3, +throws));
  EXPECT_EQ(what_of(how.exception()), "thrown");
  EXPECT_EQ(variables.thrown, 1);  // in the task that threw
  EXPECT_EQ(variables.quiet, 4);
}

WEFT_TEST("nothrow: passes a failure of what is no task") {
  weft::promise<int> broken;
  broken.set_exception(std::make_exception_ptr(refused{"set"}));
  auto waits = [](weft::future<int> one) -> task<int> { co_return co_await nothrow(std::move(one)); };
  EXPECT_EQ(what_of((co_await as_result(waits(broken.get_future()))).exception()), "set");
}

WEFT_TEST("nothrow: takes a code and an exception_ptr") {
  auto with_code = []() -> task<> { co_await fail_with(std::make_error_code(std::errc::no_buffer_space)); };
  auto with_errc = []() -> task<> { co_await fail_with(weft::errc::closed); };
  auto with_pointer = [](std::exception_ptr one) -> task<> { co_await fail_with(one); };
  EXPECT_EQ((co_await as_result(with_code())).error(), std::errc::no_buffer_space);
  EXPECT_EQ((co_await as_result(with_errc())).error(), weft::errc::closed);
  const auto failure = std::make_exception_ptr(refused{"the same"});
  EXPECT_EQ((co_await as_result(with_pointer(failure))).exception(), failure);
}

TEST(nothrow, sync_wait_and_start_give_the_failure) {
  seen variables;
  EXPECT_THROW(sync_wait(refuse(variables)), refused);
  weft::start(refuse(variables), [](weft::result<int> how) { EXPECT_EQ(what_of(how.exception()), "refused"); });
  EXPECT_EQ(variables.quiet + variables.thrown, 2);
}

WEFT_TEST("nothrow: a guard that the failing task has is given back before others go on") {
  weft::mutex m;
  auto fails_with_it = [](weft::mutex& m) -> task<> {
    auto held = co_await m.lock();
    const refused why{"refused"};
    co_await fail_with(why);
  };
  auto hands_on = [&](weft::mutex& m) -> task<> { co_await nothrow(fails_with_it(m)); };
  EXPECT_FALSE(co_await as_result(hands_on(m)));
  EXPECT_TRUE(m.try_lock());
  try {
    co_await fails_with_it(m);
  } catch (const refused&) {
    EXPECT_TRUE(m.try_lock());
  }
}

WEFT_TEST("nothrow: a sibling gets what the failing one had, and so does whoever has its fork") {
  weft::mutex m;
  auto fails_with_it = [](weft::mutex& m) -> task<> {
    auto held = co_await m.lock();
    co_await weft::yield();
    const refused why{"refused"};
    co_await fail_with(why);
  };
  auto refuses = []() -> task<> {
    co_await weft::yield();
    const refused why{"refused"};
    co_await fail_with(why);
  };
  auto hands_on_with_it = [&](weft::mutex& m) -> task<> {
    auto held = co_await m.lock();
    co_await nothrow(refuses());
  };
  auto locks = [](weft::mutex& m) -> task<> { static_cast<void>(co_await m.lock()); };
  auto both = weft::when_all(fails_with_it(m), locks(m));
  EXPECT_FALSE(co_await as_result(std::move(both)));
  auto others = weft::when_all(hands_on_with_it(m), locks(m));
  EXPECT_FALSE(co_await as_result(std::move(others)));
  auto body = [&](weft::scope& s) -> task<> {
    auto kept = s.fork(fails_with_it(m));
    EXPECT_FALSE(co_await as_result(kept));
    EXPECT_TRUE(m.try_lock());
  };
  EXPECT_FALSE(co_await as_result(weft::with_scope({.on_error = weft::collect_all_errors}, body)));
}

WEFT_TEST("nothrow: a cleanup finds the variables gone, and runs once") {
  seen variables;
  int cleaned = 0;
  auto clean = [](seen& to, int& cleaned) -> task<> {
    EXPECT_EQ(to.quiet + to.thrown, 1);
    ++cleaned;
    co_return;
  };
  auto direct = [&](seen& to) -> task<int> {
    const variable mine{to};
    co_await weft::on_scope_exit(clean(to, cleaned));
    const refused why{"refused"};
    co_await fail_with(why);
    co_return 0;
  };
  EXPECT_EQ(what_of((co_await as_result(direct(variables))).exception()), "refused");
  EXPECT_EQ(cleaned, 1);
  variables = {};
  auto quick = []() -> task<int> {
    const refused why{"refused"};
    co_await fail_with(why);
    co_return 0;
  };
  auto handed_on = [&](seen& to) -> task<int> {
    const variable mine{to};
    co_await weft::on_scope_exit(clean(to, cleaned));
    co_return co_await nothrow(quick());
  };
  EXPECT_EQ(what_of((co_await as_result(handed_on(variables))).exception()), "refused");
  EXPECT_EQ(cleaned, 2);
}

TEST(nothrow, a_task_that_has_hopped_comes_home) {
  weft::new_thread_executor elsewhere;
  seen variables;
  auto hops = [](weft::executor& to, seen& of) -> task<int> {
    const variable mine{of};
    co_await weft::resume_on(to);
    co_return co_await nothrow(refuse(of));
  };
  auto all = [&]() -> task<> {
    const auto here = std::this_thread::get_id();
    const auto how = co_await as_result(hops(elsewhere, variables));
    EXPECT_EQ(what_of(how.exception()), "refused");
    EXPECT_EQ(std::this_thread::get_id(), here);
  };
  sync_wait(all());
  EXPECT_EQ(variables.quiet + variables.thrown, 2);
}

WEFT_TEST("nothrow: a stop passes it as any await") {
  seen variables;
  auto waits = [](seen& to) -> task<int> {
    const variable mine{to};
    co_await weft::sleep_for(1h);
    co_return 0;
  };
  auto outer = [&](seen& to) -> task<int> {
    const variable mine{to};
    co_return co_await nothrow(waits(to));
  };
  EXPECT_EQ((co_await as_result(weft::timeout(0ms, outer(variables)))).error(), weft::errc::timed_out);
  EXPECT_EQ(variables.quiet, 2);
}

WEFT_TEST("nothrow: children of when_all, when_any and scopes fail so") {
  seen variables;
  auto both = weft::when_all(refuse(variables), refuse_later(variables));
  EXPECT_EQ(what_of((co_await as_result(std::move(both))).exception()), "refused");
  auto any = weft::when_any(refuse_later(variables), weft::sleep_for(1h));
  EXPECT_EQ(what_of((co_await as_result(std::move(any))).exception()), "refused");
  auto body = [&](weft::scope& s) -> task<> {
    s.fork(refuse(variables));
    co_await weft::sleep_for(1h);
  };
  EXPECT_EQ(what_of((co_await as_result(weft::with_scope(body))).exception()), "refused");
  auto fails_itself = [&](weft::scope&) -> task<> {
    const refused why{"of the body"};
    co_await fail_with(why);
  };
  EXPECT_EQ(what_of((co_await as_result(weft::with_scope(fails_itself))).exception()), "of the body");
  const weft::shared_task<int> shared{refuse(variables)};
  EXPECT_EQ(what_of((co_await as_result(shared)).exception()), "refused");
  EXPECT_EQ(variables.quiet + variables.thrown, 5);
}

WEFT_TEST("nothrow: a fiber that awaits a task which fails so throws it") {
  seen variables;
  auto in_fiber = [&] { EXPECT_THROW(weft::await(refuse_later(variables)), refused); };
  co_await weft::with_scope([&](weft::scope& s) -> task<> { co_await s.go(in_fiber); });
  EXPECT_EQ(variables.quiet + variables.thrown, 1);
}

TEST(nothrow, a_hundred_thousand_levels_need_no_stack) {
  test::on_small_stack([] {
    seen variables;
    EXPECT_THROW(sync_wait(through(variables, 100'000, refuse)), refused);
    EXPECT_EQ(variables.quiet + variables.thrown, 100'002);
    EXPECT_LE(variables.thrown, 1);  // of the one that sync_wait awaits
  });
}

TEST(nothrow_death, a_failure_has_to_be_one) {
  auto nothing = []() -> task<> { co_await fail_with(std::exception_ptr{}); };
  EXPECT_DEATH(sync_wait(nothing()), "there is no failure to end with");
}

}  // namespace
