// What those are in that run: in a snapshot that asks for it, and in what is told of an overdue scope.
#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <thread>
#include <vector>
#include <weft/combine.hpp>
#include <weft/fiber.hpp>
#include <weft/hop.hpp>
#include <weft/observe.hpp>
#include <weft/overdue.hpp>
#include <weft/pool.hpp>
#include <weft/scope.hpp>
#include <weft/sync.hpp>
#include <weft/watchdog.hpp>

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
using weft::task_state;
using weft::with_scope;

#if defined(WEFT_TEST_TSAN)
constexpr bool answers_while_it_computes = false;  // handlers are put off until the next call that the sanitizer knows
#else
constexpr bool answers_while_it_computes = true;
#endif

// Where some stay until they are let go. Not inlined: they are to be seen on the stack.
struct place {
  std::atomic<int> come{0}, reader{0};  // how many, and which thread reads
  std::atomic<bool> goes_on{false};
  int ends[2]{-1, -1};

  place() { EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0); }
  place(const place&) = delete;
  ~place() {
    ::close(ends[0]);
    ::close(ends[1]);
  }
  void let_go() {
    goes_on = true;
    EXPECT_EQ(::write(ends[1], "x", 1), 1);
  }
  // Whether who reads waits in that call by now, where no signal asks it.
  bool is_read() const {
    std::ifstream file{"/proc/self/task/" + std::to_string(reader) + "/syscall"};
    std::string number;
    file >> number;  // or "running"
    return number == std::to_string(SYS_read);
  }
};
[[gnu::noinline]] void spins(place& at) {
  ++at.come;
  while (!at.goes_on) {
  }
  asm("");
}
[[gnu::noinline]] void reads(place& at) {
  at.reader = ::gettid();
  ++at.come;
  char byte;
  EXPECT_EQ(::read(at.ends[0], &byte, 1), 1);
  asm("");
}

task<> computes(void (*what)(place&), place& at) {
  co_await weft::yield();  // to a thread of its own
  what(at);
}
task<> serves(void (*what)(place&), place& at) { co_await computes(what, at); }
[[gnu::noinline]] void computes_in_fiber(place& at) {
  weft::await(weft::yield());
  spins(at);
  asm("");
}
[[gnu::noinline]] void awaits_in_fiber(place& at) {
  weft::await(computes(spins, at));
  asm("");
}

// Where functions with those names are in a stack, in that order, and a name may come more than once.
bool has_in_order(const weft::items<weft::async_frame>& stack, const std::vector<std::string_view>& names) {
  auto next = names.begin();
  for (const weft::async_frame& one : stack)
    if (next != names.end() && one.function().find(*next) != std::string::npos) ++next;
  return next == names.end();
}
std::string text_of(const snapshot& all) {
  std::ostringstream out;
  all.text(out);
  return out.str();
}
// A snapshot in which all that run have a stack. A thread that the machine has stalled does not answer in time: it is asked again.
snapshot snapshot_with_stacks() {
  for (const auto end = std::chrono::steady_clock::now() + 60s;;) {
    snapshot all = take_snapshot({.running_stacks = true});
    const auto has_stack = [](const task_info& one) { return one.state != task_state::running || !one.stack.empty(); };
    if (!answers_while_it_computes || std::ranges::all_of(all.tasks, has_stack) ||
        std::chrono::steady_clock::now() > end)
      return all;
  }
}

TEST(running_stacks, of_a_snapshot_that_asks_for_them) {
  place at;
  weft::pool workers{{.threads = 5}};
  std::vector<task_id> ids;
  std::atomic<bool> has_ids{false};
  std::thread thread{[&] {
    workers.run(with_scope([&](scope& s) -> task<> {
      ids.push_back(s.fork(serves(spins, at)).id());
      ids.push_back(s.go([&] { computes_in_fiber(at); }).id());
      ids.push_back(s.go([&] { awaits_in_fiber(at); }).id());
      ids.push_back(s.fork(serves(reads, at)).id());
      has_ids = true;
      co_return;
    }));
  }};
  until([&] { return at.come == 4 && has_ids && at.is_read(); });
  for (const task_info& one : take_snapshot().tasks) {
    if (one.state == task_state::running) {
      EXPECT_TRUE(one.stack.empty()) << "nobody is asked by default";
    }
  }
  const snapshot all = snapshot_with_stacks();
  const auto stack_of = [&](std::size_t i) {
    const task_info* const one = all.find(ids[i]);
    EXPECT_NE(one, nullptr);
    if (one == nullptr) return weft::items<weft::async_frame>{};
    EXPECT_EQ(one->state, task_state::running) << i;
    return one->stack;
  };
  if (answers_while_it_computes) {
    EXPECT_TRUE(has_in_order(stack_of(0), {"spins", "computes", "serves"})) << text_of(all);
    EXPECT_TRUE(has_in_order(stack_of(1), {"spins", "computes_in_fiber"})) << text_of(all);
    EXPECT_TRUE(has_in_order(stack_of(2), {"spins", "computes"})) << text_of(all);
    EXPECT_FALSE(has_in_order(stack_of(2), {"start_thread"})) << "it ends at the coroutine " << text_of(all);
    for (const std::size_t i : {1U, 2U}) EXPECT_EQ(all.find(ids[i])->kind, weft::task_kind::fiber) << i;
  }
  const auto of_call = stack_of(3);
  EXPECT_TRUE(has_in_order(of_call, {"computes", "serves"})) << text_of(all);
  EXPECT_FALSE(has_in_order(of_call, {"reads"})) << "of one in a system call, coroutines alone";
  for (const task_info& one : take_snapshot({.stacks = false, .running_stacks = true}).tasks)
    EXPECT_TRUE(one.stack.empty());
  at.let_go();
  thread.join();
}

