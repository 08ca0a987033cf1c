// Scopes and forks: what runs when, who waits for whom, what is given back.
#include <weft/clock.hpp>
#include <weft/combine.hpp>
#include <weft/executor.hpp>
#include <weft/scope.hpp>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <functional>
#include <memory>
#include <memory_resource>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "support/tasks.hpp"
#include "support/weft_test.hpp"

namespace {

// What is touched where a fork goes to another thread and back is one line of a cache: its root begins with the next one.
static_assert(sizeof(void*) != 8 || sizeof(weft::detail::fork_in_scope) == 64);

using test::after;
using test::give;
using weft::as_result;
using weft::fork;
using weft::fork_status;
using weft::fork_view;
using weft::result;
using weft::scope;
using weft::sync_wait;
using weft::task;
using weft::with_scope;

task<> nothing() { co_return; }
task<> pass(test::gate& door) { co_await door; }
int twice(int number) { return 2 * number; }

// ---- what a scope gives -------------------------------------------------------------------------------------------------

WEFT_TEST("scope: gives what its body gives") {
  auto value = [](scope&) -> task<int> { co_return 7; };
  auto none = [](scope&) -> task<> { co_return; };
  int object = 1;
  auto reference = [&](scope&) -> task<int&> { co_return object; };
  auto owner = [](scope&, std::unique_ptr<int> one) -> task<std::unique_ptr<int>> { co_return one; };
  EXPECT_EQ(co_await with_scope(value), 7);
  co_await with_scope(none);
  EXPECT_EQ(&co_await with_scope(reference), &object);
  auto given = std::make_unique<int>(3);
  EXPECT_EQ(*co_await with_scope(owner, std::move(given)), 3);
}

WEFT_TEST("scope: the body may wait, and its task goes on after it") {
  test::gate door;
  std::jthread porter{[&] {
    test::until([&] { return door.waiting() == 1; });
    door.open();
  }};
  auto body = [&](scope&) -> task<int> { co_return co_await after(door, 5); };
  EXPECT_EQ(co_await with_scope(body), 5);
}

WEFT_TEST("scope: scopes nest") {
  auto inner = [](scope& s, int n) -> task<int> {
    fork<int> f = s.fork(give(n));
    co_return co_await std::move(f);
  };
  auto outer = [&](scope& s) -> task<int> {
    fork<int> f = s.fork(with_scope(inner, 2));
    co_return co_await std::move(f) + co_await with_scope(inner, 3);
  };
  EXPECT_EQ(co_await with_scope(outer), 5);
}

// ---- forks ----------------------------------------------------------------------------------------------------------------

WEFT_TEST("fork: runs at once, up to its first wait") {
  test::gate door;
  std::vector<int> order;
  auto child = [&]() -> task<> {
    order.push_back(1);
    co_await door;
    order.push_back(3);
  };
  auto body = [&](scope& s) -> task<> {
    fork<> f = s.fork(child);
    order.push_back(2);
    EXPECT_FALSE(f.done());
    EXPECT_EQ(f.status(), fork_status::running);
    EXPECT_EQ(s.children(), 1U);
    door.open();
    co_await std::move(f);
    order.push_back(4);
  };
  co_await with_scope(body);
  EXPECT_EQ(order, (std::vector{1, 2, 3, 4}));
}

WEFT_TEST("fork: of tasks, of functions with their arguments, of plain functions and of other awaitables") {
  test::gate door;
  door.open();
  auto body = [&](scope& s) -> task<> {
    fork<int> a = s.fork(give(1));
    fork<int> b = s.fork(give, 2);
    fork<int> c = s.fork(twice, 3);
    fork<int> d = s.fork([](std::unique_ptr<int> n) -> task<int> { co_return *n; }, std::make_unique<int>(4));
    fork<std::string> e = s.fork([](std::string text) { return text + "!"; }, "five");
    fork<> g = s.fork(door.pass());
    fork<> h = s.fork([] {});
    EXPECT_TRUE(c.done());
    EXPECT_EQ(co_await std::move(a), 1);
    EXPECT_EQ(co_await std::move(b), 2);
    EXPECT_EQ(co_await std::move(c), 6);
    EXPECT_EQ(co_await std::move(d), 4);
    EXPECT_EQ(co_await std::move(e), "five!");
    co_await std::move(g);
    co_await std::move(h);
  };
  co_await with_scope(body);
}

WEFT_TEST("fork: by value, by reference, and by view") {
  test::gate door;
  auto text = [&](bool waits) -> task<std::string> {
    if (waits) co_await door;
    co_return std::string(40, 'x');
  };
  auto body = [&](scope& s) -> task<> {
    for (const bool waits : {false, true}) {
      fork<std::string> f = s.fork(text(waits));
      fork_view<std::string> v = f.view();
      static_assert(std::is_same_v<decltype(sync_wait(f)), std::string&>);
      static_assert(std::is_same_v<decltype(sync_wait(v)), const std::string&>);
      auto reader = [](fork_view<std::string> of) -> task<const std::string*> { co_return &co_await of; };
      auto one = s.fork(reader, v), two = s.fork(reader, std::move(v));
      door.open();
      std::string& mine = co_await f;
      EXPECT_EQ(&mine, co_await std::move(one));
      EXPECT_EQ(&mine, co_await std::move(two));
      mine += "y";
      EXPECT_EQ(co_await std::move(f), std::string(40, 'x') + "y");
      EXPECT_FALSE(f);
    }
  };
  co_await with_scope(body);
}

WEFT_TEST("fork: of references") {
  int object = 1;
  auto refer = [&]() -> task<int&> { co_return object; };
  auto body = [&](scope& s) -> task<> {
    fork<int&> f = s.fork(refer());
    EXPECT_EQ(&co_await f, &object);
    EXPECT_EQ(&co_await f.view(), &object);
    EXPECT_EQ(&co_await std::move(f), &object);
  };
  co_await with_scope(body);
}

WEFT_TEST("fork: a DAG of views") {
  test::gate door;
  auto sum = [](fork_view<int> a, fork_view<int> b) -> task<int> { co_return co_await a + co_await b; };
  auto body = [&](scope& s) -> task<int> {
    fork_view<int> a = s.fork(after(door, 1)).view();
    fork_view<int> b = s.fork(sum, a, a).view();
    fork_view<int> c = s.fork(sum, a, b).view();
    fork<int> d = s.fork(sum, b, c);
    EXPECT_EQ(s.children(), 4U);
    door.open();
    co_return co_await std::move(d);
  };
  EXPECT_EQ(co_await with_scope(body), 5);
}

WEFT_TEST("fork: awaited by when_all, as an lvalue and as an rvalue") {
  test::gate door;
  auto body = [&](scope& s) -> task<int> {
    fork<int> a = s.fork(after(door, 1)), b = s.fork(give(2));
    door.open();
    auto [x, y] = co_await weft::when_all(a, std::move(b));
    co_return x + y;
  };
  EXPECT_EQ(co_await with_scope(body), 3);
}

WEFT_TEST("fork: a scope waits for forks whose handles are gone") {
  test::gate door;
  int ended = 0;
  auto child = [&]() -> task<> {
    co_await door;
    ++ended;
  };
  std::jthread porter{[&] {
    test::until([&] { return door.waiting() == 3; });
    door.open();
  }};
  auto body = [&](scope& s) -> task<> {
    for (int i = 0; i != 3; ++i) s.fork(child);
    co_return;
  };
  co_await with_scope(body);
  EXPECT_EQ(ended, 3);
}

WEFT_TEST("fork: by a fork, into the scope it is in") {
  test::gate door;
  int ended = 0;
  auto leaf = [&](bool waits) -> task<> {
    if (waits) co_await door;
    ++ended;
  };
  auto branch = [&](scope& s, bool waits) -> task<> {
    if (waits) co_await door;
    fork<> one = s.fork(leaf, false), two = s.fork(leaf, !waits);
    co_await std::move(one);
    co_await std::move(two);
    s.fork(leaf, false);
  };
  auto body = [&](scope& s) -> task<> {
    s.fork(branch, std::ref(s), false);
    s.fork(branch, std::ref(s), true);
    door.open();
    co_return;
  };
  co_await with_scope(body);
  EXPECT_EQ(ended, 6);
}

task<> descend(scope& s, int depth, int& deepest) {
  deepest = std::max(deepest, depth);
  if (depth != 0) s.fork(descend, std::ref(s), depth - 1, std::ref(deepest));
  ++deepest;
  co_return;
}

TEST(fork, a_hundred_thousand_forks_within_forks_need_no_stack) {
  test::on_small_stack([] {
    int deepest = 0;
    auto body = [&](scope& s) -> task<> { co_await descend(s, 100'000, deepest); };
    sync_wait(with_scope(body));
    EXPECT_EQ(deepest, 200'001);
  });
}

WEFT_TEST("fork: a tree of scopes, each level forking two") {
  struct tree {
    static task<long> leaves(int depth) {
      if (depth == 0) co_return 1;
      auto body = [depth](scope& s) -> task<long> {
        fork<long> left = s.fork(leaves(depth - 1)), right = s.fork(leaves(depth - 1));
        co_return co_await std::move(left) + co_await std::move(right);
      };
      co_return co_await with_scope(body);
    }
  };
  EXPECT_EQ(co_await tree::leaves(12), 1 << 12);
}

// ---- frames ---------------------------------------------------------------------------------------------------------------

WEFT_TEST("fork: its frame goes back when it has ended and its handle is gone") {
  const test::calm in_order;
  std::atomic<int> alive{0};
  test::gate door;
  auto child = [](test::counted, test::gate* door) -> task<> {
    if (door != nullptr) co_await *door;
  };
  auto body = [&](scope& s) -> task<> {
    s.fork(child(test::counted{alive}, nullptr));
    EXPECT_EQ(alive, 0);  // ran through, and nobody has it
    fork<> kept = s.fork(child(test::counted{alive}, nullptr));
    EXPECT_EQ(alive, 1);
    co_await std::move(kept);
    EXPECT_EQ(alive, 0);
    kept = s.fork(child(test::counted{alive}, &door));
    s.fork(child(test::counted{alive}, &door));
    fork_view<> seen = s.fork(child(test::counted{alive}, &door)).view();
    EXPECT_EQ(alive, 3);
    door.open();
    co_await kept;  // they go on in order, and this one tells the body when all have gone on
    EXPECT_EQ(alive, 2);
    EXPECT_EQ(s.reclaim(), 2U);
    co_await seen;
    seen = {};
    EXPECT_EQ(alive, 1);
    EXPECT_EQ(s.reclaim(), 1U);
    kept = {};
    EXPECT_EQ(alive, 0);
    EXPECT_EQ(s.reclaim(), 0U);
  };
  co_await with_scope(body);
}

// Fills what was given back, so that whoever looks there does not find what was there.
class filling_memory final : public std::pmr::memory_resource {
  void* do_allocate(std::size_t bytes, std::size_t alignment) override {
    return std::pmr::new_delete_resource()->allocate(bytes, alignment);
  }
  void do_deallocate(void* block, std::size_t bytes, std::size_t alignment) override {
    std::memset(block, 0xdd, bytes);
    std::pmr::new_delete_resource()->deallocate(block, bytes, alignment);
  }
  bool do_is_equal(const memory_resource& other) const noexcept override { return this == &other; }
};

// It has no record of its own, and the one that it ran in may be gone.
WEFT_TEST("fork: a view of one that ran through, after the scope has given all records back") {
  filling_memory memory;
  auto one = []() -> task<int> { co_return 1; };
  auto body = [&](scope& s) -> task<> {
    test::gate door;
    fork<> first = s.fork(pass(door));
    fork<int> by_body = s.fork(one), by_fork;
    auto forks = [&]() -> task<> {
      by_fork = s.fork(one);
      co_await door;
    };
    fork<> second = s.fork(forks);
    door.open();
    co_await std::move(first);
    co_await std::move(second);
    EXPECT_EQ(s.reclaim(), 0U);
    EXPECT_EQ(co_await by_body.view(), 1);
    EXPECT_EQ(co_await by_fork.view(), 1);
  };
  co_await with_scope({.memory = &memory}, body);
}

WEFT_TEST("fork: many that wait need memory for those that wait at once") {
  test::counting_resource memory;
  auto round = [](scope& s) -> task<> {
    test::gate door;
    std::vector<fork<>> some;
    some.reserve(10);
    for (int i = 0; i != 10; ++i) some.push_back(s.fork(pass(door)));
    door.open();
    for (fork<>& one : some) co_await std::move(one);
  };
  auto body = [&](scope& s) -> task<> {
    std::size_t once = 0;
    for (int i = 0; i != 102; ++i) {
      if (i == 101) {
        s.reclaim();
        EXPECT_LT(memory.live, once);
      }
      co_await round(s);
      if (i == 0) once = memory.live;
      EXPECT_EQ(memory.live, once);
    }
  };
  co_await with_scope({.memory = &memory}, body);
  EXPECT_EQ(memory.live, 0U);
}

WEFT_TEST("fork: a million that run through, in constant memory") {
  test::counting_resource memory;
  auto body = [&](scope& s) -> task<> {
    long sum = 0;
    std::size_t most = 0;
    for (int i = 0; i != test::rounds(1'000'000); ++i) {
      sum += co_await s.fork(give(1));
      most = std::max(most, memory.live);
    }
    EXPECT_EQ(sum, test::rounds(1'000'000));
    EXPECT_LE(most, 3U);  // the body's one or two frames, and the block that the forks go round
  };
  co_await with_scope({.memory = &memory}, body);
  EXPECT_EQ(memory.live, 0U);
}

// ---- executors ------------------------------------------------------------------------------------------------------------

WEFT_TEST("fork_on: runs there, and its result comes here") {
  weft::manual_executor loop;
  std::thread::id ran{};
  auto where = [&] {
    ran = std::this_thread::get_id();
    return 7;
  };
  auto body = [&](scope& s) -> task<> {
    fork<int> f = s.fork_on(loop, where);
    EXPECT_FALSE(f.done());
    std::jthread other{[&] { loop.run_all(); }};
    const std::thread::id there = other.get_id();
    EXPECT_EQ(co_await std::move(f), 7);
    other.join();
    EXPECT_EQ(ran, there);
    fork<int> g = s.fork_on(loop, give(8));
    loop.run_all();
    EXPECT_EQ(co_await g, 8);
  };
  co_await with_scope(body);
}

WEFT_TEST("fork_on: those for one executor share an environment, each has that of its own, and all are given back") {
  test::counting_resource memory;
  weft::manual_executor first, second;
  int right = 0;
  auto looks = [&](weft::executor* at) -> task<> {
    right += weft::current_env().executor == at;
    co_return;
  };
  auto body = [&](scope& s) -> task<> {
    const std::size_t before = memory.live;
    for (const int of_first :
         {1, 2, 3, 10}) {  // every so many, with others in between that are made, run and reclaimed
      for (int i = 0; i != 20; ++i) {
        weft::manual_executor& where = i % of_first == 0 ? first : second;
        s.fork_on(where, looks(&where));
        if (i % 7 == 6) first.run_all();
        if (i % 5 == 4) second.run_all();
        if (i == 12) s.reclaim();
      }
      first.run_all(), second.run_all();
      s.reclaim();
      EXPECT_EQ(memory.live, before);
    }
    for (int i = 0; i != 10; ++i) s.fork_on(first, looks(&first));
    EXPECT_EQ(memory.live, before + 21) << "a frame and a record each, and one environment";
    first.run_all();
    for (int i = 0; i != 10; ++i) s.fork_on(first, looks(&first));
    EXPECT_EQ(memory.live, before + 21);
    first.run_all();
    co_return;
  };
  co_await with_scope({.memory = &memory, .memory_is_shared = true}, body);
  EXPECT_EQ(right, 100);
  EXPECT_EQ(memory.live, 0U);
}

WEFT_TEST("scope: with an executor, body and forks run there, and the task outside comes home") {
  weft::manual_executor loop;
  const auto home = std::this_thread::get_id();
  std::atomic<bool> over{false};
  std::jthread other{[&] {
    while (!over) loop.run_one();
  }};
  const auto there = other.get_id();
  auto child = [&]() -> task<std::thread::id> { co_return std::this_thread::get_id(); };
  auto body = [&](scope& s) -> task<> {
    EXPECT_EQ(std::this_thread::get_id(), there);
    EXPECT_EQ(weft::current_env().executor, &loop);
    EXPECT_EQ(co_await s.fork(child), there);
  };
  co_await with_scope({.executor = &loop}, body);
  EXPECT_EQ(std::this_thread::get_id(), home);
  over = true;
}

WEFT_TEST("scope: forks that end on other threads, while more are made") {
  weft::new_thread_executor threads;
  std::atomic<int> ended{0};
  auto child = [&](int n) -> task<int> {
    ++ended;
    co_return n;
  };
  auto body = [&](scope& s) -> task<long> {
    long sum = 0;
    std::vector<fork<int>> kept;
    for (int i = 0; i != test::rounds(400); ++i) {
      s.fork_on(threads, child, 1);
      kept.push_back(s.fork_on(threads, child, 1));
      if (i % 3 == 0) kept.push_back(s.fork(child, 1));
    }
    for (fork<int>& one : kept) sum += co_await std::move(one);
    co_return sum;
  };
  const int n = test::rounds(400);
  EXPECT_EQ(co_await with_scope(body), n + (n + 2) / 3);
  EXPECT_EQ(ended, 2 * n + (n + 2) / 3);
}

// ---- here and now -----------------------------------------------------------------------------------------------------------

WEFT_TEST("fork_here: runs at once, up to its first wait, whatever it is given") {
  test::gate door;
  std::vector<int> order;
  auto child = [&](int n) -> task<int> {
    order.push_back(n);
    co_await door;
    order.push_back(-n);
    co_return n;
  };
  auto body = [&](scope& s) -> task<> {
    fork<int> a = s.fork_here(child(1));
    order.push_back(2);
    fork<int> b = s.fork_here(child, 3);
    order.push_back(4);
    fork<int> c = s.fork_here(twice, 5);
    fork<> d = s.fork_here(door.pass());
    EXPECT_TRUE(c.done());
    EXPECT_EQ(s.children(), 3U);
    EXPECT_EQ(co_await std::move(c), 10);
    door.open();
    EXPECT_EQ(co_await std::move(a) + co_await std::move(b), 4);
    co_await std::move(d);
  };
  co_await with_scope(body);
  std::sort(order.begin() + 4, order.end());  // who goes on first from an open door is not the point
  EXPECT_EQ(order, (std::vector{1, 2, 3, 4, -3, -1}));
}

WEFT_TEST("fork_here: in a scope that was told to stop, it ends at its first wait") {
  test::gate never;
  bool began = false, ended = false;
  auto child = [&]() -> task<> {
    began = true;
    co_await never;
    ended = true;
  };
  auto body = [&](scope& s) -> task<> {
    s.request_stop();
    fork<> one = s.fork_here(child);
    EXPECT_TRUE(began);
    EXPECT_EQ(one.status(), fork_status::stopped);
    co_return;
  };
  co_await with_scope(body);
  EXPECT_FALSE(ended);
}

WEFT_TEST("fork_here: what its first run throws is a failure of the scope, and of who awaits it") {
  test::gate never;
  auto fails = []() -> task<> {
    throw std::runtime_error{"no"};
    co_return;
  };
  bool seen = false;
  auto body = [&](scope& s) -> task<> {
    s.fork(pass(never));
    fork<> one = s.fork_here(fails);
    EXPECT_EQ(one.status(), fork_status::failed);
    EXPECT_TRUE(s.stop_requested());
    try {
      co_await std::move(one);
    } catch (const std::runtime_error&) {
      seen = true;
    }
  };
  const auto how = co_await as_result(with_scope(body));
  EXPECT_TRUE(seen);
  EXPECT_THROW(how.value(), std::runtime_error);
}

WEFT_TEST("fork_here: 64 run in each other, and one more is refused, unstarted and destroyed") {
  int begun = 0, refused = 0;
  auto alive = std::make_shared<int>();
  struct diver {
    scope& s;
    int &begun, &refused;
    test::gate& door;
    task<> dive(std::shared_ptr<int> held) const {
      ++begun;
      try {
        s.fork_here(&diver::dive, *this, held);
      } catch (const weft::error& failure) {
        EXPECT_EQ(failure.code(), weft::errc::no_room);
        EXPECT_EQ(held.use_count(), begun + 1);  // the frames below, and the test's own
        ++refused;
        door.open();
      }
      co_await door;
    }
  };
  test::gate door;
  auto body = [&](scope& s) -> task<> {
    const diver one{s, begun, refused, door};
    s.fork_here(&diver::dive, one, alive);
    co_return;
  };
  co_await with_scope(body);
  EXPECT_EQ(begun, 64);
  EXPECT_EQ(refused, 1);
  EXPECT_EQ(alive.use_count(), 1);
}

WEFT_TEST("fork_here: a scope that has as many children as it may have refuses it, too") {
  test::gate never;
  auto alive = std::make_shared<int>();
  auto body = [&](scope& s) -> task<> {
    s.fork(pass(never));
    auto late = [](std::shared_ptr<int>) -> task<> {
      ADD_FAILURE() << "it has begun";
      co_return;
    };
    EXPECT_THROW(s.fork_here(late, alive), weft::error);
    EXPECT_EQ(alive.use_count(), 1);
    s.request_stop();
    co_return;
  };
  co_await with_scope({.max_children = 1}, body);
}

// ---- a limit --------------------------------------------------------------------------------------------------------------

WEFT_TEST("scope: room waits until there is one child less, and fork refuses without it") {
  test::gate never;
  auto too_many = [&](scope& s) -> task<> {
    s.fork(pass(never));
    s.fork(pass(never));
    s.fork(nothing());
    co_return;
  };
  auto refused = co_await as_result(with_scope({.max_children = 2}, too_many));
  EXPECT_EQ(refused.error(), weft::errc::no_room);

  int running = 0, most = 0;
  test::gate door;
  auto child = [&]() -> task<> {
    most = std::max(most, ++running);
    co_await door;
    --running;
  };
  std::jthread porter{[&] {
    test::until([&] { return door.waiting() == 2; });
    door.open();
  }};
  auto limited = [&](scope& s) -> task<> {
    for (int i = 0; i != 5; ++i) {
      co_await s.room();
      s.fork(child);
    }
  };
  co_await with_scope({.max_children = 2}, limited);
  EXPECT_EQ(most, 2);
}

WEFT_TEST("fork_when_room: waits for room, and forks in it") {
  int running = 0, most = 0;
  auto child = [&](int n) -> task<int> {
    most = std::max(most, ++running);
    co_await weft::sleep_for(std::chrono::milliseconds{n % 3 + 1});
    --running;
    co_return n;
  };
  auto limited = [&](scope& s) -> task<int> {
    std::vector<fork<int>> all;
    for (int i = 0; i != 5; ++i) all.push_back(co_await s.fork_when_room(child, i));
    all.push_back(co_await s.fork_when_room(child(5)));
    all.push_back(co_await s.fork_when_room(twice, 3));
    int sum = 0;
    for (fork<int>& one : all) sum += co_await std::move(one);
    co_return sum;
  };
  EXPECT_EQ(co_await with_scope({.max_children = 2}, limited), 21);
  EXPECT_EQ(most, 2);
  EXPECT_EQ(co_await with_scope(limited), 21);  // no limit: nobody waits
  EXPECT_GT(most, 2);
}

WEFT_TEST("fork_when_room: those who wait have their turns in order, and nobody else gets a place between") {
  test::gate first, never;
  std::vector<int> order;
  auto child = [&](int n) -> task<> {
    order.push_back(n);
    co_await never;
  };
  auto body = [&](scope& s) -> task<> {
    fork<> holder = s.fork(pass(first));
    std::vector<fork<>> running;
    auto waits = [&](int n) -> task<> { running.push_back(co_await s.fork_when_room(child, n)); };
    auto tries_to_pass = [&]() -> task<> {
      first.open();
      for (int turns = 0; turns < 50 || running.empty(); ++turns) {
        EXPECT_THROW(s.fork(nothing), weft::error);
        co_await weft::yield();
      }
      EXPECT_TRUE(holder.done());
      EXPECT_EQ(order, (std::vector{1}));
      for (std::size_t ended = 0; ended != 2; ++ended) {
        running.at(ended).request_stop();
        while (running.size() != ended + 2) {
          EXPECT_THROW(s.fork(nothing), weft::error);
          co_await weft::yield();
        }
      }
      s.request_stop();
    };
    co_await weft::when_all(waits(1), waits(2), waits(3), tries_to_pass());
  };
  co_await with_scope({.max_children = 1}, body);
  EXPECT_EQ(order, (std::vector{1, 2, 3}));
}

WEFT_TEST("fork_when_room: one whose work runs through makes room for the next") {
  test::gate door;
  std::vector<int> order;
  auto body = [&](scope& s) -> task<> {
    s.fork(pass(door));
    auto waits = [&](int n) -> task<> { co_await s.fork_when_room([&order](int i) { order.push_back(i); }, n); };
    auto opens = [&]() -> task<> {
      door.open();
      co_return;
    };
    co_await weft::when_all(waits(1), waits(2), waits(3), opens());
  };
  co_await with_scope({.max_children = 1}, body);
  EXPECT_EQ(order, (std::vector{1, 2, 3}));
}

WEFT_TEST("fork_when_room: who is stopped while it waits leaves its turn to others, and destroys its work unstarted") {
  test::gate door;
  auto alive = std::make_shared<int>();
  std::vector<int> order;
  auto child = [&](int n, std::shared_ptr<int>) -> task<> {
    order.push_back(n);
    co_return;
  };
  auto outer = [&](scope& others, scope& s) -> task<> {
    s.fork(pass(door));
    auto waits = [&](int n) -> task<> { co_await s.fork_when_room(child, n, alive); };
    fork<> leaves = others.fork(waits(1)), stays = others.fork(waits(2));
    EXPECT_EQ(alive.use_count(), 3);
    leaves.request_stop();
    while (!leaves.done()) co_await weft::yield();
    EXPECT_EQ(leaves.status(), fork_status::stopped);
    EXPECT_EQ(alive.use_count(), 2);
    door.open();
    co_await std::move(stays);

    // Told before it waits: it takes a place that is free, and waits for none.
    test::gate never;
    auto told_before = [&](scope& told) -> task<> {
      told.request_stop();
      fork<> free = told.fork(waits(3));
      EXPECT_EQ(free.status(), fork_status::succeeded);
      fork<> holder = s.fork(pass(never));
      fork<> full = told.fork(waits(4));
      EXPECT_EQ(full.status(), fork_status::stopped);
      holder.request_stop();
      co_return;
    };
    co_await with_scope(told_before);
  };
  auto limited = [&](scope& s, scope& others) { return outer(others, s); };
  auto both = [&](scope& others) -> task<> { co_await with_scope({.max_children = 1}, limited, std::ref(others)); };
  co_await with_scope(both);
  EXPECT_EQ(order, (std::vector{2, 3}));
  EXPECT_EQ(alive.use_count(), 1);
}

TEST(fork_when_room, a_stop_behind_the_place_that_was_given_loses_neither) {
  weft::manual_executor later, its;
  test::gate first, second;
  int begun = 0, most = 0;
  auto child = [&]() -> task<> {
    ++begun;
    co_await second;
  };
  auto all = [&](scope& s) -> task<> {
    s.fork(pass(first));
    auto waits = [&]() -> task<> { co_await s.fork_when_room(child); };
    auto others = [&](scope& beside) -> task<> {
      fork<> told = beside.fork_on(later, waits());
      later.run_all();  // it waits
      first.open();
      while (later.empty()) co_await weft::yield();  // and has its place, but has not gone on
      told.request_stop();
      EXPECT_EQ(begun, 0);
      EXPECT_THROW(s.fork(nothing), weft::error);
      later.run_all();
      EXPECT_EQ(begun, 1);
      EXPECT_EQ(s.children(), 1U);
      most = static_cast<int>(s.children());
      second.open();
    };
    co_await with_scope(others);
  };
  bool ended = false;
  weft::start(its, with_scope({.max_children = 1}, all), [&](result<void> how) { ended = how.has_value(); });
  while (its.run_all() + later.run_all() != 0) {
  }
  EXPECT_TRUE(ended);
  EXPECT_EQ(most, 1);
}

WEFT_TEST("scope: a fork has its place from its first run on") {
  auto body = [&](scope& s) -> task<> {
    s.fork([&]() -> task<> {
      EXPECT_THROW(s.fork(nothing), weft::error);  // this one is the only child
      co_return;
    });
    s.fork(nothing);  // and has left
    co_return;
  };
  co_await with_scope({.max_children = 1}, body);
}

}  // namespace
