// What a snapshot shows of known trees, also where a thread spins or blocks in them.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <iterator>
#include <list>
#include <map>
#include <optional>
#include <set>
#include <source_location>
#include <sstream>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>
#include <weft/channel.hpp>
#include <weft/combine.hpp>
#include <weft/fiber.hpp>
#include <weft/hop.hpp>
#include <weft/observe.hpp>
#include <weft/pool.hpp>
#include <weft/scope.hpp>
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
using weft::task_info;
using weft::task_kind;
using weft::task_state;
using weft::with_scope;

std::vector<const task_info*> below(const snapshot& all, task_id parent) {
  std::vector<const task_info*> found;
  for (const task_info& one : all.tasks)
    if (one.parent == parent) found.push_back(&one);
  return found;
}

// All that stand below one, however far.
std::vector<const task_info*> all_below(const snapshot& all, task_id top) {
  std::set<task_id> above{top};
  std::vector<const task_info*> found;
  for (const task_info& one : all.tasks)  // a parent before its children
    if (above.contains(one.parent)) {
      found.push_back(&one);
      above.insert(one.id);
    }
  return found;
}

std::map<task_kind, int> kinds(const std::vector<const task_info*>& those) {
  std::map<task_kind, int> counts;
  for (const task_info* one : those) ++counts[one->kind];
  return counts;
}

// Looks again and again, until what it sees fits.
template <class F>
snapshot when(F fits) {
  snapshot seen = take_snapshot();
  until([&] { return fits(seen) || (seen = take_snapshot(), false); });
  return seen;
}

task<> waits_for(weft::event& e) { co_await e.wait(); }

// A task that runs on this thread as far as it can, and then waits.
class started {
 public:
  template <class F>
  explicit started(F f) {
    start(named(std::move(f)), [this](weft::result<void>) { ended_ = true; });
  }
  started(const started&) = delete;
  ~started() { EXPECT_TRUE(ended_); }
  task_id id() const { return id_; }
  bool ended() const { return ended_; }

 private:
  template <class F>
  task<> named(F f) {
    id_ = weft::this_task::id();
    co_await f();
  }
  task_id id_;
  bool ended_ = false;
};

TEST(snapshot, a_task_that_waits) {
  weft::event over;
  {
    started one{[&]() -> task<> { co_await waits_for(over); }};
    const snapshot seen = take_snapshot();
    EXPECT_TRUE(seen.is_complete);
    const task_info* its = seen.find(one.id());
    ASSERT_NE(its, nullptr);
    EXPECT_FALSE(its->parent);
    EXPECT_EQ(its->kind, task_kind::task);
    EXPECT_EQ(its->state, task_state::waiting);
    ASSERT_EQ(its->waits.size(), 1U);
    EXPECT_STREQ(its->waits[0].what, "event");
    EXPECT_EQ(its->waits[0].at, &over);
    EXPECT_FALSE(its->waits[0].holder);
    EXPECT_FALSE(its->stop_requested);
    EXPECT_FALSE(its->cause.has_value());
    EXPECT_EQ(its->worker, -1);
    ASSERT_FALSE(its->stack.empty());
    EXPECT_NE(its->stack[0].function().find("waits_for"), std::string::npos) << its->stack[0].function();
    EXPECT_NE(its->function.address(), nullptr);
    EXPECT_TRUE(below(seen, one.id()).empty());
    EXPECT_EQ(take_snapshot().find(one.id())->id, one.id()) << "an id stays";
    over.set();
  }
  EXPECT_TRUE(take_snapshot().tasks.empty());
}

