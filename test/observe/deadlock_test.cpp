// Who waits for each other, and when nothing is said about it.
// Long because each primitive has its way into a deadlock, by tasks and by fibers.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <list>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>
#include <weft/async_generator.hpp>
#include <weft/blocking.hpp>
#include <weft/broadcast.hpp>
#include <weft/channel.hpp>
#include <weft/combine.hpp>
#include <weft/fiber.hpp>
#include <weft/fork.hpp>
#include <weft/from_callback.hpp>
#include <weft/future.hpp>
#include <weft/merge.hpp>
#include <weft/observe.hpp>
#include <weft/pool.hpp>
#include <weft/readiness.hpp>
#include <weft/registry.hpp>
#include <weft/runtime.hpp>
#include <weft/scope.hpp>
#include <weft/select.hpp>
#include <weft/sequence.hpp>
#include <weft/shared_task.hpp>
#include <weft/sync.hpp>
#include <weft/watch.hpp>
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

// Takes `first`, waits until `both` have one, and then takes `second`.
template <class Mutex>
task<> take_both(Mutex& first, Mutex& second, weft::latch& both, task_id& mine) {
  mine = weft::this_task::id();
  const auto a = co_await first.lock();
  both.count_down();
  co_await both.wait();
  const auto b = co_await second.lock();
}

// ---- {mutex, shared_mutex, join, once, shared_task} x {task, fiber, thread} x {nothing, a timeout, a deadline} -------------
//
// Two that wait for each other. Each runs as the cell says, but for:
//   - what is below a join: a child of a when_all or when_any is never a fiber, nor a thread of its own; a fork is never a
//     thread of its own, so where the parent is a thread, it is a task of that thread;
//   - the work of a shared task, which is a root of its own kind, whoever awaits it.

enum class over { mutex, shared_mutex, when_all, when_any, with_scope, fork, once, shared_task };
enum class as { task, fiber, thread };
enum class in_force { nothing, timeout, deadline };
enum class on { first, other };

task<> run_under(in_force what, std::function<task<>()> work) {
  switch (what) {
    case in_force::nothing: co_await work(); break;
    case in_force::timeout: static_cast<void>(co_await weft::as_result(weft::timeout(1h, work()))); break;
    case in_force::deadline: static_cast<void>(co_await weft::as_result(weft::with_deadline(1h, work))); break;
  }
}
task<> run_fiber_under(in_force what, std::function<void()> work) {
  const weft::scope_options options = what == in_force::deadline
                                          ? weft::scope_options{.deadline = std::chrono::steady_clock::now() + 1h}
                                          : weft::scope_options{};
  const auto all = [&](scope& s) -> task<> {
    s.go(work);
    co_return;
  };
  if (what == in_force::timeout)
    static_cast<void>(co_await weft::as_result(weft::timeout(1h, with_scope(all))));
  else
    static_cast<void>(co_await weft::as_result(with_scope(options, all)));
}

class circle_of_two {
 public:
  circle_of_two(over what, as runs, in_force end, on whom)
      : what_{what},
        runs_{runs},
        of_first_{whom == on::first ? end : in_force::nothing},
        of_other_{whom == on::other ? end : in_force::nothing} {
    switch (what) {
      case over::mutex: begin_with(m_, n_); break;
      case over::shared_mutex: begin_with(shared_m_, shared_n_); break;
      case over::when_all:
      case over::when_any:
      case over::with_scope:
        begin(of_first_, [this] { return holds_and_joins(); }, [this] { holds_and_joins_in_fiber(); });
        break;
      case over::fork: begin_fork(); break;
      case over::once:
        begin(of_first_, [this] { return does_it_once(); }, [this] { does_it_once_in_fiber(); });
        begin(of_other_, [this] { return waits_until_it_is_done(); }, [this] { waits_until_it_is_done_in_fiber(); });
        break;
      case over::shared_task:
        shared_.emplace(run_under(of_other_, [this] { return locks(); }));
        begin(of_first_, [this] { return awaits_shared(); }, [this] { awaits_shared_in_fiber(); });
        break;
    }
    until([this] { return known_ == 2; });
  }
  circle_of_two(const circle_of_two&) = delete;
  ~circle_of_two() {
    view_ = {};  // the fork ends when the mutex is free
    tasks_.clear();
    stop_.request_stop();
    for (std::thread& one : threads_) one.join();
    scope_.reset();
  }

