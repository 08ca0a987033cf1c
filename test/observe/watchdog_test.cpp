// The watchdog: who holds up a worker is blamed, with its name, and nobody else is.
#include <weft/watchdog.hpp>

#include <fcntl.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <mutex>
#include <optional>
#include <sstream>
#include <string>
#include <system_error>
#include <thread>
#include <vector>
#include <weft/error.hpp>
#include <weft/pool.hpp>
#include <weft/recorder.hpp>
#include <weft/recording.hpp>
#include <weft/runtime.hpp>
#include <weft/scope.hpp>
#include <weft/sync.hpp>
#include <weft/time.hpp>

#include "support/weft_test.hpp"

namespace {

using namespace std::chrono_literals;
using weft::event_kind;
using weft::stall;
using weft::task;
using weft::watchdog;

// What a watchdog has said so far.
class heard {
 public:
  static void tell(const stall& what, void* with) {
    auto& mine = *static_cast<heard*>(with);
    const std::lock_guard guard{mine.lock_};
    mine.all_.push_back(what);
    mine.count_ = mine.all_.size();
  }
  std::size_t count() const noexcept { return count_; }
  std::vector<stall> all() {
    const std::lock_guard guard{lock_};
    return all_;
  }

 private:
  std::mutex lock_;
  std::vector<stall> all_;
  std::atomic<std::size_t> count_{0};
};

template <class Condition>
bool comes_true(Condition condition) {
  for (const auto until = std::chrono::steady_clock::now() + 60s; !condition();) {
    if (std::chrono::steady_clock::now() > until) return false;
    std::this_thread::sleep_for(1ms);
  }
  return true;
}

// What `attempt` gives; once more where that does not fit: the machine may have stalled the worker itself, at an earlier job, or
// as it was asked where it is.
template <class Attempt, class Fits>
std::optional<stall> fitting(Attempt attempt, Fits fits) {
  std::optional<stall> what = attempt();
  for (int i = 0; i != 20 && what && !fits(*what); ++i) what = attempt();
  return what;
}

bool has(const weft::items<weft::async_frame>& stack, std::string_view function) {
  return std::ranges::any_of(
      stack, [&](const weft::async_frame& one) { return one.function().find(function) != std::string::npos; });
}

std::string text_of(const stall& what) {
  std::ostringstream out;
  out << what;
  return out.str();
}

// What holds up its worker until somebody lets it go on. Not inlined: they are to be seen on the stack.
struct hold_up {
  std::atomic<bool> goes_on{false};
  int ends[2]{-1, -1};

  hold_up() { EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0); }
  ~hold_up() {
    ::close(ends[0]);
    ::close(ends[1]);
  }
  void let_go() {
    goes_on = true;
    EXPECT_EQ(::write(ends[1], "x", 1), 1);
  }
};
[[gnu::noinline]] void spins_for_long(hold_up& until) {
  while (!until.goes_on) {
  }
  asm("");
}
[[gnu::noinline]] void reads_for_long(hold_up& until) {
  char byte;
  EXPECT_EQ(::read(until.ends[0], &byte, 1), 1);
  asm("");
}

task<> handles_request(void (*held_up)(hold_up&), hold_up& until) {
  held_up(until);
  co_return;
}
task<> connection(void (*held_up)(hold_up&), hold_up& until) {
  co_await weft::sleep_for(1ms);
  co_await handles_request(held_up, until);
}

// Runs it on a worker, behind which two jobs wait, until it is blamed.
std::optional<stall> blamed(void (*held_up)(hold_up&), std::uint64_t& stalls) {
  heard what;
  hold_up until;
  std::optional<stall> first;
  weft::pool workers{{.threads = 1}};
  {
    watchdog dog{{.stall_after = 50ms, .on_stall = heard::tell, .with = &what}};
    auto all = [&](weft::scope& s) -> task<> {
      s.fork_on(workers.worker(0), connection(held_up, until));
      co_return;
    };
    std::jthread other{[&] { weft::sync_wait(weft::with_scope(all)); }};
    if (comes_true([&] { return what.count() != 0; })) first = what.all().front();
    std::this_thread::sleep_for(150ms);  // time in which it could be blamed again
    stalls = dog.stats().stalls;
    EXPECT_EQ(dog.stats().reported, what.count());
    until.let_go();
  }
  return first;
}