TEST(snapshot, a_tree_of_every_kind) {
  weft::event over;
  weft::mutex m;
  task_id holder, fiber, body;
  auto work = [&]() -> task<> { co_await over.wait(); };
  weft::shared_task<> shared{work()};
  const auto forks = [&](scope& s) -> task<> {
    body = weft::this_task::id();
    s.fork([&]() -> task<> {
      holder = weft::this_task::id();
      const auto held = co_await m.lock();
      co_await over.wait();
    });
    s.go([&] {
      fiber = weft::this_task::id();
      const auto held = weft::await(m.lock());
    });
    s.fork([&]() -> task<> { co_await when_all(over.wait(), over.wait(), over.wait()); });
    s.fork([&]() -> task<> { static_cast<void>(co_await when_any(over.wait(), weft::timeout(1h, over.wait()))); });
    s.fork([&]() -> task<> { co_await shared; });
    co_await over.wait();
  };
  started one{[&]() -> task<> { co_await with_scope(forks); }};
  const snapshot seen = take_snapshot();
  EXPECT_TRUE(seen.is_complete);
  const auto tree = all_below(seen, one.id());
  auto counts = kinds(tree);
  EXPECT_EQ(counts[task_kind::body], 1);
  EXPECT_EQ(counts[task_kind::fork], 4);
  EXPECT_EQ(counts[task_kind::fiber], 1);
  EXPECT_EQ(counts[task_kind::child], 3 + 2 + 1) << "of the when_all, the when_any and the timeout in it";
  EXPECT_EQ(tree.size(), 12U);
  EXPECT_EQ(seen.tasks.size(), 14U) << "with the task itself, and the shared one";
  for (const task_info& its : seen.tasks) {
    EXPECT_EQ(its.state, task_state::waiting);
    EXPECT_FALSE(its.waits.empty());
  }
  const task_info* waits = seen.find(fiber);
  ASSERT_NE(waits, nullptr);
  EXPECT_EQ(waits->kind, task_kind::fiber);
  EXPECT_EQ(waits->parent, one.id()) << "the task that waits for the scope";
  ASSERT_EQ(waits->waits.size(), 1U);
  EXPECT_STREQ(waits->waits[0].what, "mutex");
  EXPECT_EQ(waits->waits[0].holder, holder);
  EXPECT_EQ(seen.find(body)->kind, task_kind::body);
  const auto is_shared = [](const task_info& its) { return its.kind == task_kind::shared_task; };
  const auto the_shared = std::find_if(seen.tasks.begin(), seen.tasks.end(), is_shared);
  ASSERT_NE(the_shared, seen.tasks.end());
  EXPECT_EQ(std::count_if(seen.tasks.begin(), seen.tasks.end(),
                          [&](const task_info& its) {
                            return its.waits[0].what == std::string_view{"shared_task"} &&
                                   its.waits[0].holder == the_shared->id;
                          }),
            1);
  EXPECT_TRUE(seen.deadlocks().empty());
  over.set();
}

TEST(snapshot, a_stop_a_deadline_and_a_shield) {
  weft::event over;
  const auto late = std::chrono::steady_clock::now() + 1h;
  weft::stop_source stop;
  task_id with_end, shielded;
  const auto all = [&](scope& s) -> task<> {
    s.fork([&]() -> task<> {
      const auto wait = [&]() -> task<> {
        with_end = weft::this_task::id();
        co_await over.wait();
      };
      co_await weft::with_deadline(late, wait);
    });
    s.fork([&]() -> task<> {
      shielded = weft::this_task::id();
      co_await weft::shielded(over.wait());
    });
    co_await over.wait();
  };
  started one{[&]() -> task<> {
    static_cast<void>(co_await weft::as_result(with_scope(weft::scope_options{.stop = stop.token()}, all)));
  }};
  EXPECT_EQ(take_snapshot().find(with_end)->deadline, late);
  EXPECT_EQ(take_snapshot().find(shielded)->deadline, std::chrono::steady_clock::time_point::max());
  stop.request_stop({.reason = "the test says so"});
  const snapshot seen = take_snapshot();
  EXPECT_EQ(seen.find(with_end), nullptr);
  const task_info* its = seen.find(shielded);
  ASSERT_NE(its, nullptr);
  EXPECT_TRUE(its->stop_requested);
  EXPECT_TRUE(its->is_shielded);
  ASSERT_TRUE(its->cause.has_value());
  EXPECT_STREQ(its->cause->reason, "the test says so");
  over.set();
}

