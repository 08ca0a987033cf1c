#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>
#include <weft/combine.hpp>
#include <weft/fiber.hpp>
#include <weft/observe.hpp>
#include <weft/scope.hpp>
#include <weft/task.hpp>
#include <weft/with.hpp>

#include "support/timed_root.hpp"
#include "support/weft_test.hpp"
#include "trace/names.hpp"

using test::gate;
using test::until;
using weft::as_result;
using weft::async_frame;
using weft::async_stack;
using weft::start;
using weft::stop_source;
using weft::sync_wait;
using weft::task;
using weft::when_all;

namespace {

std::vector<std::string> names(const std::vector<async_frame>& stack) {
  std::vector<std::string> all;
  for (const async_frame& one : stack) all.push_back(one.function());
  return all;
}
using texts = std::vector<std::string>;

}  // namespace

// ---- the program whose stacks are looked at ---------------------------------------------------------------------------

namespace app {

std::vector<async_frame> seen;

[[gnu::noinline]] void look() { seen = async_stack(); }

task<int> leaf(int n) {
  look();
  co_return n;
}
task<int> middle(const std::string& text) { co_return co_await leaf(static_cast<int>(text.size())); }
task<> outer() { co_await middle("four"); }

template <class T, int N>
task<T> generic(std::vector<T>) {
  co_return co_await leaf(N);
}
struct service {
  task<> run() const { co_await generic<int, 5>({}); }
};

task<> recurse(int depth) {
  if (depth == 0) co_return look();
  co_await recurse(depth - 1);
}

task<> sheltered() {
  auto r = co_await as_result(leaf(1));
  EXPECT_TRUE(r);
}
task<> forked() { co_await when_all(leaf(1), sheltered()); }

task<> fails() {
  throw std::runtime_error{"failed"};
  co_return;
}
task<> recovers() {
  try {
    co_await fails();
  } catch (const std::runtime_error&) {
    look();
  }
}

struct looks_at_exit {
  ~looks_at_exit() { look(); }
};
task<> stands_in(gate& g) {
  looks_at_exit here;
  co_await g;
}
task<> waits(gate& g) { co_await stands_in(g); }

task<> waits_often(gate* gates, int times) {
  for (int i = 0; i != times; ++i) co_await stands_in(gates[i]);
}

weft::detail::root* self;
task<> waits_as_self(gate& g) {
  self = weft::detail::current_root();
  static_cast<void>(co_await as_result(waits(g)));
}

// Plain functions, in a fiber. Each does something after its call, which is then none that ends it.
[[gnu::noinline]] void looks_deeper() {
  look();
  asm volatile("");
}
[[gnu::noinline]] void looks_in_fiber() {
  looks_deeper();
  asm volatile("");
}
[[gnu::noinline]] int awaits_leaf() { return weft::await(leaf(1)) + 1; }
[[gnu::noinline]] void waits_in_fiber(gate& g, int times) {
  self = weft::detail::current_root();
  for (int i = 0; i != times; ++i) weft::await(waits((&g)[i]));
  asm volatile("");
}
task<> waits_shielded(gate& g) { co_await weft::shielded(waits(g)); }
[[gnu::noinline]] void waits_shielded_in_fiber(gate& g) {
  weft::await(weft::shielded(waits(g)));
  asm volatile("");
}
[[gnu::noinline]] void blocks_in_fiber() {
  weft::sync_wait(leaf(1));
  asm volatile("");
}

template <class F, class... Args>
task<> in_fiber(F f, Args... args) {
  auto body = [&](weft::scope& s) -> task<> { co_await s.go(f, args...); };
  co_await weft::with_scope(body);
}

}  // namespace app

// ---- from inside ------------------------------------------------------------------------------------------------------