TEST(watchdog, blames_what_computes_with_its_calls) {
  std::uint64_t stalls = 0;
  const auto what = fitting([&] { return blamed(spins_for_long, stalls); },
                            [](const stall& one) {
#if defined(WEFT_TEST_TSAN)
                              return one.system_call == -1;
#else
                              return has(one.stack, "spins_for_long");
#endif
                            });
  ASSERT_TRUE(what);
  EXPECT_EQ(stalls, 1u) << "a job is blamed once";
  EXPECT_EQ(what->system_call, -1);
  EXPECT_GE(what->lasted, 50ms);
  EXPECT_TRUE(what->is_exact);
#if !defined(WEFT_TEST_TSAN)  // which puts handlers off until the next call that it knows
  EXPECT_TRUE(has(what->stack, "spins_for_long")) << text_of(*what);
  EXPECT_TRUE(has(what->async_stack, "handles_request")) << text_of(*what);
  EXPECT_TRUE(has(what->async_stack, "connection")) << text_of(*what);
#endif
}

TEST(watchdog, blames_a_blocking_read_without_disturbing_it) {
  std::uint64_t stalls = 0;
  const auto what = fitting([&] { return blamed(reads_for_long, stalls); },
                            [](const stall& one) { return has(one.stack, "reads_for_long"); });
  ASSERT_TRUE(what);
  EXPECT_EQ(stalls, 1u);
  EXPECT_STREQ(what->system_call_name, "read");
  EXPECT_FALSE(what->is_exact);
  EXPECT_TRUE(has(what->stack, "reads_for_long")) << text_of(*what);
  EXPECT_TRUE(has(what->async_stack, "handles_request")) << text_of(*what);
  EXPECT_TRUE(has(what->async_stack, "connection")) << text_of(*what);
  EXPECT_NE(text_of(*what).find("now in system call read; 0 jobs wait behind it"), std::string::npos) << text_of(*what);
}

TEST(watchdog, blames_who_waits_for_a_mutex_of_the_standard_library) {
  const auto attempt = []() -> std::optional<stall> {
    heard what;
    std::mutex lock;
    weft::pool workers{{.threads = 1}};
    watchdog dog{{.stall_after = 50ms, .on_stall = heard::tell, .with = &what}};
    const auto wants_it = [&]() -> task<> {
      const std::lock_guard held{lock};
      co_return;
    };
    std::unique_lock holder{lock};
    std::jthread other{[&] { workers.run(wants_it()); }};
    const bool is_told = comes_true([&] { return what.count() != 0; });
    holder.unlock();
    return is_told ? std::optional{what.all().front()} : std::nullopt;
  };
  const auto what =
      fitting(attempt, [](const stall& one) { return one.system_call_name == std::string_view{"futex"}; });
  ASSERT_TRUE(what);
  EXPECT_STREQ(what->system_call_name, "futex") << text_of(*what);
  EXPECT_FALSE(what->async_stack.empty()) << text_of(*what);
  EXPECT_NE(text_of(*what).find("now in system call futex (for a lock, perhaps one that a task holds"),
            std::string::npos)
      << text_of(*what);
}