// Of a scope, or of the call of with_deadline(); of one further out, too, if that has set the nearest.
TEST(snapshot, who_has_set_a_deadline) {
  weft::event over;
  const auto late = std::chrono::steady_clock::now() + 1h;
  task_id in_call, in_scope, further_in, later_in, without;
  unsigned line_of_call = 0, line_of_scope = 0;
  const auto waits = [&](task_id& noted) -> task<> {
    noted = weft::this_task::id();
    co_await over.wait();
  };
  const auto inner = [&](scope& s) -> task<> {
    s.fork([&]() -> task<> { co_await waits(further_in); });
    line_of_call = std::source_location::current().line() + 1;
    co_await weft::with_deadline(late - 1s, [&]() -> task<> { co_await waits(in_call); });
  };
  const auto all = [&](scope& s) -> task<> {
    s.fork([&]() -> task<> { co_await waits(in_scope); });
    s.fork([&]() -> task<> { co_await with_scope(inner); });
    co_await weft::with_deadline(late + 1h, [&]() -> task<> { co_await waits(later_in); });
  };
  started one{[&]() -> task<> {
    without = weft::this_task::id();
    weft::scope_options options;
    options.deadline = late;
    line_of_scope = options.where.line();
    static_cast<void>(co_await weft::as_result(with_scope(options, all)));
  }};
  const snapshot seen = take_snapshot();
  const auto line_at = [&](task_id id) {
    const task_info* const its = seen.find(id);
    EXPECT_NE(its, nullptr);
    return its != nullptr && its->deadline_set_at ? its->deadline_set_at->line() : 0;
  };
  EXPECT_EQ(line_at(in_scope), line_of_scope);
  EXPECT_EQ(line_at(further_in), line_of_scope) << "of the scope around its own";
  EXPECT_EQ(line_at(in_call), line_of_call);
  EXPECT_EQ(line_at(later_in), line_of_scope) << "the nearer deadline holds";
  EXPECT_EQ(line_at(without), 0U);
  std::ostringstream text, json;
  seen.text(text);
  seen.json(json);
  EXPECT_NE(text.str().find("snapshot_test.cpp:" + std::to_string(line_of_call) + ','), std::string::npos)
      << text.str();
  EXPECT_NE(json.str().find("\"line\":" + std::to_string(line_of_scope)), std::string::npos) << json.str();
  over.set();
}

TEST(snapshot, a_fork_alone_that_was_told_to_stop_and_is_shielded) {
  weft::event over;
  task_id told, other;
  const auto all = [&](scope& s) -> task<> {
    auto fork = s.fork([&]() -> task<> { co_await weft::shielded(over.wait()); });
    told = fork.id();
    other = s.fork([&]() -> task<> { co_await weft::shielded(over.wait()); }).id();
    fork.request_stop();
    co_await over.wait();
  };
  started one{[&]() -> task<> { static_cast<void>(co_await weft::as_result(with_scope(all))); }};
  const snapshot seen = take_snapshot();
  const task_info *its = seen.find(told), *others = seen.find(other);
  ASSERT_TRUE(its != nullptr && others != nullptr);
  EXPECT_TRUE(its->stop_requested && its->is_shielded);
  EXPECT_TRUE(!others->stop_requested && others->is_shielded);
  over.set();
}

// ---- what has not waited yet --------------------------------------------------------------------------------------------