TEST(async_stack, names_who_awaits_whom_from_a_plain_function_down_to_the_root) {
  sync_wait(app::outer());
  ASSERT_EQ(app::seen.size(), 3u);
  const texts all = names(app::seen);
  EXPECT_EQ(all[0], "app::leaf(int)");
  EXPECT_TRUE(all[1].starts_with("app::middle(std::") && all[1].ends_with("const&)")) << all[1];
  EXPECT_EQ(all[2], "app::outer()");
}

TEST(async_stack, names_templates_members_and_lambdas) {
  auto lambda = [](int) -> task<> { co_await app::service{}.run(); };
  sync_wait(lambda(1));
  const texts all = names(app::seen);
  ASSERT_EQ(all.size(), 4u);
  EXPECT_EQ(all[0], "app::leaf(int)");
  EXPECT_TRUE(all[1].starts_with("weft::task<int> app::generic<int, 5>(std::")) << all[1];
  EXPECT_NE(all[1].find("vector<int"), std::string::npos) << all[1];
  EXPECT_EQ(all[2], "app::service::run() const");
  EXPECT_NE(all[3].find("operator()(int) const"), std::string::npos) << all[3];
}

TEST(async_stack, has_a_frame_for_each_level_of_a_recursion) {
  sync_wait(app::recurse(3));
  EXPECT_EQ(names(app::seen), texts(4, "app::recurse(int)"));
  EXPECT_EQ(app::seen[0], app::seen[3]);
}

TEST(async_stack, passes_over_boundaries) {
  sync_wait(app::sheltered());
  EXPECT_EQ(names(app::seen), (texts{"app::leaf(int)", "app::sheltered()"}));
}

TEST(async_stack, goes_on_in_who_waits_for_the_child) {
  sync_wait(app::forked());
  EXPECT_EQ(names(app::seen), (texts{"app::leaf(int)", "app::sheltered()", "app::forked()"}));
}

TEST(async_stack, forgets_who_has_returned_or_thrown) {
  sync_wait([]() -> task<> {
    co_await app::leaf(1);
    app::look();
  }());
  EXPECT_EQ(app::seen.size(), 1u);
  sync_wait(app::recovers());
  EXPECT_EQ(names(app::seen), (texts{"app::recovers()"}));
}

TEST(async_stack, passes_over_a_task_that_has_ended_and_forgets_it_when_it_goes) {
  const auto looks = [] {
    app::look();
    return names(app::seen).size();
  };
  auto awaits = [&]() -> task<> {
    {
      weft::task<> named = app::recurse(2);
      co_await std::move(named);
      EXPECT_EQ(looks(), 1u);
      named = app::recurse(0);  // which the old one outlives
      EXPECT_EQ(looks(), 1u);
    }
    EXPECT_EQ(looks(), 1u);
    EXPECT_EQ((co_await app::generic<int, 5>({}), looks()), 1u);
    EXPECT_EQ(looks(), 1u);
  };
  sync_wait(awaits());
}

TEST(async_stack, is_empty_outside_of_tasks) {
  EXPECT_TRUE(async_stack().empty());
  app::seen.resize(7);
  start(app::fails(), [](weft::result<void>) { app::look(); });
  EXPECT_TRUE(app::seen.empty());
}

TEST(async_stack, is_there_while_a_stop_unwinds) {
  gate g;
  stop_source stop;
  bool stopped = false;
  start(app::waits(g), [&](weft::result<void> r) { stopped = r.is_stopped(); }, stop.token());
  stop.request_stop();
  EXPECT_TRUE(stopped);
  EXPECT_EQ(names(app::seen), (texts{"app::stands_in(test::gate&)", "app::waits(test::gate&)"}));
}

TEST(async_stack, finds_the_module_and_the_place_in_it) {
  sync_wait(app::outer());
  EXPECT_TRUE(std::filesystem::equivalent(app::seen[0].module(), "/proc/self/exe"));
  EXPECT_GT(app::seen[0].offset(), 0u);
  const async_frame nowhere{reinterpret_cast<const void*>(16)};
  EXPECT_EQ(nowhere.module(), "");
  EXPECT_EQ(nowhere.function(), "");
  EXPECT_EQ(to_string(std::vector{nowhere}), "#0  0x10\n");
}

