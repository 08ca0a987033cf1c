// What destructors see of a stop: this_task::is_ending_stopped().
#include <weft/combine.hpp>
#include <weft/coroutine.hpp>
#include <weft/executor.hpp>
#include <weft/fiber.hpp>
#include <weft/on_scope_exit.hpp>
#include <weft/pool.hpp>
#include <weft/scope.hpp>
#include <weft/with.hpp>

#include <exception>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

#include "support/weft_test.hpp"

namespace {

using test::gate;
using weft::as_result;
using weft::await;
using weft::fork;
using weft::result;
using weft::scope;
using weft::sync_wait;
using weft::task;
using weft::with_scope;
using weft::this_task::is_ending_stopped;

/// Notes, as it goes, whether a stop is why: s, or else n.
struct leaves {
  explicit leaves(std::string& into) noexcept : seen{&into} {}
  leaves(leaves&& other) noexcept : seen{std::exchange(other.seen, nullptr)} {}
  ~leaves() {
    if (seen != nullptr) *seen += is_ending_stopped() ? 's' : 'n';
  }
  std::string* seen;
};

task<> pass(gate& door) { co_await door; }

/// Has `work` wait at `door`, and stopped there.
template <class Work>
task<> stop_at(gate& door, Work& work) {
  auto body = [&](scope& s) -> task<> {
    fork<> one = s.fork(work);
    while (door.waiting() == 0) co_await weft::yield();
    one.request_stop();
    static_cast<void>(co_await as_result(std::move(one)));
  };
  co_await with_scope(body);
}

// ---- tasks --------------------------------------------------------------------------------------------------------------

task<int> below(gate& door, std::string& seen, int depth) {
  const leaves here{seen};
  {
    const leaves block{seen};  // which ends as blocks do
  }
  if (depth != 0) co_return co_await below(door, seen, depth - 1);
  co_await door;
  co_return 1;
}

WEFT_TEST("ending: in each frame that a stop destroys, and in none that ends") {
  gate door;
  std::string seen;
  auto work = [&]() -> task<> { co_await below(door, seen, 2); };
  co_await stop_at(door, work);
  EXPECT_EQ(seen, "nnnsss");
  seen.clear();
  door.open();
  co_await below(door, seen, 1);
  EXPECT_EQ(seen, "nnnn");
  EXPECT_FALSE(is_ending_stopped());
}

WEFT_TEST("ending: a failure is no stop, and what was told and failed is none") {
  gate door;
  std::string seen;
  auto fails = [&]() -> task<> {
    const leaves here{seen};
    auto told = co_await as_result(pass(door));
    if (told.is_stopped()) throw std::runtime_error{"failed"};
  };
  auto caught = [&]() -> task<> { static_cast<void>(co_await as_result(fails())); };
  co_await stop_at(door, caught);
  EXPECT_EQ(seen, "n");
}

WEFT_TEST("ending: the value of a body whose scope was cut short") {
  gate door;
  std::string seen;
  auto body = [&](scope& s) -> task<leaves> {
    s.fork(pass(door));
    co_return leaves{seen};
  };
  auto work = [&]() -> task<> { static_cast<void>(co_await with_scope(body)); };
  co_await stop_at(door, work);
  EXPECT_EQ(seen, "s");
}

WEFT_TEST("ending: children of when_all, when_any and timeout") {
  gate door;
  std::string seen;
  auto work = [&]() -> task<> {
    const leaves here{seen};
    co_await weft::when_all(below(door, seen, 0), weft::timeout(std::chrono::hours{1}, below(door, seen, 0)));
  };
  co_await stop_at(door, work);
  EXPECT_EQ(seen, "nnsss");
  seen.clear();
  auto quick = []() -> task<int> { co_return 1; };
  auto race = [&]() -> task<> {
    const leaves here{seen};
    co_await weft::when_any(below(door, seen, 0), quick());
  };
  co_await race();
  EXPECT_EQ(seen, "nsn");
}

// ---- fibers -------------------------------------------------------------------------------------------------------------

WEFT_TEST("ending: on a fiber's stack, and in the task that it awaits") {
  gate door;
  std::string seen;
  auto deep = [&](auto& self, int depth) -> void {
    const leaves here{seen};
    if (depth == 0)
      await(below(door, seen, 0));
    else
      self(self, depth - 1);
  };
  auto body = [&](scope& s) -> task<> {
    fork<> one = s.go([&] { deep(deep, 1); });
    one.request_stop();
    static_cast<void>(co_await as_result(std::move(one)));
    EXPECT_EQ(seen, "nsss");
    seen.clear();
    auto exits = [&] {
      const leaves here{seen};
      weft::this_fiber::exit();
    };
    fork<> other = s.go(exits);
    static_cast<void>(co_await as_result(std::move(other)));
    EXPECT_EQ(seen, "s");
    seen.clear();
    door.open();
    co_await s.go([&] { deep(deep, 1); });
    EXPECT_EQ(seen, "nnnn");
  };
  co_await with_scope(body);
}

// A stop that was swallowed is none any more, until it is thrown again.
WEFT_TEST("ending: a fiber that swallows its stop, and fails") {
  gate door;
  std::string seen;
  auto swallows = [&] {
    const leaves all{seen};
    try {
      const leaves here{seen};
      await(door.pass());
    } catch (const weft::stopped&) {
      const leaves handler{seen};
    }
    {
      const leaves here{seen};
    }
    try {
      const leaves here{seen};
      throw std::runtime_error{"failed"};
    } catch (const std::runtime_error&) {
    }
    const leaves here{seen};
    await(door.pass());
  };
  auto body = [&](scope& s) -> task<> {
    fork<> one = s.go(swallows);
    one.request_stop();
    static_cast<void>(co_await as_result(std::move(one)));
  };
  co_await with_scope(body);
  EXPECT_EQ(seen, "snnnss");
}

// ---- cleanup ------------------------------------------------------------------------------------------------------------

WEFT_TEST("ending: not in a cleanup, but in what a stop destroys behind it") {
  for (const bool stopped : {true, false}) {
    gate door;
    std::string seen;
    auto cleanup = [](std::string& into) -> task<> {
      const leaves here{into};
      co_await weft::yield();
    };
    auto inner = [&]() -> task<> {
      const leaves here{seen};
      co_await weft::on_scope_exit(cleanup, std::ref(seen));
      co_await door;
    };
    auto work = [&]() -> task<> {
      const leaves here{seen};
      co_await inner();
    };
    if (!stopped) door.open();
    if (stopped)
      co_await stop_at(door, work);
    else
      co_await work();
    EXPECT_EQ(seen, stopped ? "sns" : "nnn");
  }
}

// ---- other work that a destructor starts ----------------------------------------------------------------------------------

/// Runs `f` as it goes, between two looks.
template <class F>
struct does {
  F f;
  std::string& seen;
  ~does() {
    seen += is_ending_stopped() ? 's' : 'n';
    f();
    seen += is_ending_stopped() ? 's' : 'n';
  }
};
template <class F>
does(F, std::string&) -> does<F>;

WEFT_TEST("ending: not in other work that a destructor starts or goes on with") {
  gate door, other, third;
  std::string seen;
  weft::manual_executor loop;
  auto rest = [&](gate& at) -> task<> {
    const leaves here{seen};
    co_await at;
    seen += is_ending_stopped() ? 's' : 'n';
  };
  weft::start(rest(other), [&](const result<void>&) { seen += is_ending_stopped() ? 'S' : 'N'; });
  weft::stop_source source;
  weft::start(rest(third), [](const result<void>&) {}, source.token());
  weft::start(loop, rest(other), [](const result<void>&) {});
  auto fine = [&] {
    other.open();  // the first goes on here
    loop.run_all();
    seen += '|';
    source.request_stop();  // and this one ends here, stopped
    seen += '|';
    auto at_once = [&]() -> task<> {
      const leaves here{seen};
      co_return;
    };
    weft::start(at_once(), [](const result<void>&) {});
    std::thread{[&] { sync_wait(at_once()); }}.join();
  };
  loop.run_all();
  auto work = [&]() -> task<> {
    const does here{fine, seen};
    co_await door;
  };
  co_await stop_at(door, work);
  EXPECT_EQ(seen, "snnNnn|s|nns");
}

WEFT_TEST("ending: not in forks that a destructor makes") {
  gate door;
  std::string seen;
  auto outer = [&](scope& s) -> task<> {
    auto forks = [&] {
      s.fork([&]() -> task<> {
        const leaves here{seen};
        co_return;
      });
      s.go([&] { const leaves here{seen}; });
    };
    auto work = [&]() -> task<> {
      const does here{forks, seen};
      co_await door;
    };
    co_await stop_at(door, work);
  };
  co_await with_scope(outer);
  EXPECT_EQ(seen, "snns");
}

// ---- coroutines by hand -----------------------------------------------------------------------------------------------------

TEST(ending, of_a_coroutine_that_is_destroyed_half_way) {
  std::string seen;
  const auto make = [&](bool swallows) {
    return weft::coroutine<int()>{[&, swallows](auto& yield) -> int {
      const leaves all{seen};
      try {
        const leaves here{seen};
        yield(1);
      } catch (const weft::stopped&) {
        if (!swallows) throw;
      }
      const leaves here{seen};
      return 2;
    }};
  };
  {
    auto one = make(false);
    one.resume();
  }
  EXPECT_EQ(seen, "ss");
  seen.clear();
  {
    auto one = make(true);
    one.resume();
  }
  EXPECT_EQ(seen, "snn");
  seen.clear();
  {
    auto one = make(false);
    one.resume();
    one.resume();
  }
  EXPECT_EQ(seen, "nnn");
  EXPECT_FALSE(is_ending_stopped());
}

WEFT_TEST("ending: of a coroutine that a stopped task or fiber has") {
  gate door;
  std::string seen;
  auto holds = [&] {
    auto one = std::make_unique<weft::coroutine<int()>>([&](auto& yield) -> int {
      const leaves here{seen};
      yield(1);
      return 2;
    });
    one->resume();
    return one;
  };
  auto work = [&]() -> task<> {
    const leaves here{seen};
    const auto one = holds();
    const leaves before{seen};
    co_await door;
  };
  co_await stop_at(door, work);
  EXPECT_EQ(seen, "sss");
  seen.clear();
  auto in_fiber = [&] {
    const leaves here{seen};
    {
      const auto one = holds();  // which goes half-way; the fiber goes on, and the exception alone says it there
    }
    await(door.pass());
  };
  auto body = [&](scope& s) -> task<> {
    fork<> one = s.go(in_fiber);
    one.request_stop();
    static_cast<void>(co_await as_result(std::move(one)));
  };
  co_await with_scope(body);
  EXPECT_EQ(seen, "ns");
}

// ---- a guard --------------------------------------------------------------------------------------------------------------

/// As in the book.
class transaction {
 public:
  explicit transaction(std::string& how) noexcept : how_{how} {}
  transaction(const transaction&) = delete;
  ~transaction() {
    const bool unfinished = std::uncaught_exceptions() > before_ || is_ending_stopped();
    how_ = unfinished ? "rolled back" : "committed";
  }