// What waits is there before it sleeps.
TEST(watchdog, blames_a_sleep_and_counts_what_waits_behind_it) {
  const auto attempt = []() -> std::optional<stall> {
    heard what;
    std::atomic<bool> over{false};
    weft::pool workers{{.threads = 1}};
    watchdog dog{{.stall_after = 50ms, .on_stall = heard::tell, .with = &what}};
    auto waits = []() -> task<> { co_return; };
    auto sleeps = [&](weft::scope& s) -> task<> {
      for (int i = 0; i != 3; ++i) s.fork_on(workers.worker(0), waits());
      while (!over) std::this_thread::sleep_for(2s);
      co_return;
    };
    std::jthread other{[&] { weft::sync_wait(weft::start_on(workers.worker(0), weft::with_scope(sleeps))); }};
    const bool is_told = comes_true([&] { return what.count() != 0; });
    over = true;
    return is_told ? std::optional{what.all().front()} : std::nullopt;
  };
  const auto is_asleep = [](const stall& one) { return std::string_view{one.system_call_name}.ends_with("nanosleep"); };
  const auto what = fitting(attempt, is_asleep);
  ASSERT_TRUE(what);
  EXPECT_TRUE(is_asleep(*what)) << text_of(*what);
  EXPECT_EQ(what->waiting, 3u);
  EXPECT_FALSE(what->async_stack.empty()) << text_of(*what);
}

TEST(watchdog, blames_the_thread_that_calls_run) {
  const auto attempt = []() -> std::optional<stall> {
    heard what;
    hold_up until;
    const watchdog dog{{.stall_after = 50ms, .on_stall = heard::tell, .with = &what}};
    std::jthread caller{[&] { weft::run({.threads = 1}, connection(reads_for_long, until)); }};  // its only worker
    const bool is_told = comes_true([&] { return what.count() != 0; });
    until.let_go();
    return is_told ? std::optional{what.all().front()} : std::nullopt;
  };
  const auto what = fitting(attempt, [](const stall& one) { return has(one.async_stack, "connection"); });
  ASSERT_TRUE(what);
  EXPECT_STREQ(what->system_call_name, "read");
  EXPECT_TRUE(has(what->async_stack, "connection")) << text_of(*what);
}

// Who waits for a disk meanwhile, for a page of its code, is blamed, and rightly: so it is tried again.
TEST(watchdog, blames_nobody_who_runs_many_short_jobs) {
  weft::watchdog_stats seen{};
  for (int i = 0; i != 20 && (seen.looks <= 5 || seen.stalls != 0); ++i) {
    heard what;
    weft::pool workers{{.threads = 2}};
    const watchdog dog{{.stall_after = 50ms, .on_stall = heard::tell, .with = &what}};
    auto busy = [](std::chrono::steady_clock::time_point until) -> task<> {
      while (std::chrono::steady_clock::now() < until) co_await weft::yield();
    };
    auto all = [&](weft::scope& s) -> task<> {
      for (int j = 0; j != 4; ++j) s.fork(busy(std::chrono::steady_clock::now() + 300ms));
      co_return;
    };
    weft::sync_wait(weft::with_scope({.executor = &workers.executor()}, all));
    seen = dog.stats();
  }
  EXPECT_EQ(seen.stalls, 0u);
  EXPECT_GT(seen.looks, 5u);
}

// A thread of the lowest priority, on a processor that others keep busy: its job takes long, since it is not run.
TEST(watchdog, blames_nobody_whom_the_kernel_does_not_run) {
  cpu_set_t before, one;
  ASSERT_EQ(::sched_getaffinity(0, sizeof before, &before), 0);
  CPU_ZERO(&one);
  for (int i = 0; i != CPU_SETSIZE; ++i)
    if (CPU_ISSET(i, &before)) {
      CPU_SET(i, &one);
      break;
    }
  std::uint64_t stalls = 1;
  for (int tries = 0; tries != 5 && stalls != 0; ++tries) {
    heard what;
    std::atomic<bool> over{false};
    std::atomic<int> ran{0};
    weft::pool workers{{.threads = 1}};
    const watchdog dog{{.stall_after = 100ms, .on_stall = heard::tell, .with = &what}};
    auto slow = [&]() -> task<> {
      ::sched_setaffinity(0, sizeof one, &one);
      ::setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), 10);
      timespec used{};
      do ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
      while (used.tv_sec == 0 && used.tv_nsec < 30'000'000);  // of its own time: far less than what it is allowed
      ++ran;
      co_return;
    };
    std::vector<std::jthread> busy;
    for (int i = 0; i != 4; ++i)
      busy.emplace_back([&] {
        ::sched_setaffinity(0, sizeof one, &one);
        while (!over) {
        }
      });
    weft::sync_wait(weft::start_on(workers.executor(), slow()));
    over = true;
    EXPECT_EQ(ran, 1);
    stalls = dog.stats().stalls;
  }
  EXPECT_EQ(stalls, 0u);
}