  task_id first() const { return first_; }
  task_id other(const snapshot& in) const {
    if (!is_known_by_parent()) return other_;
    // Both children wait, and either is in a circle with their parent.
    const auto is_below = [this, found = circle(in)](const weft::task_info& one) {
      return one.parent == first_ && (found.empty() || found.contains(one.id));
    };
    const auto found = std::ranges::find_if(in.tasks, is_below);
    return found != in.tasks.end() ? found->id : task_id{};
  }
  weft::task_kind kind_of_first() const { return kind(); }
  weft::task_kind kind_of_other() const {
    switch (what_) {
      case over::when_all:
      case over::when_any: return weft::task_kind::child;
      case over::with_scope:
      case over::fork: return runs_ == as::fiber ? weft::task_kind::fiber : weft::task_kind::fork;
      case over::shared_task: return weft::task_kind::shared_task;
      default: return kind();
    }
  }
  const char* first_waits_for() const {
    switch (what_) {
      case over::shared_mutex: return "shared_mutex";
      case over::when_all: return "children of a when_all";
      case over::when_any: return "children of a when_any or the like";
      case over::with_scope: return "children of a scope";
      case over::fork: return "fork";
      case over::shared_task: return "shared_task";
      default: return "mutex";
    }
  }
  const char* other_waits_for() const {
    return what_ == over::shared_mutex ? "shared_mutex" : what_ == over::once ? "once" : "mutex";
  }
  bool waits_for_children() const {
    return what_ == over::when_all || what_ == over::when_any || what_ == over::with_scope;
  }
  // Which is on the stack of one of them.
  const char* function() const {
    switch (what_) {
      case over::mutex:
      case over::shared_mutex: return runs_ == as::fiber ? "take_both_in_fiber" : "take_both";
      case over::once: return runs_ == as::fiber ? "waits_until_it_is_done_in_fiber" : "waits_until_it_is_done";
      case over::fork: return runs_ == as::fiber ? "awaits_fork_in_fiber" : "awaits_fork";
      case over::shared_task: return runs_ == as::fiber ? "awaits_shared_in_fiber" : "awaits_shared";
      default: return runs_ == as::fiber ? "holds_and_joins_in_fiber" : "holds_and_joins";
    }
  }

 private:
  weft::task_kind kind() const {
    return runs_ == as::task    ? weft::task_kind::task
           : runs_ == as::fiber ? weft::task_kind::fiber
                                : weft::task_kind::thread;
  }
  // A child of a when_all is a part of its parent until it waits.
  bool is_known_by_parent() const { return what_ == over::when_all && of_other_ == in_force::nothing; }
  void is(task_id& one) {
    one = weft::this_task::id();
    ++known_;
  }

  void begin(in_force what, std::function<task<>()> in_task, std::function<void()> in_fiber) {
    switch (runs_) {
      case as::task: tasks_.emplace_back([=] { return run_under(what, in_task); }); break;
      case as::fiber: tasks_.emplace_back([=] { return run_fiber_under(what, in_fiber); }); break;
      case as::thread:
        threads_.emplace_back([=, this] {
          static_cast<void>(weft::sync_wait(weft::as_result(run_under(what, in_task)), stop_.token()));
        });
    }
  }

  template <class Mutex>
  void begin_with(Mutex& one, Mutex& two) {
    begin(
        of_first_, [&, this] { return take_both(one, two, first_); },
        [&, this] { take_both_in_fiber(one, two, first_); });
    begin(
        of_other_, [&, this] { return take_both(two, one, other_); },
        [&, this] { take_both_in_fiber(two, one, other_); });
  }
  template <class Mutex>
  task<> take_both(Mutex& one, Mutex& two, task_id& mine) {
    is(mine);
    const auto a = co_await one.lock();
    co_await both_.arrive_and_wait();
    const auto b = co_await two.lock();
  }
  template <class Mutex>
  void take_both_in_fiber(Mutex& one, Mutex& two, task_id& mine) {
    is(mine);
    const auto a = weft::await(one.lock());
    weft::await(both_.arrive_and_wait());
    const auto b = weft::await(two.lock());
  }

