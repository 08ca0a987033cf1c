// Who waits for each other, and when nothing is said about it.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>
#include <weft/channel.hpp>
#include <weft/combine.hpp>
#include <weft/fiber.hpp>
#include <weft/future.hpp>
#include <weft/observe.hpp>
#include <weft/pool.hpp>
#include <weft/readiness.hpp>
#include <weft/runtime.hpp>
#include <weft/scope.hpp>
#include <weft/select.hpp>
#include <weft/shared_task.hpp>
#include <weft/sync.hpp>
#include <weft/with.hpp>

#include "support/weft_test.hpp"

namespace {

using namespace std::chrono_literals;
using test::until;
using weft::scope;
using weft::snapshot;
using weft::take_snapshot;
using weft::task;
using weft::task_id;
using weft::with_scope;

using ids = std::set<task_id>;

// The members of the only circle; none: there is none.
ids circle(const snapshot& seen) {
  EXPECT_LE(seen.deadlocks().size(), 1U);
  if (seen.deadlocks().empty()) return {};
  const auto& members = seen.deadlocks()[0].circle;
  return {members.begin(), members.end()};
}

// A task that runs on this thread as far as it can, and is stopped in the end.
class started {
 public:
  template <class F>
  explicit started(F f) {
    start(named(std::move(f)), [this](weft::result<void>) { ended_ = true; }, stop_.token());
  }
  started(const started&) = delete;
  ~started() {
    stop_.request_stop();
    EXPECT_TRUE(ended_);
  }
  task_id id() const { return id_; }

