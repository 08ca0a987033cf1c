// What is awaited under a name gives back the frames that it owns, and with them the arguments of its tasks, where the
// expression ends that awaits it, as what is awaited without one.
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>
#include <weft/combine.hpp>
#include <weft/executor.hpp>
#include <weft/fiber.hpp>
#include <weft/future.hpp>
#include <weft/scope.hpp>
#include <weft/shared_task.hpp>
#include <weft/sync.hpp>
#include <weft/task.hpp>

#include "support/weft_test.hpp"

namespace {

using namespace std::chrono_literals;
using test::counted;
using weft::as_result;
using weft::sync_wait;
using weft::task;

std::atomic<int> alive;

task<> holds(counted) { co_return; }
task<int> gives(counted, int value) { co_return value; }
task<int&> refers(counted, int& object) { co_return object; }
task<int> fails(counted) {
  throw std::runtime_error{"refused"};
  co_return 0;
}
task<int> waits(counted, int value) {
  co_await weft::yield();
  co_return value;
}
// The compiler can't see what it calls, and so does not place the frame in the caller's.
template <class Function>
Function* opaque(Function* function) {
  Function* volatile hidden = function;
  return hidden;
}

WEFT_TEST("named_task: its arguments go when it was awaited") {
  int object = 1;
  auto none = holds(counted{alive});
  auto value = gives(counted{alive}, 7);
  auto reference = refers(counted{alive}, object);
  auto waiting = waits(counted{alive}, 8);
  auto hidden = opaque(gives)(counted{alive}, 9);
  EXPECT_EQ(alive, 5);
  co_await std::move(none);
  EXPECT_EQ(alive, 4);
  EXPECT_EQ(co_await std::move(value), 7);
  EXPECT_EQ(alive, 3);
  EXPECT_EQ(&co_await std::move(reference), &object);
  EXPECT_EQ(alive, 2);
  EXPECT_EQ(co_await std::move(waiting), 8);
  EXPECT_EQ(alive, 1);
  EXPECT_EQ(co_await std::move(hidden), 9);
  EXPECT_EQ(alive, 0);
  EXPECT_FALSE(value);  // NOLINT(bugprone-use-after-move): nothing is left to await
}

WEFT_TEST("named_task: its arguments go when it has failed") {
  auto one = fails(counted{alive});
  try {
    static_cast<void>(co_await std::move(one));
    ADD_FAILURE() << "it failed";
  } catch (const std::runtime_error&) {
    EXPECT_EQ(alive, 0);
  }
}

WEFT_TEST("named_task: its arguments go when a stop has ended it") {
  auto ends = [](counted) -> task<> { co_await weft::sleep_for(1h); };
  auto one = ends(counted{alive});
  auto limited = weft::timeout(0ms, std::move(one));
  EXPECT_EQ((co_await as_result(std::move(limited))).error(), weft::errc::timed_out);
  EXPECT_EQ(alive, 0);
}

WEFT_TEST("named_task: a lock that it was given is free behind the await") {
  weft::mutex m;
  auto keeps = [](weft::mutex::guard) -> task<> { co_return; };
  auto first = keeps(co_await m.lock());
  EXPECT_FALSE(m.try_lock());
  co_await std::move(first);
  EXPECT_TRUE(m.try_lock());
}

WEFT_TEST("named_task: what it gives may refer to its arguments until the expression ends") {
  auto same = [](std::string text) -> task<std::string_view> { co_return text; };
  auto one = same("a text that needs memory of its own");
  EXPECT_EQ(std::string(co_await std::move(one)), "a text that needs memory of its own");
  EXPECT_EQ(std::string(co_await same("another one that needs memory")), "another one that needs memory");
}

WEFT_TEST("named_task: one in a container, a member or behind a reference, too") {
  std::vector<task<int>> several;
  for (int i = 0; i != 3; ++i) several.push_back(gives(counted{alive}, i));
  int left = 3;
  for (auto& one : several) {
    static_cast<void>(co_await std::move(one));
    EXPECT_EQ(alive, --left);
  }
}

WEFT_TEST("named_task: one that another function awaits by reference") {
  auto outer = [](task<int>&& one) -> task<int> {
    const int value = co_await std::move(one);
    EXPECT_EQ(alive, 0);
    co_return value;
  };
  auto one = gives(counted{alive}, 5);
  EXPECT_EQ(co_await outer(std::move(one)), 5);
}

TEST(named_task, its_arguments_go_with_sync_wait_and_start) {
  auto one = gives(counted{alive}, 1);
  EXPECT_EQ(sync_wait(std::move(one)), 1);
  EXPECT_EQ(alive, 0);
  auto other = gives(counted{alive}, 2);
  weft::start(std::move(other), [](weft::result<int> how) {
    EXPECT_EQ(*how, 2);
    EXPECT_EQ(alive, 0);
  });
}

WEFT_TEST("named_task: its arguments go with as_result and the adaptors") {
  auto one = gives(counted{alive}, 1);
  EXPECT_EQ(*co_await as_result(std::move(one)), 1);
  EXPECT_EQ(alive, 0);

  auto seen = [](int value) { return alive == 0 ? value : -1; };
  auto two = gives(counted{alive}, 2);
  EXPECT_EQ(co_await (std::move(two) | weft::then(seen)), 2);
  auto three = gives(counted{alive}, 3);
  auto mapped = std::move(three) | weft::on_value(seen);
  EXPECT_EQ(co_await std::move(mapped), 3);
  EXPECT_EQ(alive, 0);
  auto four = fails(counted{alive});
  auto handled = std::move(four) | weft::on_error([](std::exception_ptr) { return alive == 0 ? 4 : -1; });
  EXPECT_EQ(co_await std::move(handled), 4);
  EXPECT_EQ(alive, 0);
}

WEFT_TEST("named_task: its arguments go with the hops") {
  weft::inline_executor ex;
  auto one = gives(counted{alive}, 1);
  auto elsewhere = weft::start_on(ex, std::move(one));
  EXPECT_EQ(co_await std::move(elsewhere), 1);
  EXPECT_EQ(alive, 0);
  auto two = gives(counted{alive}, 2);
  auto back = std::move(two) | weft::continue_on(ex);
  EXPECT_EQ(co_await std::move(back), 2);
  EXPECT_EQ(alive, 0);
}

WEFT_TEST("named_task: when_all gives back its children's frames behind the await") {
  auto both = weft::when_all(gives(counted{alive}, 1), waits(counted{alive}, 2));
  EXPECT_EQ(co_await std::move(both), std::tuple(1, 2));
  EXPECT_EQ(alive, 0);

  for (const int how_many : {2, 40}) {  // results stay in the frames of a few only
    const auto made = [how_many] {
      std::vector<task<int>> tasks;
      for (int i = 0; i != how_many; ++i) tasks.push_back(gives(counted{alive}, i));
      return tasks;
    };
    auto range = weft::when_all(made());
    EXPECT_EQ((co_await std::move(range)).size(), std::size_t(how_many));
    EXPECT_EQ(alive, 0);
    std::vector<int> out(std::size_t(how_many), -1);
    auto into = weft::when_all(made(), out.begin());
    co_await std::move(into);
    EXPECT_EQ(alive, 0);
    EXPECT_EQ(out.back(), how_many - 1);
    auto nowhere = weft::when_all(made(), std::ignore);
    co_await std::move(nowhere);
    EXPECT_EQ(alive, 0);
  }
  auto counting = weft::when_all(3, [](std::size_t i) { return gives(counted{alive}, int(i)); });
  EXPECT_EQ((co_await std::move(counting)).size(), 3u);
  EXPECT_EQ(alive, 0);
}

WEFT_TEST("named_task: the races give back their children's frames behind the await") {
  auto any = weft::when_any(gives(counted{alive}, 1), waits(counted{alive}, 2));
  EXPECT_EQ((co_await std::move(any)).index, 0u);
  EXPECT_EQ(alive, 0);
  std::vector<task<int>> tasks;
  for (int i = 0; i != 3; ++i) tasks.push_back(waits(counted{alive}, i));
  auto some = weft::when_some(2, std::move(tasks));
  EXPECT_EQ((co_await std::move(some)).size(), 2u);
  EXPECT_EQ(alive, 0);
  auto limited = weft::timeout(1h, waits(counted{alive}, 3));
  EXPECT_EQ(co_await std::move(limited), 3);
  EXPECT_EQ(alive, 0);
}

#if defined(__clang__)  // g++ copies what is awaited as an lvalue, and says that it can't
WEFT_TEST("named_task: a when_all that is awaited as an lvalue keeps them until it goes") {
  {
    auto both = weft::when_all(gives(counted{alive}, 1), waits(counted{alive}, 2));
    EXPECT_EQ(co_await both, std::tuple(1, 2));
  }
  EXPECT_EQ(alive, 0);
}
#endif

WEFT_TEST("named_task: a fork's arguments go where it is awaited as an rvalue, or dropped") {
  co_await weft::with_scope([](weft::scope& s) -> task<> {
    auto one = gives(counted{alive}, 1);
    auto first = s.fork(std::move(one));
    auto second = s.fork(waits(counted{alive}, 2));
    EXPECT_EQ(co_await std::move(first), 1);
    EXPECT_EQ(co_await std::move(second), 2);
    EXPECT_EQ(alive, 0);
    auto kept = s.fork(gives(counted{alive}, 3));
    EXPECT_EQ(co_await kept, 3);
    EXPECT_EQ(alive, 1);  // its frame has the value
    kept = {};
    EXPECT_EQ(alive, 0);
  });
}

WEFT_TEST("named_task: a fiber that awaits it") {
  auto in_fiber = [] {
    int object = 1;
    auto one = gives(counted{alive}, 4);
    auto two = weft::when_all(waits(counted{alive}, 5), gives(counted{alive}, 6));
    auto three = refers(counted{alive}, object);
    auto four = fails(counted{alive});
    EXPECT_EQ(weft::await(std::move(one)), 4);
    EXPECT_EQ(alive, 4);
    EXPECT_EQ(weft::await(std::move(two)), std::tuple(5, 6));
    EXPECT_EQ(alive, 2);
    EXPECT_EQ(&weft::await(std::move(three)), &object);
    EXPECT_EQ(alive, 1);
    EXPECT_THROW(weft::await(std::move(four)), std::runtime_error);
    EXPECT_EQ(alive, 0);
  };
  co_await weft::with_scope([&](weft::scope& s) -> task<> { co_await s.go(in_fiber); });
}

WEFT_TEST("named_task: a shared task's arguments go when it has ended") {
  const weft::shared_task<int> one{waits(counted{alive}, 1)};
  const auto other = one;
  EXPECT_EQ(co_await one, 1);
  EXPECT_EQ(alive, 0);
  EXPECT_EQ(co_await other, 1);
  const weft::shared_task<int> refused{fails(counted{alive})};
  EXPECT_FALSE(co_await as_result(refused));
  EXPECT_EQ(alive, 0);
  {
    [[maybe_unused]] const weft::shared_task<int> unawaited{gives(counted{alive}, 2)};
  }
  EXPECT_EQ(alive, 0);
}

WEFT_TEST("named_task: what follows a future by a task gives back its frame") {
  auto following = weft::make_ready_future(1).then([](int value) { return gives(counted{alive}, value); });
  EXPECT_TRUE(following.is_ready());
  EXPECT_EQ(alive, 0);
  EXPECT_EQ(co_await std::move(following), 1);
}

}  // namespace