  task<> locks() {
    // Of two children, the first. One that is a part of its parent is told the parent's id: see other().
    if (!other_) is(other_);
    const auto held = co_await m_.lock();
  }
  void locks_in_fiber() {
    is(other_);
    const auto held = weft::await(m_.lock());
  }
  task<> child() {
    return run_under(of_other_, [this] { return locks(); });
  }
  task<> join() {
    if (what_ == over::when_all) {
      co_await when_all(child(), child());
    } else if (what_ == over::when_any) {
      static_cast<void>(co_await when_any(child(), child()));
    } else {
      const auto forks = [this](scope& s) -> task<> {
        if (runs_ != as::fiber)
          s.fork(child());
        else if (of_other_ == in_force::nothing)
          s.go([this] { locks_in_fiber(); });
        else
          s.fork(run_fiber_under(of_other_, [this] { locks_in_fiber(); }));
        co_return;
      };
      co_await with_scope(forks);
    }
  }
  task<> holds_and_joins() {
    is(first_);
    const auto held = co_await m_.lock();
    co_await join();
  }
  void holds_and_joins_in_fiber() {
    is(first_);
    const auto held = weft::await(m_.lock());
    weft::await(join());
  }

  // The fork is of another scope: so whoever awaits it may be anything.
  void begin_fork() {
    const auto forks = [this](scope& s) -> task<> {
      auto waits_and_locks = [this]() -> task<> {
        co_await holds_.wait();
        co_await locks();
      };
      auto in_fiber = [this] {
        weft::await(holds_.wait());
        locks_in_fiber();
      };
      if (runs_ == as::fiber && of_other_ == in_force::nothing)
        view_ = s.go(in_fiber).view();
      else if (runs_ == as::fiber)
        view_ = s.fork(run_fiber_under(of_other_, in_fiber)).view();
      else
        view_ = s.fork(run_under(of_other_, waits_and_locks)).view();
      co_return;
    };
    scope_.emplace([=] { return with_scope(forks); });
    begin(of_first_, [this] { return awaits_fork(); }, [this] { awaits_fork_in_fiber(); });
  }
  task<> awaits_fork() {
    is(first_);
    const auto held = co_await m_.lock();
    holds_.set();
    const weft::fork_view<> fork = view_;
    co_await fork;
  }
  void awaits_fork_in_fiber() {
    is(first_);
    const auto held = weft::await(m_.lock());
    holds_.set();
    const weft::fork_view<> fork = view_;
    weft::await(fork);
  }

  // The one that does it wants the mutex; the other has the mutex, and waits until it is done.
  task<> does_it_once() {
    is(first_);
    co_await once_.call([this] { return arrives_and_locks(); });
  }
  void does_it_once_in_fiber() {
    is(first_);
    weft::await(once_.call([this] { return arrives_and_locks(); }));
  }
  task<> arrives_and_locks() {
    co_await both_.arrive_and_wait();
    const auto held = co_await m_.lock();
  }
  task<> waits_until_it_is_done() {
    is(other_);
    const auto held = co_await m_.lock();
    co_await both_.arrive_and_wait();
    co_await once_.call([] {});
  }
  void waits_until_it_is_done_in_fiber() {
    is(other_);
    const auto held = weft::await(m_.lock());
    weft::await(both_.arrive_and_wait());
    weft::await(once_.call([] {}));
  }

  task<> awaits_shared() {
    is(first_);
    const auto held = co_await m_.lock();
    co_await *shared_;
  }
  void awaits_shared_in_fiber() {
    is(first_);
    const auto held = weft::await(m_.lock());
    weft::await(*shared_);
  }

  const over what_;
  const as runs_;
  const in_force of_first_, of_other_;
  weft::mutex m_, n_;
  weft::shared_mutex shared_m_, shared_n_;
  weft::once once_;
  weft::latch both_{2};
  weft::event holds_;
  std::optional<weft::shared_task<>> shared_;
  weft::fork_view<> view_;
  task_id first_, other_;
  std::atomic<int> known_{0};  // ids
  weft::stop_source stop_;
  std::optional<started> scope_;
  std::list<started> tasks_;
  std::vector<std::thread> threads_;
};

using two = std::tuple<over, as>;
std::string name_of(const testing::TestParamInfo<two>& info) {
  constexpr const char* overs[] = {"mutexes", "shared_mutexes", "a_when_all", "a_when_any",
                                   "a_scope", "a_fork",         "a_once",     "a_shared_task"};
  constexpr const char* runs[] = {"tasks", "fibers", "threads"};
  return std::string{overs[static_cast<int>(std::get<0>(info.param))]} + "_by_" +
         runs[static_cast<int>(std::get<1>(info.param))];
}
class deadlock_of_two : public testing::TestWithParam<two> {};
INSTANTIATE_TEST_SUITE_P(over, deadlock_of_two,
                         testing::Combine(testing::Values(over::mutex, over::shared_mutex, over::when_all,
                                                          over::when_any, over::with_scope, over::fork, over::once,
                                                          over::shared_task),
                                          testing::Values(as::task, as::fiber, as::thread)),
                         name_of);