 private:
  std::string& how_;
  int before_ = std::uncaught_exceptions();
};

task<> guarded() {
  for (const int end : {0, 1, 2})
    for (const bool fiber : {false, true}) {
      gate door;
      std::string how;
      auto work = [&]() -> task<> {
        const transaction here{how};
        co_await door;
        if (end == 1) throw std::runtime_error{"failed"};
      };
      auto in_fiber = [&] {
        const transaction here{how};
        await(door.pass());
        if (end == 1) throw std::runtime_error{"failed"};
      };
      auto body = [&](scope& s) -> task<> {
        fork<> one = fiber ? s.go(in_fiber) : s.fork(work);
        while (door.waiting() == 0) co_await weft::yield();
        if (end == 2)
          one.request_stop();
        else
          door.open();
        static_cast<void>(co_await as_result(std::move(one)));
      };
      static_cast<void>(co_await as_result(with_scope(body)));
      EXPECT_EQ(how, end == 0 ? "committed" : "rolled back") << end << fiber;
    }
}

TEST(ending, a_guard_commits_what_was_finished_and_nothing_else) {
  sync_wait(guarded());
  weft::pool threads{{.threads = 2}};
  threads.run(guarded());
  EXPECT_FALSE(is_ending_stopped());
}

}  // namespace
