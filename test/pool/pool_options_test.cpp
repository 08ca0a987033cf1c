// What a pool can be told: to stay on processors, to let a caller work, what comes first.
// Long because each option has its own ways to go wrong, on machines that this one is not.
#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <latch>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>
#include <weft/blocking.hpp>
#include <weft/combine.hpp>
#include <weft/error.hpp>
#include <weft/pool.hpp>
#include <weft/scope.hpp>
#include <weft/sync.hpp>
#include <weft/with.hpp>

#include "pool/processors.hpp"
#include "support/no_threads.hpp"
#include "support/weft_test.hpp"
#include "support/work.hpp"

namespace {

using weft::pool;
using weft::start_on;
using weft::sync_wait;
using weft::task;
using weft::when_all;
using weft::detail::distance;
using weft::detail::processor;

task<long> fib(int n) {
  if (n < 2) co_return n;
  auto [a, b] = co_await when_all(fib(n - 1), fib(n - 2));
  co_return a + b;
}

// ---- which processors there are ------------------------------------------------------------------------------------------

// A machine that the kernel would describe so: two sockets, each with two caches of two cores of two threads. Numbers as
// Linux gives them: the second threads come after all cores.
class topology : public testing::Test {
 public:
  ~topology() override { std::filesystem::remove_all(root_); }

 protected:
  topology() {
    for (unsigned core = 0; core != 8; ++core)
      for (const unsigned number : {core, core + 8}) {
        write(number, "topology/physical_package_id", core / 4);
        write(number, "topology/thread_siblings_list", std::to_string(core) + "," + std::to_string(core + 8));
        write(number, "cache/index0/level", 1);
        write(number, "cache/index0/shared_cpu_list", std::to_string(core) + "," + std::to_string(core + 8));
        write(number, "cache/index1/level", 3);
        write(number, "cache/index1/shared_cpu_list", std::to_string(core / 2 * 2) + "-99");
        write(number, "node" + std::to_string(core / 4) + "/distance", core / 4 == 0 ? "10 21" : "21 10");
      }
  }
  std::filesystem::path folder_of(unsigned number) const { return root_ / ("cpu" + std::to_string(number)); }
  void write(unsigned number, const std::string& name, const std::string& text) const {
    std::filesystem::create_directories((folder_of(number) / name).parent_path());
    std::ofstream{folder_of(number) / name} << text << '\n';
  }
  void write(unsigned number, const std::string& name, unsigned value) const {
    write(number, name, std::to_string(value));
  }
  std::vector<processor> read(const std::vector<unsigned>& numbers) const {
    return weft::detail::processors_in(root_.string(), numbers);
  }