task<> goes_down(int levels, place& at) {
  if (levels == 0)
    co_await computes(reads, at);
  else
    co_await goes_down(levels - 1, at);
}

// Of a stack that is deeper than what is told of it, the innermost coroutines.
TEST(running_stacks, of_one_that_is_deep) {
  place at;
  std::thread thread{[&] { weft::sync_wait(goes_down(200, at)); }};
  until([&] { return at.come == 1 && at.is_read(); });
  const snapshot all = take_snapshot({.running_stacks = true});
  ASSERT_EQ(all.tasks.size(), 1U);
  EXPECT_EQ(all.tasks[0].stack.size(), 64U);
  EXPECT_TRUE(has_in_order(all.tasks[0].stack, {"computes", "goes_down", "goes_down"})) << text_of(all);
  at.let_go();
  thread.join();
}

TEST(running_stacks, of_whoever_takes_the_snapshot) {
  auto takes = []() -> task<snapshot> { co_return take_snapshot({.running_stacks = true}); };
  const snapshot all = weft::sync_wait(takes());
  ASSERT_EQ(all.tasks.size(), 1U);
  EXPECT_TRUE(has_in_order(all.tasks[0].stack, {"of_whoever_takes_the_snapshot"})) << text_of(all);
}

std::atomic<int> signals{0};

// A handler of the program's own is there again behind the snapshot, and a call that a thread is in is not ended.
TEST(running_stacks, leave_calls_and_handlers_alone) {
  struct sigaction mine{}, before{}, now{};
  mine.sa_handler = [](int) { ++signals; };
  ASSERT_EQ(::sigaction(SIGPROF, &mine, &before), 0);
  place at;
  std::thread thread{[&] { weft::sync_wait(computes(reads, at)); }};
  until([&] { return at.come == 1 && at.is_read(); });
  for (int i = 0; i != 20; ++i) static_cast<void>(take_snapshot({.running_stacks = true}));
  at.let_go();  // with EINTR, the read had failed
  thread.join();
  EXPECT_EQ(signals, 0);
  ASSERT_EQ(::sigaction(SIGPROF, nullptr, &now), 0);
  EXPECT_EQ(now.sa_handler, mine.sa_handler);
  ::raise(SIGPROF);
  EXPECT_EQ(signals, 1);
  ::sigaction(SIGPROF, &before, nullptr);
}

// Two that ask at once, and a watchdog that takes samples, beside tasks that begin, end and go from thread to thread.
TEST(running_stacks, beside_churn) {
  weft::pool p{{.threads = 2}}, other{{.threads = 2}};
  std::atomic<bool> end{false};
  std::thread thread{[&] {
    const auto works = [&]() -> task<> {
      volatile unsigned sum = 0;
      for (unsigned i = 0; i != 5000; ++i) sum = sum + i;
      co_await weft::resume_on(other.executor());
      for (unsigned i = 0; i != 5000; ++i) sum = sum + i;
    };
    p.run([&]() -> task<> {
      while (!end)
        co_await with_scope([&](scope& s) -> task<> {
          for (int i = 0; i != 8; ++i) s.fork(works());
          for (int i = 0; i != 4; ++i) s.go([&] { weft::await(works()); });
          co_await when_all(works(), works());
        });
    }());
  }};
  weft::watchdog dog{{.stall_after = 1h, .samples_a_second = 1000, .deadlocks = false}};
  std::atomic<int> stacks{0};
  const auto looks = [&] {
    for (int i = 0; i != test::rounds(200); ++i) {
      const snapshot all = take_snapshot({.running_stacks = true});
      for (const task_info& one : all.tasks)
        if (one.state == task_state::running && !one.stack.empty()) ++stacks;
    }
  };
  std::thread second{looks};
  looks();
  second.join();
  if (answers_while_it_computes) until([&] { return stacks != 0 || (looks(), false); });
  end = true;
  thread.join();
}

// ---- an overdue scope ---------------------------------------------------------------------------------------------------

std::string told_of_overdue(bool has_watchdog, bool& runs) {
  place at;
  weft::pool workers{{.threads = 2}};
  std::optional<weft::watchdog> dog;
  if (has_watchdog) dog.emplace(weft::watchdog_options{.stall_after = 1h});
  std::string text;
  auto tell = [&](const weft::overdue_scope& what) {
    text = to_string(what);
    runs = std::ranges::any_of(what.children, [](const weft::overdue_child& one) { return one.runs; });
    at.let_go();
  };
  workers.run(with_scope({.stop_within = 1ms, .on_overdue = tell}, [&](scope& s) -> task<> {
    s.fork(serves(spins, at));
    while (at.come == 0) co_await weft::yield();
    s.request_stop();
  }));
  return text;
}

TEST(running_stacks, of_a_child_that_computes_behind_a_stop) {
  bool runs = false;
  std::string text = told_of_overdue(true, runs);
  if (answers_while_it_computes) {
    for (int i = 0; i != 20 && !runs; ++i) text = told_of_overdue(true, runs);  // as in snapshot_with_stacks()
    EXPECT_TRUE(runs);
    EXPECT_NE(text.find("which runs here, innermost first:"), std::string::npos) << text;
    EXPECT_NE(text.find("spins"), std::string::npos) << text;
    EXPECT_NE(text.find("serves"), std::string::npos) << text;
  }
}

TEST(running_stacks, of_no_child_where_there_is_no_watchdog) {
  bool runs = false;
  const std::string text = told_of_overdue(false, runs);
  EXPECT_FALSE(runs);
  EXPECT_NE(text.find("which does not wait in weft"), std::string::npos) << text;
}

}  // namespace