TEST(snapshot, a_body_that_forked_a_thousand_and_spins) {
  weft::event over;
  std::atomic<bool> forked{false}, go_on{false};
  std::atomic<int> begun{0};
  task_id top, body;
  std::thread thread{[&] {
    const auto all = [&](scope& s) -> task<> {
      body = weft::this_task::id();
      for (int i = 0; i != 1000; ++i)
        s.fork([&]() -> task<> {
          ++begun;
          co_await over.wait();
        });
      forked = true;
      while (!go_on) std::this_thread::yield();
      co_return;
    };
    weft::sync_wait([&]() -> task<> {
      top = weft::this_task::id();
      co_await with_scope(all);
    }());
  }};
  until([&] { return forked.load(); });
  EXPECT_EQ(begun.load(), 1000) << "each runs until it waits";
  const snapshot seen = take_snapshot();
  EXPECT_TRUE(seen.is_complete);
  const task_info* its = seen.find(top);
  ASSERT_NE(its, nullptr);
  EXPECT_EQ(its->kind, task_kind::thread);
  const auto tree = all_below(seen, top);
  auto counts = kinds(tree);
  EXPECT_EQ(counts[task_kind::fork], 1000);
  EXPECT_EQ(counts[task_kind::body], 1);
  EXPECT_EQ(tree.size(), 1001U);
  ASSERT_NE(seen.find(body), nullptr);
  EXPECT_EQ(seen.find(body)->state, task_state::running);
  EXPECT_GE(seen.find(body)->worker, 0);
  EXPECT_EQ(seen.workers[static_cast<std::size_t>(seen.find(body)->worker)].runs, body);
  for (const task_info* one : tree)
    if (one->kind == task_kind::fork) {
      EXPECT_EQ(one->state, task_state::waiting);
      EXPECT_EQ(one->parent, top);
      EXPECT_TRUE(one->waits.size() == 1 && one->waits[0].at == &over);
    }
  go_on = true;
  over.set();
  thread.join();
  EXPECT_TRUE(take_snapshot().tasks.empty());
}

TEST(snapshot, a_pool_whose_only_worker_blocks_in_read) {
  constexpr int count = 1000;
  weft::event over;
  std::array<int, 2> pipe{};
  ASSERT_EQ(::pipe(pipe.data()), 0);
  std::atomic<bool> blocks{false};
  std::atomic<int> begun{0};
  task_id top, body;
  std::vector<task_id> forks(count);
  {
    weft::pool p{{.threads = 1}};
    std::thread thread{[&] {
      const auto all = [&](scope& s) -> task<> {
        body = weft::this_task::id();
        for (int i = 0; i != count; ++i)
          forks[static_cast<std::size_t>(i)] = s.fork([&]() -> task<> {
                                                  ++begun;
                                                  co_await over.wait();
                                                }).id();
        char byte;
        blocks = true;
        EXPECT_EQ(::read(pipe[0], &byte, 1), 1);
        co_return;
      };
      p.run([&]() -> task<> {
        top = weft::this_task::id();
        co_await with_scope(all);
      }());
    }};
    until([&] { return blocks.load(); });
    const snapshot seen = take_snapshot();
    EXPECT_TRUE(seen.is_complete);
    EXPECT_EQ(begun.load(), count) << "each runs until it waits";
    const task_info* its = seen.find(body);
    ASSERT_NE(its, nullptr);
    EXPECT_EQ(its->state, task_state::running);
    EXPECT_EQ(its->kind, task_kind::body);
    EXPECT_EQ(its->parent, top);
    EXPECT_EQ(below(seen, top).size(), 1U + count) << "the body, and its forks";
    for (const task_id one : forks) {
      const task_info* fork = seen.find(one);
      EXPECT_NE(fork, nullptr) << one;
      if (fork == nullptr) continue;
      EXPECT_EQ(fork->kind, task_kind::fork);
      EXPECT_EQ(fork->state, task_state::waiting);
      EXPECT_EQ(fork->parent, top);
      EXPECT_EQ(fork->worker, -1);
      EXPECT_TRUE(fork->waits.size() == 1 && fork->waits[0].at == &over);
    }
    ASSERT_EQ(seen.pools.size(), 1U);
    EXPECT_EQ(seen.pools[0].workers, 1U);
    ASSERT_GE(its->worker, 0);
    const weft::worker_info& worker = seen.workers[static_cast<std::size_t>(its->worker)];
    EXPECT_EQ(worker.pool, 0);
    EXPECT_GT(worker.thread, 0);
    EXPECT_EQ(worker.runs, body);
    EXPECT_EQ(worker.queued, 0U);
    over.set();
    EXPECT_EQ(::write(pipe[1], "x", 1), 1);
    thread.join();
  }
  ::close(pipe[0]);
  ::close(pipe[1]);
  EXPECT_TRUE(take_snapshot().tasks.empty());
}