TEST(async_stack, prints_a_line_a_frame) {
  sync_wait(app::sheltered());
  EXPECT_EQ(to_string(app::seen), "#0  app::leaf(int)\n#1  app::sheltered()\n");
}

namespace app {

// Looks at whatever runs when something is posted to it.
struct looking_executor final : weft::executor {
  void post(weft::job& work) noexcept override {
    stacks.push_back(names(async_stack()));
    loop.post(work);
  }
  weft::manual_executor loop;
  std::vector<texts> stacks;
};

task<> races(gate& first, gate& second) { co_await weft::when_any(waits(first), waits(second)); }

}  // namespace app

// It stops its sibling, and what that is posted to may look, when its own frames are gone.
TEST(async_stack, of_a_child_that_has_ended_is_that_of_its_parent) {
  gate first, second;
  app::looking_executor ex;
  bool over = false;
  start(ex, app::races(first, second), [&](weft::result<void>) { over = true; });
  ex.loop.run_all();
  ex.stacks.clear();
  first.open();
  ex.loop.run_all();
  EXPECT_TRUE(over);
  ASSERT_GE(ex.stacks.size(), 2U);
  EXPECT_EQ(ex.stacks[0], texts{});  // of the opener
  EXPECT_EQ(ex.stacks[1], (texts{"app::races(test::gate&, test::gate&)"}));
}

// ---- fibers -----------------------------------------------------------------------------------------------------------

namespace {

/// The positions of these in the stack, or its size, in ascending order if it is as it should be.
std::vector<std::size_t> places(const texts& stack, const std::vector<std::string>& wanted) {
  std::vector<std::size_t> at;
  for (const std::string& one : wanted)
    at.push_back(static_cast<std::size_t>(
        std::ranges::find_if(stack, [&](const std::string& name) { return name.find(one) != name.npos; }) -
        stack.begin()));
  return at;
}

void expect_in_order(const texts& stack, const std::vector<std::string>& wanted) {
  const auto at = places(stack, wanted);
  for (std::size_t i = 0; i != at.size(); ++i) {
    EXPECT_LT(at[i], stack.size()) << wanted[i] << " in\n" << testing::PrintToString(stack);
    if (i != 0) {
      EXPECT_LT(at[i - 1], at[i]) << testing::PrintToString(stack);
    }
  }
}

}  // namespace

TEST(async_stack_of_a_fiber, shows_its_calls_and_then_who_awaits_it) {
  sync_wait(app::in_fiber(app::looks_in_fiber));
  const texts all = names(app::seen);
  ASSERT_GE(all.size(), 5U);
  EXPECT_EQ(all[0], "app::look()");
  EXPECT_EQ(all[1], "app::looks_deeper()");
  EXPECT_EQ(all[2], "app::looks_in_fiber()");
  expect_in_order(all, {"app::looks_in_fiber()", "run_in_fiber", "app::in_fiber"});
  EXPECT_EQ(places(all, {"coroutine_core::start"})[0], all.size());
}

TEST(async_stack_of_a_fiber, shows_its_calls_behind_the_task_that_it_awaits) {
  sync_wait(app::in_fiber(app::awaits_leaf));
  const texts all = names(app::seen);
  ASSERT_FALSE(all.empty());
  EXPECT_EQ(all[0], "app::leaf(int)");
  expect_in_order(all, {"app::leaf(int)", "app::awaits_leaf()", "app::in_fiber"});
  EXPECT_EQ(places(all, {"fiber::suspend"})[0], all.size());
}