TEST(watchdog, reports_at_most_one_stall_in_so_long) {
  heard what;
  weft::pool workers{{.threads = 1}};
  const watchdog dog{
      {.stall_after = 1ms, .on_stall = heard::tell, .with = &what, .at_most_every = std::chrono::milliseconds::max()}};
  auto blocks = []() -> task<> {
    std::this_thread::sleep_for(50ms);
    co_return;
  };
  EXPECT_TRUE(comes_true([&] {
    weft::sync_wait(weft::start_on(workers.executor(), blocks()));
    return dog.stats().stalls >= 3;
  }));
  EXPECT_EQ(what.count(), 1u);
}

TEST(watchdog, ends_at_once_however_seldom_it_looks) {
  std::atomic<bool> over{false};
  weft::pool workers{{.threads = 1}};
  auto spins = [&]() -> task<> {
    while (!over) {
    }
    co_return;
  };
  std::jthread other{[&] { weft::sync_wait(weft::start_on(workers.executor(), spins())); }};
  for (const auto after : {std::chrono::milliseconds{1h}, std::chrono::milliseconds::max()}) {
    std::optional<watchdog> dog{std::in_place, weft::watchdog_options{.stall_after = after}};
    EXPECT_TRUE(comes_true([&] { return dog->stats().looks != 0; }));
    const auto before = std::chrono::steady_clock::now();
    dog.reset();
    EXPECT_LT(std::chrono::steady_clock::now() - before, 60s);
  }
  over = true;
}

TEST(watchdog, sleeps_while_all_workers_do) {
  weft::pool workers{{.threads = 2}};
  const watchdog dog{{.stall_after = 4ms}};
  auto nothing = []() -> task<> { co_return; };
  weft::sync_wait(weft::start_on(workers.executor(), nothing()));
  // The looks stand still, at last: a worker takes a while until it sleeps.
  EXPECT_TRUE(comes_true([&] {
    const std::uint64_t before = dog.stats().looks;
    std::this_thread::sleep_for(300ms);
    return dog.stats().looks == before;
  }));
  const std::uint64_t before = dog.stats().looks;
  weft::sync_wait(weft::start_on(workers.executor(), nothing()));
  EXPECT_TRUE(comes_true([&] {
    weft::sync_wait(weft::start_on(workers.executor(), nothing()));
    return dog.stats().looks > before;
  })) << "it is not woken";
}

// ---- deadlocks ------------------------------------------------------------------------------------------------------------

// Two tasks, each of which takes one mutex and then, when both have one, the other's.
struct two_in_a_circle {
  weft::mutex one, other;
  weft::latch both{2};
  weft::stop_source stop;
  weft::task_id first, second;

  task<> takes(weft::mutex& mine, weft::mutex& then, weft::task_id& id) {
    id = weft::this_task::id();
    const auto a = co_await mine.lock();
    both.count_down();
    co_await both.wait();
    const auto b = co_await then.lock();
  }
  // On these workers, until `stop`.
  void run(weft::pool& workers) {
    auto all = [&](weft::scope& s) -> task<> {
      s.fork(takes(one, other, first));
      s.fork(takes(other, one, second));
      co_return;
    };
    static_cast<void>(
        weft::sync_wait(weft::as_result(weft::with_scope({.executor = &workers.executor()}, all)), stop.token()));
  }
};

struct told_deadlocks {
  std::mutex lock;
  std::vector<std::vector<weft::task_id>> circles;  // of the last snapshot, sorted
  std::string text;
  std::atomic<int> count{0};

  static void tell(const weft::snapshot& what, void* with) {
    auto& mine = *static_cast<told_deadlocks*>(with);
    const std::lock_guard guard{mine.lock};
    mine.circles.clear();
    for (const weft::deadlock& one : what.deadlocks()) {
      mine.circles.emplace_back(one.circle.begin(), one.circle.end());
      std::ranges::sort(mine.circles.back());
    }
    std::ostringstream out;
    what.deadlocks_text(out);
    mine.text = out.str();
    ++mine.count;
  }
};