TEST_P(deadlock_of_two, is_found_and_named) {
  const circle_of_two those{std::get<0>(GetParam()), std::get<1>(GetParam()), in_force::nothing, on::first};
  snapshot seen = take_snapshot();
  // The first one may still run to the end of its scope's body, and has no stack then.
  const auto both_wait = [&] {
    const weft::task_info* const first = seen.find(those.first());
    return !seen.deadlocks().empty() && first != nullptr && !first->stack.empty();
  };
  until([&] { return both_wait() || (seen = take_snapshot(), false); });
  EXPECT_EQ(circle(seen), (ids{those.first(), those.other(seen)}));
  const weft::task_info *const first = seen.find(those.first()), *const other = seen.find(those.other(seen));
  ASSERT_TRUE(first != nullptr && other != nullptr);
  EXPECT_EQ(first->kind, those.kind_of_first());
  EXPECT_EQ(other->kind, those.kind_of_other());
  ASSERT_EQ(first->waits.size(), 1U);
  ASSERT_EQ(other->waits.size(), 1U);
  EXPECT_STREQ(first->waits[0].what, those.first_waits_for());
  EXPECT_STREQ(other->waits[0].what, those.other_waits_for());
  EXPECT_EQ(first->waits[0].holder, those.waits_for_children() ? task_id{} : those.other(seen));
  EXPECT_EQ(other->waits[0].holder, those.first());
  EXPECT_FALSE(first->stack.empty());
  EXPECT_FALSE(other->stack.empty());
  std::ostringstream text;
  seen.text(text);
  EXPECT_TRUE(text.str().starts_with("DEADLOCK: ")) << text.str();
  for (const char* part : {those.function(), those.first_waits_for(), those.other_waits_for()})
    EXPECT_NE(text.str().find(part), std::string::npos) << part << " in " << text.str();
}

TEST_P(deadlock_of_two, is_not_told_where_a_timeout_or_a_deadline_is_in_force) {
  for (const in_force end : {in_force::timeout, in_force::deadline})
    for (const on whom : {on::first, on::other}) {
      const circle_of_two those{std::get<0>(GetParam()), std::get<1>(GetParam()), end, whom};
      const auto waits = [](const weft::task_info* one, std::string_view what) {
        return one != nullptr && one->waits.size() == 1 && one->waits[0].what == what;
      };
      snapshot seen = take_snapshot();
      until([&] {
        return (waits(seen.find(those.first()), those.first_waits_for()) &&
                waits(seen.find(those.other(seen)), those.other_waits_for())) ||
               (seen = take_snapshot(), false);
      });
      EXPECT_TRUE(seen.deadlocks().empty()) << static_cast<int>(end) << ' ' << static_cast<int>(whom);
      EXPECT_FALSE(seen.is_stuck());
    }
}

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