TEST(async_stack_of_a_fiber, is_told_from_outside_while_it_waits) {
  gate g;
  bool over = false;
  start(app::in_fiber([](gate* at) { app::waits_in_fiber(*at, 1); }, &g),
        [&](weft::result<void> r) { over = r.has_value(); });
  const auto first = async_stack(weft::detail::id_of(*app::self));
  expect_in_order(names(first), {"app::waits(test::gate&)", "app::waits_in_fiber(test::gate&, int)", "run_in_fiber"});
  EXPECT_EQ(async_stack(weft::detail::id_of(*app::self)), first);
  EXPECT_FALSE(over);
  g.open();
  EXPECT_TRUE(over);
}

TEST(async_stack_of_a_fiber, is_in_the_report_of_an_overdue_scope) {
  test::virtual_clock time;
  gate g;
  std::vector<std::string> seen;
  auto all = [&]() -> task<> {
    auto body = [&](weft::scope& s) -> task<> {
      s.go(app::waits_shielded_in_fiber, std::ref(g));
      s.request_stop();
      co_return;
    };
    auto note = [&](const weft::overdue_scope& what) {
      for (const weft::overdue_child& one : what.children)
        for (const std::string& name : names(one.stack)) seen.push_back(name);
      g.open();
    };
    co_await weft::with_scope({.stop_within = std::chrono::seconds{2}, .on_overdue = note}, body);
  };
  static_cast<void>(test::run_timed(time, all()));
  expect_in_order(seen, {"app::waits_shielded_in_fiber(test::gate&)", "run_in_fiber"});
}

// The newest fork is asked first.
TEST(async_stack_of_a_fiber, does_not_go_on_in_that_of_the_next_fork) {
  test::virtual_clock time;
  gate g;
  int tasks = 0;
  auto all = [&]() -> task<> {
    auto body = [&](weft::scope& s) -> task<> {
      s.fork(app::waits_shielded(g));
      s.go(app::waits_shielded_in_fiber, std::ref(g));
      s.fork(app::waits_shielded(g));
      s.request_stop();
      co_return;
    };
    auto note = [&](const weft::overdue_scope& what) {
      for (const weft::overdue_child& one : what.children) {
        if (one.function.function().find("waits_shielded(") == std::string::npos) continue;
        ++tasks;
        for (const std::string& name : names(one.stack)) EXPECT_EQ(name.find("in_fiber"), std::string::npos) << name;
      }
      g.open();
    };
    co_await weft::with_scope({.stop_within = std::chrono::seconds{2}, .on_overdue = note}, body);
  };
  static_cast<void>(test::run_timed(time, all()));
  EXPECT_EQ(tasks, 2);
}

// One look a turn: whoever looks all the time leaves the waker little room.
TEST(async_stack_of_a_fiber, agrees_with_whoever_wakes_meanwhile) {
  const int times = test::rounds(100);
  const auto gates = std::make_unique<gate[]>(static_cast<std::size_t>(times));
  std::atomic<weft::detail::root*> waiting{nullptr};
  std::atomic<int> turn{-1};
  std::atomic<bool> seen{false}, over{false}, left{false};
  std::thread reader{[&] {
    until([&] { return waiting.load() != nullptr; });
    std::vector<async_frame> stack;
    until([&] { return !(stack = async_stack(weft::detail::id_of(*waiting.load()))).empty(); });
    expect_in_order(names(stack), {"app::waits(test::gate&)", "app::waits_in_fiber"});
    seen.store(true);
    for (int last = -1; !over.load(); last = turn.load()) {
      until([&] { return over.load() || turn.load() != last; });
      stack = async_stack(weft::detail::id_of(*waiting.load()));
      EXPECT_TRUE(stack.empty() || stack.size() > 4) << stack.size();
    }
    left.store(true);
  }};
  std::thread waker{[&] {
    until([&] { return seen.load(); });
    for (int i = 0; i != times; ++i) {
      turn.store(i);
      until([&] { return gates[i].waiting() != 0; });
      gates[i].open();
    }
  }};
  auto waits = [&] {
    waiting.store(weft::detail::current_root());
    app::waits_in_fiber(*gates.get(), times);
    over.store(true);
    until([&] { return left.load(); });
  };
  sync_wait(app::in_fiber(waits));
  waker.join();
  reader.join();
}