TEST(watchdog, tells_of_tasks_that_wait_for_each_other_once_all_workers_sleep) {
  told_deadlocks told;
  two_in_a_circle two;
  weft::pool workers{{.threads = 2}};
  const watchdog dog{{.stall_after = 4ms, .with = &told, .on_deadlock = told_deadlocks::tell}};
  std::jthread other{[&] { two.run(workers); }};
  EXPECT_TRUE(comes_true([&] { return told.count == 1; }));
  // Another task comes and goes: it is searched again, and nothing is new.
  auto nothing = []() -> task<> { co_return; };
  const std::uint64_t before = dog.stats().searches;
  EXPECT_TRUE(comes_true([&] {
    weft::sync_wait(weft::start_on(workers.executor(), nothing()));
    return dog.stats().searches >= before + 2;
  }));
  EXPECT_EQ(told.count, 1);
  EXPECT_EQ(dog.stats().deadlocks, 1u);
  two.stop.request_stop();
  other.join();
  const std::lock_guard guard{told.lock};
  std::vector<weft::task_id> circle{two.first, two.second};
  std::ranges::sort(circle);
  ASSERT_EQ(told.circles.size(), 1u);
  EXPECT_EQ(told.circles.front(), circle);
  EXPECT_TRUE(told.text.starts_with("DEADLOCK: ")) << told.text;
  EXPECT_NE(told.text.find("waits for mutex"), std::string::npos) << told.text;
  EXPECT_NE(told.text.find("two_in_a_circle::takes"), std::string::npos) << told.text;
}

TEST(watchdog, searches_once_and_tells_nothing_of_an_idle_program) {
  told_deadlocks told;
  weft::pool workers{{.threads = 2}};
  const watchdog dog{{.stall_after = 4ms, .with = &told, .on_deadlock = told_deadlocks::tell}};
  weft::mutex held;
  weft::stop_source stop;
  auto waits = [&](weft::scope& s) -> task<> {  // for somebody who may still come
    const auto mine = co_await held.lock();
    s.fork([](weft::mutex& m) -> task<> { const auto its = co_await m.lock(); }(held));
    weft::event never;
    co_await never.wait();
  };
  std::jthread other{[&] {
    static_cast<void>(
        weft::sync_wait(weft::as_result(weft::with_scope({.executor = &workers.executor()}, waits)), stop.token()));
  }};
  EXPECT_TRUE(comes_true([&] { return dog.stats().searches != 0; }));
  EXPECT_TRUE(comes_true([&] {  // and then it sleeps, too
    const auto before = dog.stats();
    std::this_thread::sleep_for(300ms);
    return dog.stats().looks == before.looks && dog.stats().searches == before.searches;
  }));
  stop.request_stop();
  other.join();
  EXPECT_EQ(told.count, 0);
}

TEST(watchdog, searches_for_no_deadlocks_where_it_is_not_to) {
  weft::pool workers{{.threads = 1}};
  const watchdog dog{{.stall_after = 4ms, .deadlocks = false}};
  auto nothing = []() -> task<> { co_return; };
  weft::sync_wait(weft::start_on(workers.executor(), nothing()));
  EXPECT_TRUE(comes_true([&] {
    const std::uint64_t before = dog.stats().looks;
    std::this_thread::sleep_for(300ms);
    return dog.stats().looks == before;
  }));
  EXPECT_EQ(dog.stats().searches, 0u);
}

// ---------------------------------------------------------------------------------------------------------------------------

TEST(watchdog, is_alone) {
  const watchdog dog;
  try {
    const watchdog second;
    FAIL() << "there are two";
  } catch (const weft::error& refused) {
    EXPECT_EQ(refused.code(), std::errc::device_or_resource_busy);
  }
}