TEST(snapshot, a_pool_shows_forks_that_nobody_has_begun_with) {
  weft::pool p{{.threads = 2}};
  std::atomic<int> spin{0};
  std::atomic<bool> go_on{false}, forked{false};
  task_id body;
  std::thread thread{[&] {
    const auto all = [&](scope& s) -> task<> {
      body = weft::this_task::id();
      for (int i = 0; i != 20; ++i)
        s.fork([&]() -> task<> {
          ++spin;
          while (!go_on) std::this_thread::yield();
          co_return;
        });
      forked = true;
      while (!go_on) std::this_thread::yield();
      co_return;
    };
    p.run([&]() -> task<> { co_await with_scope(all); }());
  }};
  until([&] { return forked.load() && spin.load() == 1; });
  const snapshot seen = take_snapshot();
  const auto forks = below(seen, seen.find(body)->parent);
  EXPECT_EQ(forks.size(), 21U) << "with the body";
  EXPECT_EQ(std::count_if(forks.begin(), forks.end(), [](auto* one) { return one->state == task_state::running; }), 2);
  EXPECT_EQ(std::count_if(forks.begin(), forks.end(), [](auto* one) { return one->state == task_state::ready; }), 19);
  go_on = true;
  thread.join();
}

TEST(snapshot, a_half_started_when_all_and_when_any) {
  for (const bool any : {false, true}) {
    weft::event over;
    std::atomic<bool> spins{false}, go_on{false};
    task_id top, spinner;
    std::thread thread{[&] {
      const auto wait = [&]() -> task<> { co_await over.wait(); };
      const auto spin = [&]() -> task<> {
        spinner = weft::this_task::id();
        spins = true;
        while (!go_on) std::this_thread::yield();
        co_return;
      };
      weft::sync_wait([&]() -> task<> {
        top = weft::this_task::id();
        if (any)
          static_cast<void>(co_await when_any(wait(), wait(), spin(), wait()));
        else
          static_cast<void>(co_await when_all(wait(), wait(), spin(), wait()));
      }());
    }};
    until([&] { return spins.load(); });
    const snapshot seen = take_snapshot();
    EXPECT_TRUE(seen.is_complete);
    const auto children = below(seen, top);
    ASSERT_EQ(children.size(), 3U) << "any: " << any;
    EXPECT_EQ(std::count_if(children.begin(), children.end(), [](auto* c) { return c->state == task_state::waiting; }),
              2);
    ASSERT_NE(seen.find(spinner), nullptr);
    EXPECT_EQ(seen.find(spinner)->state, task_state::running);
    EXPECT_EQ(seen.find(spinner)->parent, top);
    go_on = true;
    over.set();
    thread.join();
  }
  EXPECT_TRUE(take_snapshot().tasks.empty());
}

// A fork in its first run is in no list; what it has started is found, and so is the fork, as what stands above that.
TEST(snapshot, a_fork_in_its_first_run_that_has_forks_of_its_own) {
  weft::event over;
  std::atomic<bool> spins{false}, go_on{false};
  task_id top, outer, inner, fork;
  std::thread thread{[&] {
    const auto in = [&](scope& s) -> task<> {
      inner = weft::this_task::id();
      s.fork([&]() -> task<> { co_await over.wait(); });
      spins = true;
      while (!go_on) std::this_thread::yield();
      co_return;
    };
    const auto out = [&](scope& s) -> task<> {
      outer = weft::this_task::id();
      s.fork([&]() -> task<> {
        fork = weft::this_task::id();
        co_await with_scope(in);
      });
      co_await over.wait();
    };
    weft::sync_wait([&]() -> task<> {
      top = weft::this_task::id();
      co_await with_scope(out);
    }());
  }};
  until([&] { return spins.load(); });
  const snapshot seen = take_snapshot();
  EXPECT_TRUE(seen.is_complete);
  EXPECT_EQ(all_below(seen, top).size(), 4U);
  ASSERT_NE(seen.find(fork), nullptr);
  EXPECT_EQ(seen.find(fork)->parent, top);
  EXPECT_EQ(seen.find(fork)->kind, task_kind::fork);
  EXPECT_EQ(seen.find(inner)->parent, fork);
  EXPECT_EQ(below(seen, fork).size(), 2U) << "the body, and its fork";
  EXPECT_EQ(seen.find(outer)->kind, task_kind::body);
  go_on = true;
  over.set();
  thread.join();
}