TEST(async_stack_of_a_fiber, two_ask_for_one_that_waits_for_both) {
  gate doors[2];
  std::atomic<weft::detail::root*> children[2]{};
  gate begin;
  auto child = [&](int i) -> task<> {
    co_await begin;  // has a root of its own from here on
    children[i].store(weft::detail::current_root());
    co_await app::waits(doors[i]);
  };
  auto waits_for_both = [&] {
    weft::await(when_all(child(0), child(1)));
    asm volatile("");
  };
  bool over = false;
  start(app::in_fiber(waits_for_both), [&](weft::result<void> r) { over = r.has_value(); });
  begin.open();
  std::vector<std::thread> readers;
  for (auto& one : children)
    readers.emplace_back([&] {
      const auto stack = async_stack(weft::detail::id_of(*one.load()));
      expect_in_order(names(stack), {"app::waits(test::gate&)", "operator()", "run_in_fiber", "app::in_fiber"});
      for (int i = 0; i != test::rounds(200); ++i) EXPECT_EQ(async_stack(weft::detail::id_of(*one.load())), stack);
    });
  for (std::thread& one : readers) one.join();
  for (gate& door : doors) door.open();
  EXPECT_TRUE(over);
}

// ---- from outside -----------------------------------------------------------------------------------------------------

TEST(async_stack_from_outside, is_that_of_a_root_that_waits) {
  gate g;
  start(app::waits_as_self(g), [](weft::result<void>) { app::self = nullptr; });
  EXPECT_EQ(names(async_stack(weft::detail::id_of(*app::self))),
            (texts{"app::stands_in(test::gate&)", "app::waits(test::gate&)", "app::waits_as_self(test::gate&)"}));
  g.open();
  EXPECT_EQ(app::self, nullptr);
}

TEST(async_stack_from_outside, is_empty_for_a_root_that_runs) {
  sync_wait([]() -> task<> {
    EXPECT_TRUE(async_stack(weft::detail::id_of(*weft::detail::current_root())).empty());
    co_return;
  }());
}

// The reader must see either nothing or a whole stack, and no wake-up may be lost by it.
TEST(async_stack_from_outside, agrees_with_whoever_wakes_meanwhile) {
  const int times = test::rounds(2000);
  const auto gates = std::make_unique<gate[]>(times);
  std::atomic<weft::detail::root*> waiting{nullptr};
  std::atomic<bool> seen{false}, over{false}, left{false};
  std::thread reader{[&] {
    until([&] { return waiting.load() != nullptr; });
    while (!over.load()) {
      const auto stack = async_stack(weft::detail::id_of(*waiting.load()));
      if (stack.empty()) continue;
      EXPECT_EQ(stack.size(), 3u);
      if (!seen.exchange(true)) {
        EXPECT_EQ(stack[1].function(), "app::waits_often(test::gate*, int)");
      }
    }
    left.store(true);
  }};
  std::thread waker{[&] {
    until([&] { return seen.load(); });  // so the reader has seen one stack at least, whoever runs first
    for (int i = 0; i != times; ++i) {
      until([&] { return gates[i].waiting() != 0; });
      gates[i].open();
    }
  }};
  auto body = [&]() -> task<> {
    waiting.store(weft::detail::current_root());
    co_await app::waits_often(gates.get(), times);
    over.store(true);
    until([&] { return left.load(); });  // the root outlives its reader
  };
  sync_wait(body());
  waker.join();
  reader.join();
}