TEST(deadlock, of_once_is_none_before_who_does_it_waits) {
  weft::mutex m;
  weft::once once;
  weft::event go_on;
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

weft::async_generator<int> one_value() { co_yield 1; }

// What only a task ends, by what the wait is called.
struct tasks_end_it {
  weft::channel<int> channel{0};
  weft::semaphore permits{0};
  weft::event event;
  weft::auto_event auto_event;
  weft::latch latch{2};
  weft::barrier barrier{2};
  weft::condition_variable changed;
  weft::mutex mutex;
  weft::once once;
  weft::sequence_barrier published;
  weft::broadcast<int> news{{.capacity = 1}};
  weft::watch<int> state{0};
  weft::registry jobs;

  task<> listed() {
    std::uint64_t id = 0;
    const auto all = [&](scope& s) -> task<> {
      id = jobs.fork(s, [this]() -> task<> { co_await event.wait(); }).id;
      static_cast<void>(co_await jobs.wait(id));
    };
    co_await with_scope(all);
  }
  task<> merges() {
    const auto waits = [this](int) -> task<> { co_await event.wait(); };
    co_await (weft::merge(one_value(), one_value()) | weft::for_each(waits));
  }
  task<> once_twice() {
    const auto call = [this]() -> task<> {
      const auto waits = [this] { return event.wait(); };
      co_await once.call(waits);
    };
    co_await when_all(call(), call());
  }

  const std::vector<std::pair<const char*, std::function<task<>()>>> all{
      {"channel, to receive", [this]() -> task<> { static_cast<void>(co_await channel.receive()); }},
      {"channel, to send", [this]() -> task<> { co_await channel.send(1); }},
      {"semaphore", [this]() -> task<> { const auto one = co_await permits.acquire(); }},
      {"event", [this]() -> task<> { co_await event.wait(); }},
      {"condition_variable",
       [this]() -> task<> {
         auto held = co_await mutex.lock();
         co_await changed.wait(held);
       }},
      {"auto_event", [this]() -> task<> { co_await auto_event.wait(); }},
      {"latch", [this]() -> task<> { co_await latch.wait(); }},
      {"barrier", [this]() -> task<> { static_cast<void>(co_await barrier.arrive_and_wait()); }},
      {"sequence_barrier", [this]() -> task<> { static_cast<void>(co_await published.wait_until_published(0)); }},
      {"broadcast, to receive",
       [this]() -> task<> {
         auto hears = news.subscribe();
         static_cast<void>(co_await hears.receive());
       }},
      {"watch, to receive",
       [this]() -> task<> {
         auto sees = state.subscribe();
         for (;;) static_cast<void>(co_await sees.receive());
       }},
      {"once", [this] { return once_twice(); }},
      {"entry of a registry", [this] { return listed(); }},
      {"turn to call the function of a pipe", [this] { return merges(); }},
  };
};

bool has_wait(const snapshot& seen, std::string_view what) {
  return std::ranges::any_of(seen.tasks, [&](const weft::task_info& one) {
    return std::ranges::any_of(one.waits, [&](const weft::task_wait& its) { return its.what == what; });
  });
}

TEST(deadlock, all_tasks_asleep_is_a_hint) {
  tasks_end_it those;
  for (const auto& [what, wait] : those.all) {
    const started one{wait};
    const snapshot seen = take_snapshot();
    EXPECT_TRUE(has_wait(seen, what)) << what;
    EXPECT_TRUE(seen.is_stuck()) << what;
    EXPECT_TRUE(seen.deadlocks().empty()) << what;
  }
  EXPECT_FALSE(take_snapshot().is_stuck()) << "nothing waits";
}

// With something else in progress, all is silent for each of them.
void expect_no_hint_beside(const char* beside) {
  until([&] { return has_wait(take_snapshot(), beside); });
  tasks_end_it those;
  for (const auto& [what, wait] : those.all) {
    const started one{wait};
    const snapshot seen = take_snapshot();
    EXPECT_TRUE(has_wait(seen, what)) << what;
    EXPECT_TRUE(has_wait(seen, beside)) << beside;
    EXPECT_FALSE(seen.is_stuck()) << what << " beside " << beside;
    EXPECT_TRUE(seen.deadlocks().empty()) << what << " beside " << beside;
  }
}

TEST(deadlock, is_no_hint_where_a_timer_sleeps) {
  {
    const started sleeps{[]() -> task<> { co_await weft::sleep_for(1h); }};
    expect_no_hint_beside("clock");
  }
  weft::channel<int> c{0};
  const started chooses{
      [&]() -> task<> { static_cast<void>(co_await weft::select(weft::on_receive(c), weft::after(1h))); }};
  expect_no_hint_beside("clock");
}

TEST(deadlock, is_no_hint_where_a_timeout_or_a_deadline_is_in_force) {
  tasks_end_it those;
  for (const in_force end : {in_force::timeout, in_force::deadline})
    for (const auto& [what, wait] : those.all) {
      const started one{[&] { return run_under(end, wait); }};
      const snapshot seen = take_snapshot();
      EXPECT_TRUE(has_wait(seen, what)) << what;
      EXPECT_FALSE(seen.is_stuck()) << what;
    }
}

TEST(deadlock, is_no_hint_where_a_callback_is_pending) {
  std::optional<weft::callback<>> kept;
  const auto keeps = [&](weft::callback<> done) { kept = done; };
  const started awaits{[&]() -> task<> { co_await weft::from_callback<>(keeps); }};
  expect_no_hint_beside("callback");
  (*kept)();
}

TEST(deadlock, is_no_hint_where_a_future_is_awaited) {
  weft::promise<> later;
  const started awaits{[&]() -> task<> { co_await later.get_future(); }};
  expect_no_hint_beside("future");
}

TEST(deadlock, is_no_hint_where_a_blocking_call_is_under_way) {
  std::atomic<bool> over{false};
  const auto blocks = [&] {
    while (!over) std::this_thread::sleep_for(1ms);
  };
  std::thread awaits{[&] { weft::sync_wait(weft::blocking(blocks)); }};
  expect_no_hint_beside("blocking call");
  over = true;
  awaits.join();
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
    expect_no_hint_beside("I/O");
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