 private:
  template <class F>
  task<> named(F f) {
    id_ = weft::this_task::id();
    co_await f();
  }
  weft::stop_source stop_;
  task_id id_;
  bool ended_ = false;
};

// ---- {mutex, shared_mutex} x {task, fiber, thread} ----------------------------------------------------------------------

enum class as { task, fiber, thread };

// Takes `first`, waits until `both` have one, and then takes `second`.
template <class Mutex>
task<> take_both(Mutex& first, Mutex& second, weft::latch& both, task_id& mine) {
  mine = weft::this_task::id();
  const auto a = co_await first.lock();
  both.count_down();
  co_await both.wait();
  const auto b = co_await second.lock();
}
template <class Mutex>
void take_both_in_fiber(Mutex& first, Mutex& second, weft::latch& both, task_id& mine) {
  mine = weft::this_task::id();
  const auto a = weft::await(first.lock());
  both.count_down();
  weft::await(both.wait());
  const auto b = weft::await(second.lock());
}

template <class Mutex>
void expect_circle_of_two(as what) {
  Mutex one, other;
  weft::latch both{2};
  task_id a, b;
  weft::stop_source stop;
  std::vector<std::thread> threads;
  std::optional<started> holds;
  if (what == as::thread) {
    const auto in_thread = [&](Mutex& first, Mutex& second, task_id& mine) {
      threads.emplace_back([&] {
        static_cast<void>(weft::sync_wait(weft::as_result(take_both(first, second, both, mine)), stop.token()));
      });
    };
    in_thread(one, other, a);
    in_thread(other, one, b);
  } else {
    const auto all = [&](scope& s) -> task<> {
      if (what == as::task) {
        s.fork(take_both(one, other, both, a));
        s.fork(take_both(other, one, both, b));
      } else {
        s.go([&] { take_both_in_fiber(one, other, both, a); });
        s.go([&] { take_both_in_fiber(other, one, both, b); });
      }
      co_return;
    };
    holds.emplace([&]() -> task<> { co_await with_scope(all); });
  }
  snapshot seen = take_snapshot();
  until([&] { return !seen.deadlocks().empty() || (seen = take_snapshot(), false); });
  EXPECT_EQ(circle(seen), (ids{a, b}));
  for (const task_id id : {a, b}) {
    const weft::task_info* its = seen.find(id);
    ASSERT_NE(its, nullptr);
    EXPECT_EQ(its->kind, what == as::task    ? weft::task_kind::fork
                         : what == as::fiber ? weft::task_kind::fiber
                                             : weft::task_kind::thread);
    ASSERT_EQ(its->waits.size(), 1U);
    EXPECT_EQ(its->waits[0].holder, id == a ? b : a);
    EXPECT_FALSE(its->stack.empty());
  }
  std::ostringstream text;
  seen.text(text);
  EXPECT_TRUE(text.str().starts_with("DEADLOCK: ")) << text.str();
  EXPECT_NE(text.str().find(what == as::fiber ? "take_both_in_fiber" : "take_both"), std::string::npos) << text.str();
  stop.request_stop();
  for (std::thread& thread : threads) thread.join();
}

TEST(deadlock, of_two_mutexes_by_tasks) { expect_circle_of_two<weft::mutex>(as::task); }
TEST(deadlock, of_two_mutexes_by_fibers) { expect_circle_of_two<weft::mutex>(as::fiber); }
TEST(deadlock, of_two_mutexes_by_threads) { expect_circle_of_two<weft::mutex>(as::thread); }
TEST(deadlock, of_two_shared_mutexes_by_tasks) { expect_circle_of_two<weft::shared_mutex>(as::task); }
TEST(deadlock, of_two_shared_mutexes_by_fibers) { expect_circle_of_two<weft::shared_mutex>(as::fiber); }
TEST(deadlock, of_two_shared_mutexes_by_threads) { expect_circle_of_two<weft::shared_mutex>(as::thread); }

// ---- waits for children -------------------------------------------------------------------------------------------------

TEST(deadlock, of_a_parent_and_its_children) {
  weft::mutex m;
  const auto locks = [&]() -> task<> { const auto held = co_await m.lock(); };
  {
    started join{[&]() -> task<> {
      const auto held = co_await m.lock();
      co_await when_all(locks(), locks());
    }};
    const ids found = circle(take_snapshot());
    EXPECT_EQ(found.size(), 2U);
    EXPECT_TRUE(found.contains(join.id()));
  }
  {
    const auto forks = [&](scope& s) -> task<> {
      s.fork(locks());
      co_return;
    };
    started in_scope{[&]() -> task<> {
      const auto held = co_await m.lock();
      co_await with_scope(forks);
    }};
    const ids found = circle(take_snapshot());
    EXPECT_EQ(found.size(), 2U);
    EXPECT_TRUE(found.contains(in_scope.id()));
  }
  {
    started race{[&]() -> task<> {
      const auto held = co_await m.lock();
      static_cast<void>(co_await when_any(locks(), locks()));
    }};
    const ids found = circle(take_snapshot());
    EXPECT_EQ(found.size(), 2U) << "no child can end, so none can have the others stopped";
    EXPECT_TRUE(found.contains(race.id()));
  }
  {
    task_id body, fork;
    const auto awaits = [&](scope& s) -> task<> {
      body = weft::this_task::id();
      const auto held = co_await m.lock();
      auto one = s.fork(locks());
      fork = one.id();
      co_await std::move(one);
    };
    started awaits_fork{[&]() -> task<> { co_await with_scope(awaits); }};
    EXPECT_EQ(circle(take_snapshot()), (ids{body, fork}));
  }
}

// Of several circles through the same task it is the same one at each look, although a look turns the list of forks round.
TEST(deadlock, of_a_parent_and_many_forks_is_one_and_the_same) {
  weft::mutex m;
  std::vector<task_id> forks;
  const auto locks = [&]() -> task<> {
    forks.push_back(weft::this_task::id());
    const auto held = co_await m.lock();
  };
  const auto all = [&](scope& s) -> task<> {
    for (int i = 0; i != 40; ++i) s.fork(locks());
    co_return;
  };
  started parent{[&]() -> task<> {
    const auto held = co_await m.lock();
    co_await with_scope(all);
  }};
  for (int i = 0; i != 4; ++i) EXPECT_EQ(circle(take_snapshot()), (ids{parent.id(), forks[0]}));
}

TEST(deadlock, of_once_and_of_a_shared_task) {
  weft::mutex m;
  weft::once once;
  weft::event go_on;
  {
    // One does it, and wants the mutex; the other has the mutex, and waits until it is done.
    const auto locks = [&]() -> task<> { const auto held = co_await m.lock(); };
    started has_mutex{[&]() -> task<> {
      const auto held = co_await m.lock();
      co_await go_on.wait();
      auto nothing = []() -> task<> { co_return; };
      co_await once.call(nothing);
    }};
    started does_it{[&]() -> task<> { co_await once.call(locks); }};
    EXPECT_TRUE(take_snapshot().deadlocks().empty()) << "the event may be set";
    go_on.set();
    EXPECT_EQ(circle(take_snapshot()), (ids{has_mutex.id(), does_it.id()}));
  }
  {
    auto work = [&]() -> task<> { const auto held = co_await m.lock(); };
    weft::shared_task<> shared{work()};
    started awaits{[&]() -> task<> {
      const auto held = co_await m.lock();
      co_await shared;
    }};
    const ids found = circle(take_snapshot());
    EXPECT_EQ(found.size(), 2U);
    EXPECT_TRUE(found.contains(awaits.id()));
  }
}

TEST(deadlock, is_a_shortest_circle_of_many) {
  weft::mutex all[5], apart;
  weft::latch ready{5};
  std::vector<task_id> members(5);
  const auto ring = [&](scope& s) -> task<> {
    for (int i = 0; i != 5; ++i)
      s.fork(take_both(all[i], all[(i + 1) % 5], ready, members[static_cast<std::size_t>(i)]));
    s.fork(
        [&]() -> task<> { const auto held = co_await all[0].lock(); });  // waits for one of them, and is in no circle
    co_return;
  };
  started holds{[&]() -> task<> { co_await with_scope(ring); }};
  const snapshot seen = take_snapshot();
  EXPECT_EQ(circle(seen), (ids{members.begin(), members.end()}));
  const auto& in_order = seen.deadlocks()[0].circle;
  for (std::size_t i = 0; i != 5; ++i)
    EXPECT_EQ(seen.find(in_order[i])->waits[0].holder, in_order[(i + 1) % 5]) << "each waits for the next";
}

// ---- when nothing is said ---------------------------------------------------------------------------------------------------

// Two that wait for each other's mutex, and something that may end the wait of one of them.
void expect_silence(const std::function<task<>(task<>)>& around) {
  weft::mutex one, other;
  weft::latch both{2};
  task_id a, b;
  const auto all = [&](scope& s) -> task<> {
    s.fork(take_both(one, other, both, a));
    s.fork(around(take_both(other, one, both, b)));
    co_return;
  };
  started holds{[&]() -> task<> { co_await with_scope(all); }};
  const snapshot seen = take_snapshot();
  EXPECT_EQ(seen.find(a)->waits.size(), 1U);
  EXPECT_TRUE(seen.deadlocks().empty());
  EXPECT_FALSE(seen.is_stuck());
}

TEST(deadlock, is_not_told_where_something_may_end_it) {
  expect_silence(
      [](task<> work) -> task<> { static_cast<void>(co_await weft::as_result(weft::timeout(1h, std::move(work)))); });
  expect_silence([](task<> work) -> task<> {  // one of the children may win
    static_cast<void>(co_await when_any(std::move(work), weft::sleep_for(1h)));
  });
  expect_silence([](task<> work) -> task<> {
    auto run = [&]() -> task<> { co_await std::move(work); };
    static_cast<void>(co_await weft::as_result(weft::with_deadline(std::chrono::steady_clock::now() + 1h, run)));
  });
  expect_silence([](task<> work) -> task<> {  // whoever has the promise, which may be another thread
    weft::promise<int> later;
    static_cast<void>(co_await when_any(std::move(work), later.get_future()));
  });
}

TEST(deadlock, is_not_told_of_a_holder_that_is_not_known) {
  weft::mutex one, other;
  weft::latch both{2};
  task_id a, b;
  {  // another thread has it
    const auto held = one.try_lock();
    started wants{[&]() -> task<> { const auto mine = co_await one.lock(); }};
    const snapshot seen = take_snapshot();
    EXPECT_TRUE(seen.deadlocks().empty());
    EXPECT_FALSE(seen.find(wants.id())->waits[0].holder);
  }
  const auto moves = [&](weft::mutex& first, weft::mutex& second, task_id& mine) -> task<> {
    mine = weft::this_task::id();
    auto taken = co_await first.lock();
    const auto moved = std::move(taken);  // whoever has it now may be another one
    both.count_down();
    co_await both.wait();
    const auto more = co_await second.lock();
  };
  const auto all = [&](scope& s) -> task<> {
    s.fork(moves(one, other, a));
    s.fork(moves(other, one, b));
    co_return;
  };
  started holds{[&]() -> task<> { co_await with_scope(all); }};
  const snapshot seen = take_snapshot();
  EXPECT_TRUE(seen.deadlocks().empty());
  EXPECT_FALSE(seen.find(a)->waits[0].holder);
}

// Two that take two mutexes in one order, again and again: there is never a circle.
TEST(deadlock, is_not_told_of_what_goes_on) {
  weft::pool p{{.threads = 2}};
  weft::mutex one, other;
  std::atomic<bool> end{false};
  std::thread thread{[&] {
    const auto work = [&]() -> task<> {
      while (!end) {
        const auto a = co_await one.lock();
        const auto b = co_await other.lock();
        co_await weft::yield();
      }
    };
    const auto all = [&](scope& s) -> task<> {
      for (int i = 0; i != 4; ++i) s.fork(work);
      co_return;
    };
    p.run(with_scope(all));
  }};
  for (int i = 0; i != test::rounds(300); ++i) EXPECT_TRUE(take_snapshot().deadlocks().empty());
  end = true;
  thread.join();
}

// ---- hints ------------------------------------------------------------------------------------------------------------------

TEST(deadlock, all_tasks_asleep_is_a_hint) {
  weft::channel<int> c{0};
  weft::semaphore permits{0};
  weft::event event;
  weft::condition_variable changed;
  weft::mutex m;
  const std::vector<std::function<task<>()>> waits{
      [&]() -> task<> { static_cast<void>(co_await c.receive()); },
      [&]() -> task<> { co_await c.send(1); },
      [&]() -> task<> { const auto one = co_await permits.acquire(); },
      [&]() -> task<> { co_await event.wait(); },
      [&]() -> task<> {
        auto held = co_await m.lock();
        co_await changed.wait(held);
      },
  };
  for (const auto& wait : waits) {
    started one{wait};
    EXPECT_TRUE(take_snapshot().is_stuck());
    EXPECT_TRUE(take_snapshot().deadlocks().empty());
    started sleeps{[]() -> task<> { co_await weft::sleep_for(1h); }};
    EXPECT_FALSE(take_snapshot().is_stuck()) << "the clock may have something done";
  }
  EXPECT_FALSE(take_snapshot().is_stuck()) << "nothing waits";
  started chooses{[&]() -> task<> { static_cast<void>(co_await weft::select(weft::on_receive(c), weft::after(1h))); }};
  EXPECT_FALSE(take_snapshot().is_stuck());
}

// A server between two requests is not stuck, on either back end: it is what the world may end.
TEST(deadlock, is_no_hint_where_io_is_pending) {
  for (const weft::io_backend by : {weft::io_backend::automatic, weft::io_backend::epoll}) {
    int ends[2];
    ASSERT_EQ(::pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
    weft::runtime rt{{.threads = 1, .io = by}};
    const auto reads = [&]() -> task<> { co_await weft::net::ready(ends[0], weft::net::readiness::readable); };
    std::thread thread{[&] { rt.run(reads()); }};
    const auto waits_for_io = [] {
      const snapshot seen = take_snapshot();
      EXPECT_FALSE(seen.is_stuck());
      return std::ranges::any_of(seen.tasks, [](const weft::task_info& one) {
        return !one.waits.empty() && std::string_view{one.waits[0].what} == "I/O";
      });
    };
    until(waits_for_io);
    EXPECT_EQ(::write(ends[1], "x", 1), 1);
    thread.join();
    ::close(ends[0]);
    ::close(ends[1]);
  }
}

// Two that wake each other in turn: at any moment one of them does not wait, but a look at all of them takes longer.
TEST(deadlock, tasks_that_wake_each_other_are_not_stuck) {
  weft::pool p{{.threads = 2}};
  weft::channel<int> there{0}, back{0};
  std::atomic<bool> end{false};
  std::thread thread{[&] {
    const auto answers = [&]() -> task<> {
      while (const auto one = co_await there.receive()) co_await back.send(*one);
    };
    const auto asks = [&]() -> task<> {
      while (!end) {
        co_await there.send(1);
        static_cast<void>(co_await back.receive());
      }
      there.close();
    };
    const auto all = [&](scope& s) -> task<> {
      s.fork(answers);
      s.fork(asks);
      co_return;
    };
    p.run(with_scope(all));
  }};
  for (int i = 0; i != test::rounds(3000); ++i) EXPECT_FALSE(take_snapshot({.stacks = false}).is_stuck());
  end = true;
  thread.join();
}

}  // namespace