TEST(async_stack_from_outside, agrees_with_whoever_stops_meanwhile) {
  for (int round = 0; round != test::rounds(200); ++round) {
    gate g;
    stop_source stop;
    std::atomic<weft::detail::root*> waiting{nullptr};
    std::atomic<bool> over{false}, left{false};
    std::thread reader{[&] {
      until([&] { return waiting.load() != nullptr; });
      while (!over.load()) static_cast<void>(async_stack(weft::detail::id_of(*waiting.load())));
      left.store(true);
    }};
    std::thread stopper{[&] { stop.request_stop(); }};
    bool stopped = false;
    auto body = [&]() -> task<> {
      waiting.store(weft::detail::current_root());
      stopped = (co_await as_result(app::waits(g))).is_stopped();
      over.store(true);
      until([&] { return left.load(); });  // the root outlives its reader
    };
    sync_wait(body(), stop.token());
    stopper.join();
    reader.join();
    EXPECT_TRUE(stopped);
  }
}

// ---- last words -------------------------------------------------------------------------------------------------------

namespace app {

task<> breaks_a_contract() {
  co_await leaf(1);
  WEFT_EXPECTS(false, "the contract was broken");
}
task<> calls_breaker() { static_cast<void>(co_await as_result(breaks_a_contract())); }

task<> breaks_deep_down(int depth) {
  if (depth == 0)
    co_await breaks_a_contract();
  else
    co_await breaks_deep_down(depth - 1);
}

void throws() { throw std::runtime_error{"nobody may catch this"}; }
void throws_in_noexcept() noexcept { throws(); }
task<> terminates() {
  throws_in_noexcept();
  co_return;
}
task<> calls_terminator() { co_await terminates(); }

task<> aborts() {
  std::abort();
  co_return;
}
task<> calls_aborter() { co_await aborts(); }

task<> calls_failure() {
  co_await leaf(1);
  co_await fails();
}
task<> passes_on() {
  try {
    co_await calls_failure();
  } catch (...) {
    throw;
  }
}

}  // namespace app

