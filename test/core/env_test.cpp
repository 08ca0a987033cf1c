// What work inherits: executor, stop, deadline, memory, locals; and where its frames come from.
#include <weft/combine.hpp>
#include <weft/executor.hpp>
#include <weft/future.hpp>
#include <weft/generator.hpp>
#include <weft/pool.hpp>
#include <weft/scope.hpp>
#include <weft/with.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <memory>
#include <memory_resource>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "support/weft_test.hpp"

namespace {

using weft::as_result;
using weft::current_env;
using weft::env;
using weft::fork;
using weft::scope;
using weft::stop_source;
using weft::sync_wait;
using weft::task;
using weft::with_env;
using weft::with_local;
using weft::with_memory;
using weft::with_scope;
using weft::with_stop;

task<> pass(test::gate& door) { co_await door; }

[[gnu::noinline]] task<int> level(int depth) {
  if (depth == 0) co_return 0;
  co_return 1 + co_await level(depth - 1);
}
weft::generator<int> count(int n) {
  for (int i = 0; i != n; ++i) co_yield i;
}
weft::generator<int> (*volatile opaque_count)(int) = count;
task<int> (*volatile opaque_level)(int) = level;  // volatile: its frames do not elide
task<int> deep(int depth) { co_return co_await opaque_level(depth); }

// How many frames the memory chosen here has given.
std::size_t frames_here() { return current_env().frames->live(); }
task<> more(std::size_t before) {
  EXPECT_GT(frames_here(), before);
  co_return;
}
task<> (*volatile opaque_more)(std::size_t) = more;

// ---- memory -----------------------------------------------------------------------------------------------------------------

WEFT_TEST("with_memory: every frame below comes from there, and none behind it") {
  test::counting_resource memory;
  EXPECT_EQ(co_await with_memory(&memory, deep, 10), 10);
  EXPECT_GE(memory.allocations, 1U);
  EXPECT_EQ(memory.live, 0U);
  const std::size_t before = memory.allocations;
  EXPECT_EQ(co_await deep(10), 10);
  EXPECT_EQ(memory.allocations, before);
}

WEFT_TEST("with_memory: nests, and gives way to the outer one again") {
  test::counting_resource outer, inner;
  auto in_outer = [&]() -> task<> {
    co_await deep(3);
    const std::size_t outer_before = outer.allocations;
    co_await with_memory(&inner, deep, 3);
    EXPECT_GE(inner.allocations, 1U);
    EXPECT_EQ(outer.allocations, outer_before + 1);  // the frame of with_memory itself
    const std::size_t inner_before = inner.allocations;
    co_await deep(3);
    EXPECT_GT(outer.allocations, outer_before + 1);
    EXPECT_EQ(inner.allocations, inner_before);
    EXPECT_EQ(current_env().memory, &outer);
  };
  co_await with_memory(&outer, in_outer);
  EXPECT_EQ(outer.live + inner.live, 0U);
  EXPECT_EQ(current_env().memory, nullptr);
}

WEFT_TEST("with_memory: goes away with an exception and with a stop") {
  test::counting_resource memory;
  auto fails = []() -> task<> {
    co_await deep(2);
    throw std::runtime_error{"out"};
  };
  EXPECT_TRUE((co_await as_result(with_memory(&memory, fails))).exception() != nullptr);
  EXPECT_EQ(current_env().memory, nullptr);

  test::gate never;
  auto body = [&](scope& s) -> task<> {
    fork<> f = s.fork(with_memory(&memory, pass, std::ref(never)));
    f.request_stop();
    static_cast<void>(co_await as_result(f));
    EXPECT_EQ(current_env().memory, nullptr);
    const std::size_t before = memory.allocations;
    co_await deep(2);
    EXPECT_EQ(memory.allocations, before);
  };
  co_await with_scope(body);
  EXPECT_EQ(memory.live, 0U);
}

WEFT_TEST("with_memory: is still there after a wait, and is nobody else's meanwhile") {
  test::counting_resource memory;
  test::gate door;
  auto waits = [&]() -> task<> {
    co_await door;
    const std::size_t before = memory.allocations;
    co_await deep(3);
    EXPECT_GT(memory.allocations, before);
  };
  auto meanwhile = [&]() -> task<> {
    const std::size_t before = memory.allocations;
    co_await deep(3);
    EXPECT_EQ(memory.allocations, before);
    door.open();
    co_return;
  };
  co_await weft::when_all(with_memory(&memory, waits), meanwhile());
  EXPECT_EQ(memory.live, 0U);
}

// A task that has gone there is known to have its frames from the worker, until it says otherwise.
TEST(with_memory, is_still_there_after_a_wait_on_a_pool) {
  const weft::pool other{{.threads = 1}};
  test::counting_resource memory;
  auto waits = [&]() -> task<> {
    co_await weft::yield();
    const std::size_t before = memory.allocations;
    co_await deep(3);
    EXPECT_GT(memory.allocations, before);
  };
  auto goes_there = [&]() -> task<> {
    co_await weft::resume_on(other.executor());
    co_await with_memory(&memory, waits);
    co_await weft::yield();
    const std::size_t before = memory.allocations;
    co_await deep(3);
    EXPECT_EQ(memory.allocations, before);
  };
  weft::sync_wait(goes_there());
  weft::sync_wait(weft::with_scope([&](weft::scope& s) -> task<> {
    auto forked = s.fork_on(other.executor(), with_memory(&memory, waits));
    co_await std::move(forked);
  }));
  EXPECT_EQ(memory.live, 0U);
}

WEFT_TEST("with_memory: is inherited by children, forks and generators") {
  test::counting_resource memory;
  auto below = [&]() -> task<> {
    co_await weft::when_all(opaque_more(frames_here()), opaque_more(frames_here()));
    auto body = [](scope& s) -> task<> { co_await s.fork(opaque_more(frames_here())); };
    co_await with_scope(body);
    const std::size_t before = frames_here();
    int sum = 0;
    for (const int n : opaque_count(3)) {
      EXPECT_GT(frames_here(), before);
      sum += n;
    }
    EXPECT_EQ(sum, 3);
  };
  co_await with_memory(&memory, below);
  EXPECT_EQ(memory.live, 0U);
}

WEFT_TEST("with_memory: what start() begins and what is shared has its own") {
  test::counting_resource memory;
  test::gate door;
  std::size_t before = 0;
  bool ended = false;
  auto work = [&]() -> task<> {
    co_await door;
    before = memory.allocations;
    co_await deep(3);
    EXPECT_EQ(memory.allocations, before);
    EXPECT_EQ(current_env().memory, nullptr);
  };
  auto below = [&](task<> outside) -> task<> {
    weft::start(std::move(outside), [&](weft::result<void>) { ended = true; });
    co_return;
  };
  co_await with_memory(&memory, below, work());
  door.open();
  EXPECT_TRUE(ended);
}

WEFT_TEST("scope_memory: frames of body and forks, and what they cost") {
  test::counting_resource memory;
  auto body = [&](scope& s) -> task<> {
    EXPECT_EQ(current_env().memory, &memory);
    EXPECT_GE(memory.live, 1U);  // its own
    auto nothing = []() -> task<> { co_return; };
    const std::size_t bytes = memory.live_bytes;
    fork<> f = s.fork(nothing());
#if defined(__clang__) && defined(__OPTIMIZE__) && !defined(WEFT_TEST_ASAN) && !defined(__LLVM_INSTR_PROFILE_GENERATE)
    EXPECT_EQ(memory.live_bytes - bytes, 64U);
#else
    EXPECT_LE(memory.live_bytes - bytes, 192U);
#endif
    co_await std::move(f);
    s.reclaim();  // one block is kept for the next fork
    EXPECT_EQ(memory.live_bytes, bytes);
  };
  co_await with_scope({.memory = &memory}, body);
  EXPECT_EQ(memory.live, 0U);
}

WEFT_TEST("scope_memory: a resource that runs dry throws where the fork is made, and the scope ends cleanly") {
  for (std::size_t dry = 0; dry != 8; ++dry) {
    test::counting_resource memory;
    memory.fail_after = dry;
    test::gate door;
    int made = 0;
    auto body = [&](scope& s) -> task<> {
      try {
        for (;; ++made) s.fork(pass(door));
      } catch (const std::bad_alloc&) {
        door.open();
        throw;
      }
      co_return;
    };
    const auto how = co_await as_result(with_scope({.memory = &memory}, body));
    EXPECT_TRUE(how.exception() != nullptr);
    // The body has one frame or two, as the compiler likes; a fork has one, and a record but for the first.
    EXPECT_LE(2 * made, static_cast<int>(dry));
    EXPECT_GE(2 * made + 3, static_cast<int>(dry));
    EXPECT_EQ(memory.live, 0U);
  }
}

WEFT_TEST("scope_memory: that is shared serves several executors") {
  std::pmr::synchronized_pool_resource memory;
  weft::new_thread_executor threads;
  auto body = [&](scope& s) -> task<int> {
    int sum = 0;
    std::vector<fork<int>> some;
    for (int i = 0; i != test::rounds(100); ++i) some.push_back(s.fork_on(threads, deep, 5));
    for (auto& one : some) sum += co_await std::move(one);
    co_return sum;
  };
  EXPECT_EQ(co_await with_scope({.memory = &memory, .memory_is_shared = true}, body), 5 * test::rounds(100));
}

// ---- locals -----------------------------------------------------------------------------------------------------------------

const weft::local<int> number{1};
const weft::local<std::string> name{"nobody"};

task<int> read_number() { co_return number.get(); }

WEFT_TEST("local: is what with_local bound, for all below, and otherwise its default") {
  EXPECT_EQ(*number, 1);
  EXPECT_FALSE(number.is_bound());
  auto inner = [&]() -> task<> {
    EXPECT_EQ(*number, 3);
    EXPECT_EQ(*name, "outer");
    co_return;
  };
  auto outer = [&]() -> task<> {
    EXPECT_TRUE(number.is_bound());
    EXPECT_EQ(co_await read_number(), 2);
    auto both = [&]() -> task<> { co_await with_local(number, 3, inner); };
    co_await with_local(name, "outer", both);
    EXPECT_EQ(*number, 2);
    EXPECT_EQ(name->size(), 6U);
    auto [a, b] = co_await weft::when_all(read_number(), with_local(number, 9, read_number));
    EXPECT_EQ(a, 2);
    EXPECT_EQ(b, 9);
    auto body = [&](scope& s) -> task<int> {
      auto forks = [&]() -> task<int> { co_return co_await s.fork(read_number()); };
      co_return co_await with_local(number, 5, forks);
    };
    EXPECT_EQ(co_await with_scope(body), 2);  // a fork has the locals of its scope
  };
  co_await with_local(number, 2, outer);
  EXPECT_EQ(number.get(), 1);
}

// More locals than a binding has slots, bound again and again, further in by others: each look-up gives the innermost.
TEST(local, is_found_among_any_number_of_bindings) {
  using weft::detail::binding;
  constexpr std::size_t keys = 40;
  std::array<int, keys> key{};
  std::array<int, 500> values{};
  std::array<const void*, keys> expected{};
  std::vector<std::unique_ptr<binding>> all;
  for (std::size_t i = 0; i != values.size(); ++i) {
    const std::size_t which = i * i % 97 % keys;
    all.push_back(std::make_unique<binding>(&key[which], &values[i], i != 0 ? all.back().get() : nullptr));
    expected[which] = &values[i];
    for (std::size_t k = 0; k != keys; ++k) ASSERT_EQ(all.back()->find(&key[k]), expected[k]) << k << " after " << i;
  }
}

TEST(local, outside_of_any_task_is_its_default) {
  EXPECT_EQ(*number, 1);
  EXPECT_EQ(*name, "nobody");
}

// ---- stop -----------------------------------------------------------------------------------------------------------------

WEFT_TEST("with_stop: a stop of the token ends what is below, and not the task") {
  for (const bool before : {true, false}) {
    stop_source source;
    test::gate never;
    if (before) source.request_stop();
    auto work = [&]() -> task<> {
      if (!before) source.request_stop({.reason = "the token"});
      EXPECT_EQ(std::string{weft::why_stopped().front().reason}, before ? "stop requested" : "the token");
      co_await never;
    };
    EXPECT_TRUE((co_await as_result(with_stop(source.token(), work))).is_stopped());
    EXPECT_FALSE(current_env().stop.stop_requested());
    EXPECT_EQ(co_await with_stop(source.token(), level, 2), 2);  // never waits
  }
}

// ---- executor, and all of it -------------------------------------------------------------------------------------------------

WEFT_TEST("with_env: on its executor, with its memory and deadline, and home again") {
  weft::manual_executor loop;
  test::counting_resource memory;
  const auto home = std::this_thread::get_id();
  const auto soon = std::chrono::steady_clock::now() + std::chrono::hours{1};
  std::atomic<bool> over{false};
  std::jthread other{[&] {
    while (!over) loop.run_one();
  }};
  const auto there = other.get_id();
  env elsewhere = current_env();
  elsewhere.executor = &loop;
  elsewhere.memory = &memory;
  elsewhere.deadline = soon;
  auto work = [&](int depth) -> task<int> {
    EXPECT_EQ(std::this_thread::get_id(), there);
    EXPECT_EQ(current_env().deadline, soon);
    EXPECT_EQ(*number, 4);
    const std::size_t before = memory.allocations;
    const int reached = co_await deep(depth);
    EXPECT_GT(memory.allocations, before);
    co_return reached;
  };
  auto outside = [&]() -> task<int> {
    elsewhere.locals = current_env().locals;
    co_return co_await with_env(elsewhere, work, 3);
  };
  EXPECT_EQ(co_await with_local(number, 4, outside), 3);
  EXPECT_EQ(std::this_thread::get_id(), home);
  over = true;
  EXPECT_EQ(memory.live, 0U);
}

WEFT_TEST("with_env: back to weft's own frame memory") {
  test::counting_resource memory;
  auto below = [&]() -> task<> {
    env plain = current_env();
    plain.memory = nullptr;
    auto work = [&]() -> task<> {
      const std::size_t before = memory.allocations;
      co_await deep(3);
      EXPECT_EQ(memory.allocations, before);
    };
    co_await with_env(plain, work);
  };
  co_await with_memory(&memory, below);
}

WEFT_TEST("env: a deadline is inherited, and the nearer one holds") {
  const auto now = std::chrono::steady_clock::now();
  auto inner = [&](scope&) -> task<> {
    EXPECT_EQ(current_env().deadline, now + std::chrono::hours{1});
    co_return;
  };
  auto outer = [&](scope&) -> task<> {
    EXPECT_EQ(current_env().deadline, now + std::chrono::hours{1});
    co_await with_scope({.deadline = now + std::chrono::hours{2}}, inner);
  };
  co_await with_scope({.deadline = now + std::chrono::hours{1}}, outer);
  EXPECT_EQ(current_env().deadline, std::chrono::steady_clock::time_point::max());
}

// ---- detach -----------------------------------------------------------------------------------------------------------------

TEST(detach, runs_on_its_executor_and_gives_its_handler_what_it_threw) {
  weft::manual_executor loop;
  static int sum = 0;
  static std::string said;
  const auto handler = [](std::exception_ptr failure) {
    try {
      std::rethrow_exception(failure);
    } catch (const std::exception& thrown) {
      said = thrown.what();
    }
  };
  weft::detach(
      loop, [](int a, std::unique_ptr<int> b) -> task<> { co_return static_cast<void>(sum = a + *b); }, handler, 1,
      std::make_unique<int>(2));
  weft::detach(loop, [](std::string text) { throw std::runtime_error{text}; }, handler, std::string{"detached"});
  EXPECT_EQ(sum, 0);
  loop.run_all();
  EXPECT_EQ(sum, 3);
  EXPECT_EQ(said, "detached");
}

}  // namespace