// ---- many -----------------------------------------------------------------------------------------------------------------

// The fork is found above a scope whose body computes, and in the list of another such scope: whichever the walk comes to first.
TEST(snapshot, a_fork_between_two_bodies_that_compute) {
  weft::pool p{{.threads = 2}};
  for (const unsigned outer : {0U, 1U}) {
    std::atomic<int> computing{0};
    std::atomic<bool> over{false};
    task_id fork, inner_fork;
    weft::event never;
    const auto computes = [&] {
      ++computing;
      while (!over) std::this_thread::yield();
    };
    const auto inner = [&](scope& s) -> task<> {
      inner_fork = s.fork(waits_for(never)).id();
      computes();
      s.request_stop();
      co_return;
    };
    const auto between = [&]() -> task<> {
      fork = weft::this_task::id();
      co_await weft::yield();  // so it is listed
      co_await with_scope(inner);
    };
    const auto body = [&](scope& s) -> task<> {
      s.fork_on(p.worker(1 - outer), between);
      computes();
      co_return;
    };
    std::thread thread{[&] { p.run(weft::start_on(p.worker(outer), with_scope(body))); }};
    until([&] { return computing == 2; });
    const snapshot seen = take_snapshot();
    std::set<task_id> found;
    for (const task_info& one : seen.tasks) {
      EXPECT_TRUE(found.insert(one.id).second) << one.id;
      EXPECT_TRUE(!one.parent || found.contains(one.parent));
    }
    EXPECT_TRUE(found.contains(fork));
    EXPECT_TRUE(found.contains(inner_fork));
    const task_info* its = seen.find(inner_fork);
    EXPECT_TRUE(its != nullptr && its->parent == fork);
    over = true;
    thread.join();
  }
}

TEST(snapshot, a_tree_of_two_hundred_thousand) {
  constexpr int wide = 500, deep = 400;
  const int rows = test::rounds(wide);
  const test::calm so_many_are_slow_otherwise;
  weft::event over;
  const auto row = [&](int) -> task<> {
    const auto forks = [&](scope& s) -> task<> {
      for (int k = 0; k != deep - 2; ++k) s.fork(waits_for(over));
      co_return;
    };
    co_await with_scope(forks);
  };
  const auto all = [&](scope& s) -> task<> {
    for (int i = 0; i != rows; ++i) s.fork(row(i));
    co_return;
  };
  started one{[&]() -> task<> { co_await with_scope(all); }};
  const snapshot seen = take_snapshot({.stacks = false});
  EXPECT_TRUE(seen.is_complete);
  // A body that has returned is gone. Rows, and their forks.
  EXPECT_EQ(seen.tasks.size(), 1 + static_cast<std::size_t>(rows) * (deep - 1));
  std::set<task_id> ids;
  for (const task_info& its : seen.tasks) EXPECT_TRUE(ids.insert(its.id).second);
  const snapshot few = take_snapshot({.most_tasks = 1000});
  EXPECT_FALSE(few.is_complete);
  EXPECT_EQ(few.tasks.size(), 1000U);
  EXPECT_EQ(take_snapshot({.stacks = false}).tasks.size(), seen.tasks.size())
      << "what ended early has left nothing behind";
  over.set();
}