class async_stack_death : public testing::Test {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

TEST_F(async_stack_death, a_broken_contract_prints_it_first) {
  EXPECT_DEATH(sync_wait(app::calls_breaker()),
               "async stack of the running task, innermost first\n"
               "  #0  app::breaks_a_contract\\(\\)\n"
               "  #1  app::calls_breaker\\(\\)\n"
               "weft: the contract was broken\n$");
}

TEST_F(async_stack_death, of_a_fiber_it_has_the_calls) {
  EXPECT_DEATH(sync_wait(app::in_fiber(app::blocks_in_fiber)),
               "async stack of the running task(.|\n)*app::blocks_in_fiber\\(\\)(.|\n)*app::in_fiber");
}

TEST_F(async_stack_death, a_deep_stack_shows_its_two_ends) {
  EXPECT_DEATH(sync_wait(app::breaks_deep_down(60)),
               "  #0  app::breaks_a_contract\\(\\)\n"
               "  #1  app::breaks_deep_down\\(int\\)\n(.*\n)*"
               "  #39 app::breaks_deep_down\\(int\\)\n"
               "  ... 14 more\n"
               "  #54 app::breaks_deep_down\\(int\\)\n(.*\n)*"
               "  #61 app::breaks_deep_down\\(int\\)\n"
               "weft: the contract");
}

TEST_F(async_stack_death, terminate_prints_it) {
  EXPECT_DEATH(sync_wait(app::calls_terminator()),
               "  #0  app::terminates\\(\\)\n"
               "  #1  app::calls_terminator\\(\\)\n"
               "(.*\n)*.*nobody may catch this");  // and the handler before it goes on
}

TEST_F(async_stack_death, abort_and_so_a_failed_assert_prints_it_mangled) {
  EXPECT_DEATH(sync_wait(app::calls_aborter()), "  #0  _ZN3app6abortsEv\n  #1  _ZN3app13calls_aborterEv\n$");
}

TEST_F(async_stack_death, an_exception_out_of_sync_wait_tells_which_task_threw_it) {
  EXPECT_DEATH(std::thread([] { sync_wait(app::passes_on()); }).join(),
               "async stack of the task that threw, innermost first\n"
               "  #0  app::fails\\(\\)\n"
               "  #1  app::calls_failure\\(\\)\n"
               "  #2  app::passes_on\\(\\)\n"
               "(.*\n)*.*failed");
}

TEST_F(async_stack_death, an_exception_from_elsewhere_has_no_task) {
  EXPECT_DEATH(std::thread([] {
                 try {
                   sync_wait(app::passes_on());
                 } catch (const std::runtime_error&) {
                 }
                 throw std::runtime_error{"from elsewhere"};  // likely at the address of the first
               }).join(),
               "^(weft: chaos, [^\n]*\n)?(terminate called|libc\\+\\+abi: terminating)(.*\n)*.*from elsewhere");
}

// ---- without symbols --------------------------------------------------------------------------------------------------

namespace {

std::string output_of(const std::string& command) {
  std::string text;
  FILE* pipe = ::popen(command.c_str(), "r");
  char part[256];
  while (std::fgets(part, sizeof part, pipe) != nullptr) text += part;
  ::pclose(pipe);
  return text;
}

}  // namespace

// Run by the next test, in a copy of this program without symbols.
TEST(async_stack_stripped, DISABLED_prints) {
  sync_wait(app::sheltered());
  std::fputs(to_string(app::seen).c_str(), stdout);
}

TEST(async_stack_stripped, gives_module_and_offset_which_the_tool_resolves) {
  namespace fs = std::filesystem;
  const fs::path program = fs::read_symlink("/proc/self/exe");
  const fs::path folder = testing::TempDir() + "weft_stripped_" + std::to_string(::getpid());
  const fs::path stripped = folder / program.filename(), printed = folder / "printed";
  fs::create_directories(folder);
  if (std::system(("strip -o " + stripped.string() + " " + program.string()).c_str()) != 0)
    GTEST_SKIP() << "there is no strip here";

  const std::string plain = output_of(stripped.string() +
                                      " --gtest_also_run_disabled_tests --gtest_filter=*DISABLED_prints 2>&1"
                                      " | grep '^#' | tee " +
                                      printed.string());
  EXPECT_TRUE(plain.starts_with("#0  " + stripped.string() + "+0x")) << plain;
  EXPECT_EQ(plain.find("app::"), std::string::npos) << plain;

  const std::string resolved = output_of(WEFT_SYMBOLIZE " " + program.string() + " <" + printed.string() + " 2>&1");
  EXPECT_TRUE(resolved.starts_with("#0  app::leaf(int)")) << resolved;
  EXPECT_NE(resolved.find("\n#1  app::sheltered()"), std::string::npos) << resolved;
  fs::remove_all(folder);
}

// What GCC's library can't read in them, LLVM's can: `demangle` gives the outline, or more than it.
TEST(async_stack, names_a_template_with_a_constrained_parameter) {
  const auto text_of = [](const auto& text) { return std::string{text ? text.get() : "none"}; };
  const auto outline = [&](std::string_view mangled) { return text_of(weft::detail::outline_of(mangled)); };
  const auto name = [&](std::string_view mangled) { return text_of(weft::detail::demangle(mangled)); };
  EXPECT_EQ(name("_ZN4weft3runIiEEvT_"), "void weft::run<int>(int)");
  constexpr std::string_view constrained = "_ZNK4weft4pool3runITkNS_9awaitableENS_4taskIvEEEEDaOT_";
  EXPECT_NE(name(constrained).find("weft::pool::run<"), std::string::npos) << name(constrained);
  EXPECT_EQ(outline(constrained), "weft::pool::run<...>");
  EXPECT_EQ(outline("_Z5startITk9awaitableiEvT_"), "start<...>");
  EXPECT_EQ(outline("_ZN12_GLOBAL__N_13runITk9awaitableiEEvT_"), "(anonymous namespace)::run<...>");
  for (const char* const bad :
       {"", "main", "_Z", "_ZN", "_ZN4weft0IE", "_ZN9999weftI", "_ZN99999999999999999999weftI"}) {
    EXPECT_EQ(outline(bad), "none") << bad;
    EXPECT_EQ(name(bad), "none") << bad;
  }
}