 private:
  const std::filesystem::path root_ =
      std::filesystem::temp_directory_path() / ("weft-topology-" + std::to_string(::getpid()));
};

TEST_F(topology, one_thread_of_each_core_comes_before_the_second_ones) {
  std::vector<unsigned> all(16);
  for (unsigned i = 0; i != 16; ++i) all[i] = 15 - i;
  const std::vector<processor> places = read(all);
  ASSERT_EQ(places.size(), 16u);
  for (unsigned i = 0; i != 16; ++i) {
    EXPECT_EQ(places[i].number, i);
    EXPECT_EQ(places[i].core, i % 8);
    EXPECT_EQ(places[i].near_cache, i % 8);
    EXPECT_EQ(places[i].cache, i % 8 / 2 * 2);
    EXPECT_EQ(places[i].package, i % 8 / 4);
    EXPECT_EQ(places[i].node, i % 8 / 4);
  }
}

TEST_F(topology, only_what_is_allowed_counts) {
  const std::vector<processor> places = read({9, 1, 4});
  ASSERT_EQ(places.size(), 3u);
  EXPECT_EQ(places[0].number, 1u);
  EXPECT_EQ(places[1].number, 4u);
  EXPECT_EQ(places[2].number, 9u) << "the core of 1 has a thread already";
}

TEST_F(topology, near_is_what_shares_a_core_then_a_cache_then_a_socket) {
  const std::vector<processor> places = read({0, 1, 2, 4, 8});  // in this order
  EXPECT_EQ(distance(places[0], places[4]), 0u);
  EXPECT_EQ(distance(places[0], places[1]), 2u);
  EXPECT_EQ(distance(places[0], places[2]), 3u);
  EXPECT_EQ(distance(places[0], places[3]), 21u) << "as the firmware says";
}

// Four cores share the cache below the last; of four nodes in a row, the far ones are farther.
TEST_F(topology, near_is_also_what_shares_a_cache_below_the_last_and_a_node_that_is_not_far) {
  for (const unsigned number : {20u, 21u, 22u, 23u, 24u}) {
    write(number, "topology/thread_siblings_list", number);
    write(number, "cache/index0/level", 1);
    write(number, "cache/index0/shared_cpu_list", number);
    write(number, "cache/index1/level", 2);
    write(number, "cache/index1/shared_cpu_list", number < 22 ? 20 : number);
    write(number, "cache/index2/level", 3);
    write(number, "cache/index2/shared_cpu_list", number < 23 ? 20 : number);
    write(number, "topology/physical_package_id", 0);
    write(number, "node" + std::to_string(number < 23 ? 0 : number - 22) + "/distance", "10 12 16");
  }
  const std::vector<processor> places = read({20, 21, 22, 23, 24});
  EXPECT_EQ(distance(places[0], places[1]), 1u);
  EXPECT_EQ(distance(places[0], places[2]), 2u);
  EXPECT_EQ(distance(places[0], places[3]), 12u);
  EXPECT_EQ(distance(places[0], places[4]), 16u);
}

TEST_F(topology, what_cant_be_read_is_shared) {
  const std::vector<processor> places = read({70, 71});
  ASSERT_EQ(places.size(), 2u);
  EXPECT_EQ(distance(places[0], places[1]), 1u);
}

// ---- pin ----------------------------------------------------------------------------------------------------------------

WEFT_TEST("pool_pin: each thread stays on one processor, and neighbours have different ones") {
  const std::vector<unsigned> allowed = weft::detail::allowed_processors();
  const unsigned threads = static_cast<unsigned>(allowed.size()) + 1;
  const pool p{{.threads = threads, .pin = true}};
  const auto place = []() -> task<int> {
    cpu_set_t set;
    CPU_ZERO(&set);
    sched_getaffinity(0, sizeof set, &set);
    if (CPU_COUNT(&set) != 1) co_return -1;
    for (int i = 0;; ++i)
      if (CPU_ISSET(i, &set)) co_return i;
  };
  std::vector<int> places;
  for (unsigned i = 0; i != threads; ++i) places.push_back(co_await start_on(p.worker(i), place()));
  EXPECT_EQ(places.front(), places.back()) << "one more than there are";
  places.pop_back();
  EXPECT_EQ(std::set<int>(places.begin(), places.end()), std::set<int>(allowed.begin(), allowed.end()));
}

WEFT_TEST("pool_pin: threads that may block are not pinned") {
  const auto allowed = [] { return weft::detail::allowed_processors(); };
  const auto all = allowed();
  const pool p{{.threads = 2, .pin = true}};
  const auto from_worker = [&]() -> task<> {
    const auto mine = allowed();
    EXPECT_EQ(mine.size(), 1U);
    weft::blocking_pool fresh;
    EXPECT_EQ(co_await fresh.run(allowed), all);
    EXPECT_EQ(allowed(), mine);
  };
  co_await start_on(p.worker(0), from_worker());
}

WEFT_TEST("pool_pin: work is shared as without") {
  const pool p{{.threads = 5, .pin = true}};
  EXPECT_EQ(co_await start_on(p.executor(), fib(20)), 6765);
}

// A pool below a mask of one processor that is not the first one.
TEST(pool_pin, where_one_processor_is_allowed_all_are_there) {
  const unsigned last = weft::detail::allowed_processors().back();
  std::thread{[&] {
    cpu_set_t only;
    CPU_ZERO(&only);
    CPU_SET(last, &only);
    ASSERT_EQ(::sched_setaffinity(0, sizeof only, &only), 0);
    EXPECT_EQ(weft::available_processors(), 1u);
    EXPECT_EQ((pool{{.pin = true}}.size()), 1u);
    const pool p{{.threads = 3, .pin = true, .use_caller = true}};
    const auto where = [] { return weft::detail::allowed_processors(); };
    for (unsigned i = 0; i != 2; ++i) {
      const auto there = [&]() -> task<std::vector<unsigned>> { co_return where(); };
      EXPECT_EQ(sync_wait(start_on(p.worker(i), there())), std::vector{last});
    }
    EXPECT_EQ(p.run(fib(15)), 610);
  }}.join();
}

// ---- no threads -----------------------------------------------------------------------------------------------------------

TEST(pool_refused, it_is_made_with_all_its_threads_or_not_at_all) {
  std::atomic<int> started{0};
  const auto make = [&](weft::pool_options options) {
    options.on_start = [](unsigned, void* with) { ++*static_cast<std::atomic<int>*>(with); };
    options.with = &started;
    return pool{options}.run(fib(10));
  };
  {
    const test::no_threads now;
    try {
      make({.threads = 3});
      FAIL() << "the system gave threads";
    } catch (const weft::error& e) {
      EXPECT_EQ(e.code(), std::errc::resource_unavailable_try_again);
      EXPECT_NE(std::string{e.what()}.find("start the threads of a pool"), std::string::npos) << e.what();
    }
    EXPECT_EQ(started, 0);
    EXPECT_EQ(make({.threads = 1, .use_caller = true}), 55) << "it needs none";
  }
  started = 0;
  EXPECT_EQ(make({.threads = 3}), 55);
  EXPECT_EQ(started, 3);
}

// ---- use_caller -----------------------------------------------------------------------------------------------------------

TEST(pool_caller, works_while_its_task_runs) {
  const pool p{{.threads = 1, .use_caller = true}};  // no thread of its own
  EXPECT_EQ(p.size(), 1u);
  const auto here = [&, me = std::this_thread::get_id()]() -> task<bool> {
    co_await weft::yield();
    co_return std::this_thread::get_id() == me&& p.is_inside() && p.worker_id() == 0;
  };
  EXPECT_FALSE(p.is_inside());
  EXPECT_TRUE(p.run(here()));
  EXPECT_FALSE(p.is_inside());
  EXPECT_EQ(p.run(fib(15)), 610);
}

TEST(pool_caller, is_one_of_several) {
  const pool p{{.threads = 3, .use_caller = true}};
  EXPECT_EQ(p.size(), 3u);
  std::mutex lock;
  std::set<std::thread::id> seen;
  const auto meet = [&]() -> task<> {
    {
      const std::lock_guard guard{lock};
      seen.insert(std::this_thread::get_id());
    }
    test::until([&] {
      const std::lock_guard guard{lock};
      return seen.size() == 3;
    });
    co_return;
  };
  const auto all = [&]() -> task<> { co_await when_all(meet(), meet(), meet()); };
  p.run(all());
  EXPECT_EQ(seen.count(std::this_thread::get_id()), 1u);
}

TEST(pool_caller, of_two_at_once_one_waits_for_the_threads) {
  for (const unsigned threads : {2u, 4u}) {
    const pool p{{.threads = threads, .use_caller = true}};
    std::vector<std::jthread> callers;
    std::atomic<long> sum{0};
    for (int i = 0; i != 4; ++i)
      callers.emplace_back([&] {
        for (int round = 0; round != test::rounds(100); ++round) sum += p.run(fib(10));
      });
    callers.clear();
    EXPECT_EQ(sum, 4 * test::rounds(100) * 55);
  }
}

// The pool has no thread: when the first one leaves, the other is the only one to go on with its own task.
TEST(pool_caller, of_two_without_threads_the_one_that_waited_works_then) {
  const pool p{{.threads = 1, .use_caller = true}};
  std::atomic<bool> first_is_in{false}, second_has_begun{false};
  const auto until_the_other_has_begun = [&]() -> task<> {
    first_is_in = true;
    while (!second_has_begun) co_await weft::yield();
  };
  std::jthread first{[&] { p.run(until_the_other_has_begun()); }};
  test::until([&] { return first_is_in.load(); });
  const auto me = std::this_thread::get_id();
  const auto outlasts_the_other = [&]() -> task<bool> {
    second_has_begun = true;
    while (std::this_thread::get_id() != me) co_await weft::yield();
    co_return p.is_inside();
  };
  EXPECT_TRUE(p.run(outlasts_the_other()));
}

// A task ends while its caller waits for the place: on the thread of who has that, or elsewhere.
TEST(pool_caller, one_that_waits_for_its_turn_hears_of_its_end) {
  const pool p{{.threads = 1, .use_caller = true}};
  const pool other{{.threads = 1}};
  std::atomic<bool> go_on{true};
  std::atomic<bool> first_is_in{false};
  const auto works_on = [&]() -> task<> {
    first_is_in = true;
    while (go_on) co_await weft::yield();
  };
  const auto elsewhere = [&]() -> task<int> {
    co_await weft::resume_on(other.executor());
    co_return 1;
  };
  std::jthread first{[&] { p.run(works_on()); }};
  test::until([&] { return first_is_in.load(); });
  std::atomic<long> sum{0};
  {
    std::vector<std::jthread> callers;
    for (int i = 0; i != 3; ++i)
      callers.emplace_back([&] {
        for (int round = 0; round != test::rounds(100); ++round) sum += p.run(fib(5)) + p.run(elsewhere());
      });
  }
  go_on = false;
  EXPECT_EQ(sum, 3 * test::rounds(100) * 6);
}

TEST(pool_caller, sleeps_while_its_task_waits_and_hears_of_its_end) {
  const pool p{{.threads = 2, .use_caller = true}};
  const pool other{{.threads = 1}};
  const auto elsewhere = [&]() -> task<int> {
    int sum = 0;
    for (int i = 0; i != test::rounds(300); ++i) {
      co_await weft::resume_on(other.executor());
      ++sum;
      co_await weft::resume_on(p.executor());
    }
    co_return sum;
  };
  EXPECT_EQ(p.run(elsewhere()), test::rounds(300));
}

TEST(pool_caller, leaves_what_others_have_posted_to_the_threads) {
  pool p{{.threads = 2, .use_caller = true}};
  std::atomic<int> ran{0};
  const auto yields = [&]() -> task<> {
    for (int i = 0; i != 50; ++i) co_await weft::yield();
    ++ran;
  };
  const auto starts = [&]() -> task<> {
    for (int i = 0; i != 100; ++i) weft::start(p.executor(), yields(), [](weft::result<void>) {});
    co_return;
  };
  p.run(starts());
  test::until([&] { return ran == 100; });
}

TEST(pool_caller, without_threads_the_rest_runs_at_the_end) {
  int ran = 0;  // plain: one thread
  const auto yields = [&]() -> task<> {
    co_await weft::yield();
    ++ran;
  };
  {
    const pool p{{.threads = 1, .use_caller = true}};
    for (int i = 0; i != 10; ++i) weft::start(p.executor(), yields(), [](weft::result<void>) {});
    EXPECT_EQ(ran, 0);
  }
  EXPECT_EQ(ran, 10);
}

TEST(pool_caller, without_threads_the_rest_runs_where_a_task_has_destroyed_it) {
  int ran = 0;
  const auto yields = [&]() -> task<> {
    for (int i = 0; i != 5; ++i) co_await weft::yield();
    ++ran;
  };
  auto* const p = new pool{{.threads = 1, .use_caller = true}};
  const auto ends_it = [&]() -> task<> {
    for (int i = 0; i != 10; ++i) weft::start(p->executor(), yields(), [](weft::result<void>) {});
    delete p;
    co_return;
  };
  p->run(ends_it());
  EXPECT_EQ(ran, 10);
}

TEST(pool_caller, one_without_threads_may_end_inside_a_task) {
  int ran = 0;
  const auto yields = [&]() -> task<> {
    co_await weft::yield();
    ++ran;
  };
  const auto ends_one = [&]() -> task<> {
    const weft::executor* const before = weft::current_env().executor;
    {
      const pool p{{.threads = 1, .use_caller = true}};
      weft::start(p.executor(), yields(), [](weft::result<void>) {});
    }
    EXPECT_EQ(ran, 1);
    EXPECT_NE(before, nullptr);
    EXPECT_EQ(weft::current_env().executor, before);  // the task runs in its root, as before
    co_await weft::yield();
    ++ran;
  };
  sync_wait(ends_one());
  EXPECT_EQ(ran, 2);
}

TEST(pool_caller, failures_and_stops_reach_it) {
  const pool p{{.threads = 2, .use_caller = true}};
  const auto throws = []() -> task<int> {
    co_await weft::yield();
    throw std::runtime_error{"no"};
  };
  EXPECT_THROW(p.run(throws()), std::runtime_error);

  weft::stop_source source;
  const auto never = []() -> task<> {
    for (;;) co_await weft::yield();
  };
  std::jthread helper{[&] { source.request_stop(); }};
  EXPECT_THROW(p.run(never(), source.token()), weft::stopped);
}

TEST(pool_caller, a_pool_without_the_option_runs_it_on_its_threads) {
  const pool p{{.threads = 2}};
  const auto here = [me = std::this_thread::get_id()]() -> task<bool> { co_return std::this_thread::get_id() == me; };
  EXPECT_FALSE(p.run(here()));
}

class pool_options_misuse : public testing::Test {
 protected:
  pool_options_misuse() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

TEST_F(pool_options_misuse, run_inside_a_task) {
  const auto inside = [] {
    const pool p{{.threads = 1}};
    const auto calls = [&]() -> task<long> { co_return p.run(fib(1)); };
    sync_wait(calls());
  };
  EXPECT_DEATH(inside(), "weft: run was called inside a task");
}

TEST_F(pool_options_misuse, run_by_a_job_of_its_own) {
  const auto inside = [] {
    const pool p{{.threads = 1}};
    std::latch over{1};
    test::work calls{[&] {
      p.run(fib(1));
      over.count_down();
    }};
    p.executor().post(calls);
    over.wait();
  };
  EXPECT_DEATH(inside(), "weft: run was called by a job on one of the pool's own threads");
}

TEST_F(pool_options_misuse, run_after_the_end) {
  const auto late = [] {
    pool p{{.threads = 1, .use_caller = true}};
    p.shutdown();
    p.run(fib(1));
  };
  EXPECT_DEATH(late(), "weft: a job was posted to a pool that has shut down");
}

TEST_F(pool_options_misuse, the_place_of_a_caller_by_its_number) {
  const auto asks = [] {
    const pool p{{.threads = 2, .use_caller = true}};
    static_cast<void>(p.worker(1));
  };
  EXPECT_DEATH(asks(), "weft: the last worker of a pool with use_caller was asked for");
}

TEST_F(pool_options_misuse, a_shutdown_while_it_is_there) {
  const auto ends = [] {
    pool p{{.threads = 2, .use_caller = true}};
    test::gate never;
    const auto shuts_down = [&]() -> task<> {
      p.shutdown();
      co_await never;
    };
    p.run(shuts_down());
  };
  EXPECT_DEATH(ends(), "weft: a pool was shut down while a thread was in its run");
}

// ---- priorities -----------------------------------------------------------------------------------------------------------

// A job that notes that it ran.
struct noted : weft::job {
  noted(std::vector<int>& notes, int what) : all{&notes}, number{what} {
    run = [](job& self) noexcept {
      auto& mine = static_cast<noted&>(self);
      mine.all->push_back(mine.number);
    };
  }
  std::vector<int>* all;
  int number;
};

TEST(pool_priorities, what_is_urgent_comes_first_and_what_is_not_last) {
  std::vector<int> order;  // plain: one thread
  noted background_1{order, 5}, background_2{order, 6}, ordinary_1{order, 3}, ordinary_2{order, 4}, urgent_1{order, 1},
      urgent_2{order, 2};
  {
    const pool p{{.threads = 1, .priorities = 3}};
    EXPECT_EQ(&p.executor(1), &p.executor());
    const auto posts_all = [&]() -> task<> {
      for (noted* one : {&background_1, &background_2}) p.executor(2).post(*one);
      for (noted* one : {&ordinary_1, &ordinary_2}) p.executor(1).post_behind(*one);
      for (noted* one : {&urgent_1, &urgent_2}) p.executor(0).post(*one);
      co_return;
    };
    p.run(posts_all());
  }
  EXPECT_EQ(order, (std::vector{1, 2, 3, 4, 5, 6}));
}

TEST(pool_priorities, tasks_stay_at_theirs_and_nothing_waits_for_ever) {
  for (const unsigned threads : {1u, 3u}) {
    const pool p{{.threads = threads, .priorities = 3}};
    std::atomic<int> ran{0};
    const auto until_others_ran = [&]() -> task<> {
      while (ran != 2) co_await weft::yield();
    };
    const auto ordinary = [&]() -> task<> {
      co_await weft::yield();
      ++ran;
    };
    auto all = [&](weft::scope& s) -> task<> {
      for (unsigned i = 0; i != threads + 1; ++i) s.fork_on(p.executor(0), until_others_ran);
      s.fork_on(p.executor(1), ordinary);
      s.fork_on(p.executor(2), ordinary);
      co_return;
    };
    sync_wait(weft::with_scope(all));
  }
}

// Posts itself until `over`.
struct repeated : weft::job {
  repeated(weft::executor& on, const std::atomic<bool>& over) : on{&on}, is_over{&over} {
    run = [](job& self) noexcept {
      auto& mine = static_cast<repeated&>(self);
      ++mine.times;
      if (!*mine.is_over) return mine.on->post(mine);
      mine.has_ended = true;
    };
  }
  weft::executor* on;
  const std::atomic<bool>* is_over;
  std::atomic<long> times{0};
  std::atomic<bool> has_ended{false};
};

// Of five, two are above the middle, and two below it.
TEST(pool_priorities, none_waits_for_ever_behind_more_urgent_jobs_that_keep_coming) {
  for (const unsigned urgent : {0u, 3u}) {
    const pool p{{.threads = 1, .priorities = 5}};
    std::atomic<bool> is_over{false};
    repeated first{p.executor(urgent), is_over}, second{p.executor(urgent), is_over};
    for (repeated* one : {&first, &second}) p.executor(urgent).post(*one);
    std::atomic<bool> has_run{false};
    const auto runs = [&]() -> task<> {
      has_run = true;
      co_return;
    };
    weft::start(p.executor(urgent + 1), runs(), [](weft::result<void>) {});
    while (!has_run && first.times < 1'000'000) std::this_thread::yield();
    EXPECT_TRUE(has_run) << "below priority " << urgent;
    is_over = true;
    while (!first.has_ended || !second.has_ended || !has_run) std::this_thread::yield();
  }
}

// Nor behind a job that takes long, while another worker has urgent and less urgent ones.
TEST(pool_priorities, what_is_behind_a_long_job_is_taken_beside_a_flood_of_less_urgent_ones) {
  const pool p{{.threads = 2, .priorities = 3}};
  std::atomic<bool> is_over{false}, has_run{false};
  repeated less_urgent{p.executor(2), is_over}, ordinary{p.executor(1), is_over}, another{p.executor(1), is_over};
  for (repeated* one : {&less_urgent, &ordinary, &another}) one->on->post(*one);
  const auto runs = [&]() -> task<> {
    has_run = true;
    co_return;
  };
  const auto is_stuck = [&]() -> task<> {
    for (int i = 0; i != 2; ++i) weft::start(p.executor(), runs(), [](weft::result<void>) {});
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds{5};
    while (!has_run && std::chrono::steady_clock::now() < until) std::this_thread::yield();
    EXPECT_TRUE(has_run);
    co_return;
  };
  sync_wait(weft::start_on(p.executor(), is_stuck()));
  is_over = true;
  for (repeated* one : {&less_urgent, &ordinary, &another})
    while (!one->has_ended) std::this_thread::yield();
}

WEFT_TEST("pool_priorities: a strand and a scope over one, with more threads than cores") {
  const pool p{{.threads = 6, .priorities = 2}};
  weft::strand in_turn{p.executor(0)};
  int count = 0;  // plain: the strand's
  const auto counts = [&]() -> task<> {
    for (int i = 0; i != test::rounds(200); ++i) {
      ++count;
      co_await weft::yield();
      co_await weft::start_on(p.executor(), fib(3));
    }
  };
  auto all = [&](weft::scope& s) -> task<> {
    for (int i = 0; i != 20; ++i) s.fork_on(in_turn, counts);
    co_return;
  };
  co_await weft::with_scope(all);
  EXPECT_EQ(count, 20 * test::rounds(200));
}

TEST(pool_priorities, a_pool_that_is_cancelled_stops_tasks_at_each) {
  pool p{{.threads = 2, .priorities = 3}};
  std::atomic<int> stopped{0};
  const auto never = []() -> task<> {
    for (;;) co_await weft::yield();
  };
  weft::strand in_turn{p.executor(2)};
  const auto counts = [&](weft::result<void> r) { stopped += r.is_stopped(); };
  for (unsigned i = 0; i != 3; ++i) weft::start(p.executor(i), never(), counts);
  weft::start(in_turn, never(), counts);
  p.shutdown(weft::pool_shutdown::cancel);
  EXPECT_EQ(stopped, 4);
}

TEST(pool_deadlines, the_earliest_comes_first_then_those_without) {
  std::vector<int> order;  // plain: one thread
  const pool p{{.threads = 1, .deadline_order = true}};
  const auto now = std::chrono::steady_clock::now();
  weft::event door;
  int ready = 0;
  const auto waits = [&](int number) -> task<> {
    ++ready;
    co_await door.wait();
    order.push_back(number);
  };
  const auto until_hour = [&](int number) -> task<> {
    auto inside = [&]() -> task<> { co_await waits(number); };
    co_await weft::with_deadline(now + std::chrono::hours{number}, inside);
  };
  auto all = [&](weft::scope& s) -> task<> {
    s.fork(waits(9));
    for (const int number : {3, 5, 1, 4, 2}) s.fork(until_hour(number));
    while (ready != 6) co_await weft::yield();
    door.set();
  };
  const auto here = [&]() -> task<> { co_await weft::with_scope(all); };
  p.run(here());
  EXPECT_EQ(order, (std::vector{1, 2, 3, 4, 5, 9}));
}

TEST_F(pool_options_misuse, a_priority_that_there_is_not) {
  const auto asks = [] {
    const pool p{{.threads = 1, .priorities = 2}};
    static_cast<void>(p.executor(2));
  };
  EXPECT_DEATH(asks(), "weft: an executor was asked for of a priority that the pool does not have");
  const auto makes = [] { const pool p{{.threads = 1, .priorities = 9}}; };
  EXPECT_DEATH(makes(), "weft: a pool has from 1 to 8 priorities");
}

}  // namespace