TEST(snapshot, a_chain_of_ten_thousand_scopes) {
  weft::event over;
  const int depth = test::rounds(10'000);
  struct chain {
    static task<> link(int left, weft::event& over) {
      if (left == 0) co_return co_await over.wait();
      const auto body = [&](scope& s) -> task<> {
        s.fork(link(left - 1, over));
        co_return;
      };
      co_await with_scope(body);
    }
  };
  started one{[&]() -> task<> { co_await chain::link(depth, over); }};
  const snapshot seen = take_snapshot({.stacks = false});
  EXPECT_TRUE(seen.is_complete);
  EXPECT_EQ(seen.tasks.size(), static_cast<std::size_t>(depth) + 1);
  over.set();
}

// ---- ids --------------------------------------------------------------------------------------------------------------------

TEST(snapshot, ids_name_one_task) {
  EXPECT_FALSE(weft::this_task::id());
  std::set<task_id> seen;
  task_id by_handle, by_view;
  weft::event over;
  const auto all = [&](scope& s) -> task<> {
    seen.insert(weft::this_task::id());
    for (int i = 0; i != 100; ++i)
      s.fork([&]() -> task<> {
        const task_id mine = weft::this_task::id();
        EXPECT_EQ(weft::this_task::id(), mine);
        EXPECT_TRUE(seen.insert(mine).second) << "at the same address, and not the same";
        co_return;
      });
    auto fork = s.fork([&]() -> task<> {
      seen.insert(by_view = weft::this_task::id());
      co_await over.wait();
    });
    by_handle = fork.id();
    EXPECT_EQ(fork.view().id(), by_handle);
    over.set();
    co_await std::move(fork);
  };
  weft::sync_wait(with_scope(all));
  EXPECT_TRUE(by_handle);
  EXPECT_EQ(by_handle, by_view);
  EXPECT_EQ(seen.size(), 102U);
  EXPECT_TRUE(async_stack(by_handle).empty()) << "it has ended";
  EXPECT_TRUE(waits_on(by_handle).empty());
  EXPECT_TRUE(async_stack(task_id{}).empty());
}

TEST(snapshot, async_stack_and_waits_on_take_ids) {
  weft::event over;
  task_id leaf;
  const auto forks = [&](scope& s) -> task<> {
    auto fork = s.fork(waits_for(over));
    leaf = fork.id();
    co_await std::move(fork);
  };
  started one{[&]() -> task<> { co_await with_scope(forks); }};
  const auto stack = weft::async_stack(leaf);
  ASSERT_GE(stack.size(), 2U) << "it goes on in those that wait for it";
  EXPECT_NE(stack[0].function().find("waits_for"), std::string::npos);
  const auto what = weft::waits_on(leaf);
  ASSERT_EQ(what.size(), 1U);
  EXPECT_EQ(what[0], (weft::wait_subject{"event", &over, nullptr}));
  over.set();
}

// ---- beside what goes on ----------------------------------------------------------------------------------------------------

// Under the thread sanitizer, too. What waits all the time is in each snapshot that is complete, whatever starts and ends.
// Tasks and fibers go from one pool to another and back meanwhile.
TEST(snapshot, beside_churn) {
  weft::pool p{{.threads = 3}}, other{{.threads = 2}};
  weft::event over;
  std::atomic<bool> end{false};
  std::atomic<int> waiting{0}, moved{0};
  weft::mutex m;
  constexpr int stay = 200;
  std::set<task_id> those;
  std::mutex lock;
  std::thread thread{[&] {
    const auto there_and_back = [&]() -> task<> {
      co_await weft::resume_on(other.executor());
      co_await weft::resume_on(p.executor());
    };
    const auto of_fibers = [&](scope& s) -> task<> {
      for (int i = 0; i != 4; ++i)
        s.go([&] {
          weft::await(there_and_back());
          ++moved;
        });
      co_return;
    };
    const auto churn = [&]() -> task<> {
      for (unsigned round = 0; !end; ++round) {
        weft::event here;
        const auto all = [&, round](scope& s) -> task<> {
          for (int i = 0; i != 8; ++i) s.fork(waits_for(here));
          s.fork([&]() -> task<> { co_await when_all(waits_for(here), weft::yield(), waits_for(here)); });
          s.fork([&]() -> task<> {
            static_cast<void>(co_await when_any(waits_for(here), weft::yield(), weft::timeout(1h, here.wait())));
          });
          s.fork_on(other.executor(), waits_for(here));
          s.fork_on(other.executor(), [&]() -> task<> {
            co_await weft::resume_on(p.executor());
            co_await here.wait();
            co_await weft::resume_on(other.executor());
            ++moved;
          });
          s.fork([&]() -> task<> {
            for (int i = 0; i != 3; ++i) co_await there_and_back();
            const auto held = co_await m.lock();
            co_await weft::resume_on(other.executor());
            ++moved;
          });
          s.fork([&]() -> task<> { co_await with_scope({.executor = &other.executor()}, of_fibers); });
          s.go([&] { weft::await(here.wait()); });
          s.go([&] {
            weft::await(there_and_back());
            const auto held = weft::await(m.lock());
            weft::await(there_and_back());
            ++moved;
          });
          co_await weft::yield();
          if (round % 3 == 0) s.request_stop();
          here.set();
        };
        static_cast<void>(co_await weft::as_result(with_scope(all)));
      }
    };
    const auto all = [&](scope& s) -> task<> {
      for (int i = 0; i != 3; ++i) s.fork(churn);
      const auto keep = [&](scope& inner) -> task<> {
        for (int i = 0; i != stay; ++i)
          inner.fork([&]() -> task<> {
            {
              const std::lock_guard guard{lock};
              those.insert(weft::this_task::id());
            }
            ++waiting;
            co_await over.wait();
          });
        co_return;
      };
      co_await with_scope(keep);
    };
    p.run(with_scope(all));
  }};
  until([&] { return waiting.load() == stay; });
  // The last one may still be in its first run, where no walk finds it.
  when([&](const snapshot& s) {
    return std::ranges::all_of(those, [&](task_id one) {
      const task_info* const its = s.find(one);
      return its != nullptr && its->state == task_state::waiting;
    });
  });
  int complete = 0;
  for (int i = 0; i < test::rounds(300) || complete == 0 || moved < 100; ++i) {
    const snapshot seen = take_snapshot({.stacks = i % 2 == 0});
    EXPECT_TRUE(seen.deadlocks().empty());
    std::set<task_id> found;
    for (const task_info& one : seen.tasks) {
      EXPECT_TRUE(found.insert(one.id).second);
      EXPECT_TRUE(!one.parent || found.contains(one.parent));
    }
    if (!seen.is_complete) continue;
    ++complete;
    for (const task_id one : those) EXPECT_TRUE(found.contains(one));
  }
  end = true;
  over.set();
  thread.join();
  EXPECT_TRUE(take_snapshot().tasks.empty());
}

// Whoever gives room in a scope has its lock, and claims the wait of who gets it: the body's, here, which a walk may hold.
TEST(snapshot, beside_a_body_that_waits_for_room) {
  weft::pool p{{.threads = 3}};
  std::atomic<bool> end{false};
  std::thread thread{[&] {
    const auto yields = []() -> task<> { co_await weft::yield(); };
    const auto forks = [&](scope& s) -> task<> {
      while (!end) {
        for (int i = 0; i != 50; ++i) const auto one = co_await s.fork_when_room(yields());
        co_await weft::yield();
      }
    };
    const auto all = [&](scope& s) -> task<> {
      for (int i = 0; i != 2; ++i)
        s.fork([&]() -> task<> { co_await with_scope({.executor = &p.executor(), .max_children = 2}, forks); });
      co_return;
    };
    p.run(with_scope(all));
  }};
  for (int i = 0; i != test::rounds(3000); ++i) EXPECT_TRUE(take_snapshot({.stacks = false}).deadlocks().empty());
  end = true;
  thread.join();
}

// A walk that looks for one task ends within a list of those that nothing stands above, while another walk waits to begin.
TEST(snapshot, beside_another_one) {
  constexpr std::size_t count = 1000;  // so many that each of the sixteen lists is looked at in several steps
  weft::event over;
  std::list<started> those;
  for (std::size_t i = 0; i != count; ++i) those.emplace_back([&]() -> task<> { co_await over.wait(); });
  const task_id looked_for = std::next(those.begin(), count / 2)->id();
  std::atomic<bool> end{false};
  std::thread other{[&] {
    while (!end) EXPECT_FALSE(weft::async_stack(looked_for).empty());
  }};
  for (int i = 0; i != test::rounds(300); ++i) {
    const snapshot seen = take_snapshot({.stacks = false});
    EXPECT_EQ(seen.tasks.size(), count);
    EXPECT_TRUE(seen.is_complete);
  }
  end = true;
  other.join();
  over.set();
}

}  // namespace