#if !defined(WEFT_TEST_TSAN)  // which starts no threads behind a fork
// The child has not the thread of its parent's: it does not wait for that, and may have its own.
TEST(watchdog, of_a_forked_child_is_its_own) {
  std::optional<watchdog> dog{std::in_place};
  const ::pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    ::alarm(60);
    dog.emplace();
    ::_exit(dog->stats().deadlocks == 0 ? 7 : 8);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 7);
}
#endif

std::atomic<int> profiled{0};
void profile(int) { ++profiled; }

TEST(watchdog, leaves_signals_of_others_to_their_handler) {
  std::signal(SIGPROF, profile);
  {
    const watchdog dog;
    ::raise(SIGPROF);
    EXPECT_EQ(profiled, 1);
  }
  std::signal(SIGPROF, SIG_DFL);
}

// The handler of the first one stays, since a signal may come late: it is not taken for a handler that was there before.
TEST(watchdog, leaves_signals_alone_the_second_time_too) {
  std::signal(SIGPROF, SIG_DFL);
  {
    const watchdog first;
  }
  const watchdog second;
  ::raise(SIGPROF);
}

// Who has set a handler meanwhile keeps it.
TEST(watchdog, does_not_take_away_a_handler_that_was_set_later) {
  std::signal(SIGPROF, [](int) {});
  {
    const watchdog dog;
    std::signal(SIGPROF, profile);
  }
  const int before = profiled;
  ::raise(SIGPROF);
  EXPECT_EQ(profiled, before + 1);
  std::signal(SIGPROF, SIG_DFL);
}

TEST(watchdog, records_samples_and_stalls) {
  heard what;
  std::atomic<bool> over{false};
  weft::pool workers{{.threads = 1}};
  watchdog dog{{.stall_after = 50ms, .on_stall = heard::tell, .with = &what, .samples_a_second = 200}};
  auto spins = [&]() -> task<> {
    while (!over) {
    }
    co_return;
  };
  std::jthread other{[&] { weft::sync_wait(weft::start_on(workers.executor(), spins())); }};
  EXPECT_TRUE(comes_true([&] { return dog.stats().samples >= 20 && what.count() != 0; }));
  over = true;
  other.join();
  const std::string path = "/tmp/watchdog_test." + std::to_string(::getpid());
  weft::save_recording(path.c_str());
  const weft::recording all = weft::recording::read(path.c_str());
  ::unlink(path.c_str());
  std::size_t samples = 0, stalls = 0;
  for (const auto& one : all.events()) {
    samples += one.kind == event_kind::sample ? 1 : 0;
    stalls += one.kind == event_kind::stall && one.number == what.all().front().thread ? 1 : 0;
  }
  EXPECT_GE(samples, 20u);
  EXPECT_GE(stalls, 1u);
}

// ---- spare workers ------------------------------------------------------------------------------------------------------

// The only worker blocks, behind it wait jobs; a spare one runs them meanwhile.
template <class Pool>
void expect_taken_over(Pool& workers) {
  hold_up until;
  std::atomic<int> ran{0};
  auto blocks = [&]() -> task<> {
    reads_for_long(until);
    co_return;
  };
  auto counts = [&]() -> task<> {
    ++ran;
    co_return;
  };
  auto forker = [&](weft::scope& s) -> task<> {
    for (int i = 0; i != 5; ++i) s.fork_on(workers.executor(), counts());  // these wait behind it
    co_await blocks();
  };
  std::jthread other{[&] { weft::sync_wait(weft::with_scope({.executor = &workers.executor()}, forker)); }};
  EXPECT_TRUE(comes_true([&] { return ran == 5; })) << "nobody has taken over";
  until.let_go();
}

TEST(spare_workers, take_over_what_waits_behind_one_that_blocks) {
  weft::pool workers{{.threads = 1, .spare_workers = 1}};
  EXPECT_EQ(workers.size(), 2u);
  expect_taken_over(workers);
}
TEST(spare_workers, of_a_runtime_do_so_too) {
  weft::runtime workers{{.threads = 1, .spare_workers = 1}};
  expect_taken_over(workers);
}

}  // namespace
