// Traced requests: what is recorded of them, and what their ledger says.
#include <weft/traced.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <map>
#include <memory_resource>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <vector>
#include <weft/channel.hpp>
#include <weft/combine.hpp>
#include <weft/fiber.hpp>
#include <weft/file.hpp>
#include <weft/net.hpp>
#include <weft/observe.hpp>
#include <weft/pool.hpp>
#include <weft/recorder.hpp>
#include <weft/recording.hpp>
#include <weft/runtime.hpp>
#include <weft/scope.hpp>
#include <weft/shared_task.hpp>
#include <weft/sync.hpp>
#include <weft/with.hpp>

#include "support/weft_test.hpp"

namespace {

using namespace std::chrono_literals;
using weft::event_kind;
using weft::ledger;
using weft::recording;
using weft::scope;
using weft::task;
using weft::with_scope;
using weft::with_trace;

// What is recorded now.
recording recorded() {
  static std::atomic<int> number{0};
  const std::string path = (std::filesystem::temp_directory_path() /
                            ("traced_test." + std::to_string(::getpid()) + "." + std::to_string(number++)))
                               .string();
  weft::save_recording(path.c_str());
  recording all = recording::read(path.c_str());
  std::filesystem::remove(path);
  return all;
}

// The number of the newest request that has this name.
std::uint32_t request_named(const recording& all, std::string_view name) {
  std::uint32_t number = 0;
  for (const recording::event& one : all.events())
    if (one.kind == event_kind::trace_begins && all.text(one.second) == name) number = std::max(number, one.number);
  EXPECT_NE(number, 0u) << name;
  return number;
}

std::vector<recording::event> of_request(const recording& all, std::uint32_t number, event_kind kind) {
  std::vector<recording::event> some;
  for (const recording::event& one : all.events())
    if (one.kind == kind && one.number == number) some.push_back(one);
  return some;
}

// What is recorded when each turn of those requests has an end, which the thread that a root has left for another writes late.
// `numbers` finds them.
template <class Numbers>
recording recorded_with_ends(Numbers numbers) {
  for (int tries = 0;; ++tries) {
    recording all = recorded();
    const auto is_complete = [&](std::uint32_t one) {
      return of_request(all, one, event_kind::turn_begins).size() == of_request(all, one, event_kind::turn_ends).size();
    };
    if (std::ranges::all_of(numbers(all), is_complete) || tries == 4'000) return all;
    std::this_thread::sleep_for(10ms);
  }
}
recording recorded_with_ends_of(std::string_view name) {
  return recorded_with_ends([&](const recording& all) { return std::set{request_named(all, name)}; });
}

// Begin and end alternate for each root, and on each thread. A root's address may be used again, so by its first turns.
void expect_alternating(const recording& all, std::uint32_t number) {
  struct life {
    bool runs = false;
    std::uint32_t ring = 0;
    std::size_t turns = 0;
  };
  std::map<std::uint64_t, life> roots;
  std::map<std::uint32_t, std::uint64_t> on_ring;
  std::size_t turns = 0;
  for (const recording::event& one : all.events()) {
    if (one.number != number) continue;
    if (one.kind == event_kind::turn_begins) {
      life& its = roots[one.first];
      EXPECT_FALSE(its.runs) << "a turn of root " << one.first << " begins while it runs";
      EXPECT_EQ(on_ring[one.ring], 0u) << "a thread is in two turns";
      its.runs = true;
      its.ring = one.ring;
      ++its.turns;
      on_ring[one.ring] = one.first;
      ++turns;
    } else if (one.kind == event_kind::turn_ends) {
      life& its = roots[one.first];
      EXPECT_TRUE(its.runs) << "a turn of root " << one.first << " ends that had not begun";
      EXPECT_EQ(its.ring, one.ring) << "a turn ends on another thread";
      its.runs = false;
      on_ring[one.ring] = 0;
    }
  }
  EXPECT_NE(turns, 0u);
  for (const auto& [root, its] : roots) EXPECT_FALSE(its.runs) << "a turn has no end";
}

const ledger::wait* wait_for(const ledger& of, std::string_view kind) {
  const auto all = of.waits();
  const auto found = std::ranges::find_if(all, [&](const ledger::wait& one) { return kind == one.kind; });
  return found != all.end() ? &*found : nullptr;
}

TEST(with_trace, gives_the_value_and_traces_what_is_below) {
  EXPECT_FALSE(weft::this_task::is_traced());
  auto below = [](int n) -> task<int> {
    EXPECT_TRUE(weft::this_task::is_traced());
    auto forks = [&](scope& s) -> task<int> {
      auto inside = []() -> task<bool> { co_return weft::this_task::is_traced(); };
      auto first = s.fork(inside());
      const bool second = co_await inside();
      co_return (co_await std::move(first)) && second ? n : 0;
    };
    co_return co_await with_scope(forks);
  };
  auto outer = [&]() -> task<int> {
    EXPECT_FALSE(weft::this_task::is_traced());
    const int got = co_await with_trace(below, 7);
    EXPECT_FALSE(weft::this_task::is_traced());
    co_return got;
  };
  EXPECT_EQ(weft::sync_wait(outer()), 7);
}

TEST(with_trace, traces_what_runs_in_another_environment) {
  const weft::pool there{{.threads = 1}};
  std::pmr::monotonic_buffer_resource arena;
  auto asks = []() -> task<bool> {
    co_await weft::yield();
    co_return weft::this_task::is_traced();
  };
  auto below = [&]() -> task<> {
    weft::env elsewhere = weft::current_env();
    elsewhere.executor = &there.executor();
    EXPECT_TRUE(co_await weft::with_env(elsewhere, asks));
    EXPECT_TRUE(co_await weft::start_on(there.executor(), asks()));
    EXPECT_TRUE(co_await weft::with_memory(&arena, asks));
    EXPECT_TRUE(co_await weft::with_deadline(1h, asks));
    auto hops = [&]() -> task<bool> {
      co_await weft::resume_on(there.executor());
      co_return weft::this_task::is_traced();
    };
    EXPECT_TRUE(co_await hops());
    const weft::shared_task<bool> shared{asks()};
    EXPECT_FALSE(co_await shared) << "it may outlive the request";
  };
  weft::sync_wait(with_trace({.name = "elsewhere"}, below));
  const recording all = recorded_with_ends_of("elsewhere");
  expect_alternating(all, request_named(all, "elsewhere"));
}

TEST(with_trace, traces_one_in_so_many) {
  int traced = 0;
  auto count = [&]() -> task<> {
    traced += weft::this_task::is_traced() ? 1 : 0;
    co_return;
  };
  auto all = [&](unsigned one_in) -> task<> {
    for (int i = 0; i != 40; ++i) co_await with_trace({.one_in = one_in}, count);
  };
  weft::sync_wait(all(4));
  EXPECT_EQ(traced, 10);
  traced = 0;
  weft::sync_wait(all(0));
  EXPECT_EQ(traced, 0);
}

TEST(with_trace, inside_of_another_one_is_a_part_of_that) {
  auto inner = []() -> task<std::uint64_t> { co_return weft::current_ledger().frames; };
  auto outer = [&]() -> task<> {
    const std::uint64_t before = weft::current_ledger().frames;
    EXPECT_GT(co_await with_trace({.name = "never seen"}, inner), before);
  };
  weft::sync_wait(with_trace({.name = "outer"}, outer));
  const recording all = recorded();
  for (const recording::event& one : all.events()) {
    if (one.kind == event_kind::trace_begins) {
      EXPECT_NE(all.text(one.second), "never seen");
    }
  }
}

TEST(with_trace, has_a_snapshot_say_since_when_it_waits) {
  weft::event traced_goes_on, other_goes_on;
  auto waits = [](weft::event& e) -> task<> { co_await e.wait(); };
  const auto before = std::chrono::steady_clock::now();
  std::thread traced{[&] { weft::sync_wait(with_trace({.name = "waits"}, waits, std::ref(traced_goes_on))); }};
  std::thread other{[&] { weft::sync_wait(waits(other_goes_on)); }};
  weft::snapshot seen;
  test::until([&] {
    seen = weft::take_snapshot();
    return std::ranges::count(seen.tasks, weft::task_state::waiting, &weft::task_info::state) == 2;
  });
  int with_time = 0;
  for (const weft::task_info& one : seen.tasks)
    if (one.since) {
      ++with_time;
      ASSERT_EQ(one.waits.size(), 1u);
      EXPECT_EQ(one.waits[0].at, &traced_goes_on);
      EXPECT_GE(*one.since, before - std::chrono::milliseconds{1});  // a stamp is of another clock
      EXPECT_LE(*one.since, std::chrono::steady_clock::now() + std::chrono::milliseconds{1});
    }
  EXPECT_EQ(with_time, 1);
  traced_goes_on.set();
  other_goes_on.set();
  traced.join();
  other.join();
}

TEST(with_trace, has_a_snapshot_say_since_when_it_runs) {
  std::atomic<int> running{0};
  std::atomic<bool> ends{false};
  const weft::pool workers{{.threads = 2}};
  auto runs = [&]() -> task<> {
    co_await weft::yield();
    for (++running; !ends;) std::this_thread::yield();
  };
  const auto before = std::chrono::steady_clock::now();
  std::thread traced{[&] { workers.run(with_trace({.name = "runs"}, runs)); }};
  std::thread other{[&] { workers.run(runs()); }};
  test::until([&] { return running == 2; });
  const weft::snapshot seen = weft::take_snapshot();
  const auto now = std::chrono::steady_clock::now();
  ends = true;
  traced.join();
  other.join();
  const auto with_time = [](const auto& one) { return one.since.has_value(); };
  ASSERT_EQ(std::ranges::count_if(seen.workers, with_time), 1);
  ASSERT_EQ(std::ranges::count_if(seen.tasks, with_time), 1);
  const weft::task_info& task = *std::ranges::find_if(seen.tasks, with_time);
  EXPECT_EQ(task.state, weft::task_state::running);
  EXPECT_GE(*task.since, before - std::chrono::milliseconds{1});  // a stamp is of another clock
  EXPECT_LE(*task.since, now + std::chrono::milliseconds{1});
  const weft::worker_info& worker = *std::ranges::find_if(seen.workers, with_time);
  EXPECT_EQ(worker.runs, task.id);
  EXPECT_EQ(worker.since, task.since);
  std::ostringstream text;
  seen.text(text);
  EXPECT_NE(text.str().find("running in thread " + std::to_string(worker.thread) + ", for "), std::string::npos)
      << text.str();
}

TEST(with_trace, failures_and_stops_pass_through_and_end_the_trace) {
  auto fails = []() -> task<> {
    throw std::runtime_error{"as asked"};
    co_return;
  };
  auto waits = []() -> task<> { co_await weft::sleep_for(1h); };
  auto all = [&]() -> task<> {
    EXPECT_FALSE((co_await weft::as_result(with_trace({.name = "fails"}, fails))).has_value());
    EXPECT_FALSE(weft::this_task::is_traced());
    EXPECT_FALSE((co_await weft::as_result(weft::timeout(1ms, with_trace({.name = "stopped"}, waits)))).has_value());
    EXPECT_FALSE(weft::this_task::is_traced());
  };
  weft::sync_wait(all());
  const recording seen = recorded();
  for (const char* const name : {"fails", "stopped"}) {
    const std::uint32_t number = request_named(seen, name);
    EXPECT_EQ(of_request(seen, number, event_kind::trace_ends).size(), 1u);
    expect_alternating(seen, number);
  }
}

// ---- turns --------------------------------------------------------------------------------------------------------------

task<> bounce(weft::channel<int>& there, weft::channel<int>& back, int rounds) {
  for (int i = 0; i != rounds; ++i) {
    co_await there.send(i);
    co_await back.receive();
  }
}
task<> reflect(weft::channel<int>& there, weft::channel<int>& back, int rounds) {
  for (int i = 0; i != rounds; ++i) {
    co_await there.receive();
    co_await back.send(i);
  }
}

// All kinds of children, on several threads: forks, fibers, a when_all that waits and is stolen from, a race.
task<> busy_request(weft::executor& workers, int rounds) {
  weft::channel<int> there{0}, back{1};
  weft::mutex lock;
  auto yields = [&](int n) -> task<int> {
    for (int i = 0; i != n; ++i) {
      co_await weft::yield();
      auto guard = co_await lock.lock();
    }
    co_return n;
  };
  auto all = [&](scope& s) -> task<> {
    s.fork(bounce(there, back, rounds));
    s.fork(reflect(there, back, rounds));
    for (int i = 0; i != 8; ++i) s.fork_on(workers, yields(rounds / 8));
    s.go([&] {
      for (int i = 0; i != rounds / 4; ++i) weft::this_fiber::yield();
    });
    co_await weft::when_all(yields(3), yields(5), yields(7));
    co_await weft::when_any(yields(3), weft::sleep_for(1h));
    co_await weft::sleep_for(1ms);
  };
  co_await with_scope({.executor = &workers}, all);
}

TEST(turns, begin_and_end_alternate_for_each_root) {
  const weft::pool workers{{.threads = 4}};
  for (int run = 0; run != 5; ++run) {
    weft::sync_wait(with_trace({.name = "busy"}, busy_request, std::ref(workers.executor()), 200));
    const recording all = recorded_with_ends_of("busy");
    const std::uint32_t number = request_named(all, "busy");
    expect_alternating(all, number);
    EXPECT_EQ(of_request(all, number, event_kind::turn_begins).size(),
              of_request(all, number, event_kind::turn_ends).size());
    EXPECT_GE(of_request(all, number, event_kind::wake).size(), 200u);
    EXPECT_GE(of_request(all, number, event_kind::fork).size(), 11u);
  }
}

TEST(turns, of_other_requests_and_of_what_is_not_traced_are_apart) {
  const weft::pool workers{{.threads = 3}};
  auto one = [&](const char* name) -> task<> {
    co_await with_trace({.name = name}, busy_request, std::ref(workers.executor()), 60);
  };
  auto all = [&](scope& s) -> task<> {
    for (int i = 0; i != 3; ++i) {
      s.fork(one("first of two"));
      s.fork(one("second of two"));
      s.fork(busy_request(workers.executor(), 60));
    }
    co_return;
  };
  weft::sync_wait(with_scope({.executor = &workers}, all));
  const auto of_two = [](const recording& in) {
    std::set<std::uint32_t> numbers;
    for (const recording::event& each : in.events())
      if (each.kind == event_kind::trace_begins &&
          (in.text(each.second) == "first of two" || in.text(each.second) == "second of two"))
        numbers.insert(each.number);
    return numbers;
  };
  const recording seen = recorded_with_ends(of_two);
  const std::set<std::uint32_t> numbers = of_two(seen);
  EXPECT_EQ(numbers.size(), 6u);
  for (const std::uint32_t number : numbers) expect_alternating(seen, number);
}

TEST(turns, run_below_memory_of_the_users_choice) {
  const weft::pool workers{{.threads = 2}};
  std::pmr::synchronized_pool_resource memory;
  auto inside = [&]() -> task<> {
    const std::uint64_t before = weft::current_ledger().frames;
    auto body = [&](scope& s) -> task<> {
      for (int i = 0; i != 10; ++i) s.fork([]() -> task<> { co_await weft::yield(); });
      co_return;
    };
    co_await with_scope({.memory = &memory, .executor = &workers.executor(), .memory_is_shared = true}, body);
    EXPECT_GE(weft::current_ledger().frames, before + 10);
  };
  weft::sync_wait(with_trace({.name = "memory"}, inside));
  const recording all = recorded_with_ends_of("memory");
  expect_alternating(all, request_named(all, "memory"));
}

// ---- the ledger ---------------------------------------------------------------------------------------------------------

// What its job has run before is not the request's, also where the job before that was a turn of another request.
TEST(turns, begin_no_sooner_than_their_request) {
  const weft::pool workers{{.threads = 1}};
  auto other = []() -> task<> {
    for (int i = 0; i != 3; ++i) co_await weft::yield();
  };
  auto late = []() -> task<> {
    const auto until = std::chrono::steady_clock::now() + 1ms;
    while (std::chrono::steady_clock::now() < until) {
    }
    auto nothing = []() -> task<> { co_return; };
    co_await with_trace({.name = "late"}, nothing);
  };
  auto both = [&](scope& s) -> task<> {
    s.fork(with_trace({.name = "other"}, other));
    s.fork(late());
    co_return;
  };
  weft::sync_wait(with_scope({.executor = &workers}, both));
  const recording all = recorded();
  const std::uint32_t number = request_named(all, "late");
  const auto begins = of_request(all, number, event_kind::trace_begins);
  const auto turns = of_request(all, number, event_kind::turn_begins);
  ASSERT_EQ(begins.size(), 1u);
  ASSERT_FALSE(turns.empty());
  EXPECT_GE(turns.front().nanoseconds, begins.front().nanoseconds);
}

TEST(current_ledger, is_empty_outside) {
  const ledger none = weft::current_ledger();
  EXPECT_EQ(none.turns, 0u);
  EXPECT_EQ(none.frames, 0u);
  EXPECT_TRUE(none.waits().empty());
}

TEST(current_ledger, sums_up_what_all_parts_have_used) {
  const weft::pool workers{{.threads = 2}};
  auto request = [&]() -> task<ledger> {
    weft::channel<int> there{0}, back{0};
    auto spin = []() -> task<> {
      for (const auto until = std::chrono::steady_clock::now() + 5ms; std::chrono::steady_clock::now() < until;) {
      }
      co_return;
    };
    auto body = [&](scope& s) -> task<> {
      s.fork(bounce(there, back, 10));
      s.fork(reflect(there, back, 10));
      s.fork(spin());
      co_await weft::sleep_for(3ms);
    };
    co_await with_scope({.executor = &workers.executor()}, body);
    co_return weft::current_ledger();
  };
  ledger all;
  const ledger::wait* slept = nullptr;
  // Again, where it came late to its sleep, which is until a certain time.
  for (int i = 0; i != 100 && (slept == nullptr || slept->time < 2ms); ++i) {
    all = weft::sync_wait(with_trace(request));
    slept = wait_for(all, "clock");
  }
  EXPECT_GE(all.turns, 10u);
  EXPECT_GE(all.running, 4ms);
  EXPECT_GE(all.frames, 5u);
  EXPECT_GE(all.frame_bytes, all.frames * 16);
  ASSERT_NE(slept, nullptr);
  EXPECT_EQ(slept->times, 1u);
  EXPECT_GE(slept->time, 2ms);
  // Which of both waits for the other is a matter of chance.
  const ledger::wait* const received = wait_for(all, "channel, to receive");
  const ledger::wait* const sent = wait_for(all, "channel, to send");
  const std::uint64_t passed_on = (received != nullptr ? received->times : 0) + (sent != nullptr ? sent->times : 0);
  EXPECT_GE(passed_on, 10u);
  EXPECT_LE(passed_on, 40u);
  EXPECT_GE(all.waiting, slept->time);
}

TEST(current_ledger, counts_bytes_of_sockets_and_files) {
  weft::runtime rt{{.threads = 2}};
  const std::string path = (std::filesystem::temp_directory_path() / ("ledger." + std::to_string(::getpid()))).string();
  auto request = [&]() -> task<ledger> {
    auto listener = co_await weft::net::listen({"127.0.0.1", 0});
    auto serve = [&]() -> task<> {
      auto peer = co_await listener.accept();
      std::array<std::byte, 1000> buffer;
      std::size_t so_far = 0;
      while (so_far != buffer.size()) so_far += co_await peer.read(std::span{buffer}.subspan(so_far));
      co_await peer.write(std::span<const std::byte>{buffer});
    };
    auto body = [&](scope& s) -> task<> {
      s.fork(serve());
      auto peer = co_await weft::net::connect(listener.local());
      std::array<std::byte, 1000> buffer{};
      co_await peer.write(std::span<const std::byte>{buffer});
      std::size_t so_far = 0;
      while (so_far != buffer.size()) so_far += co_await peer.read(std::span{buffer}.subspan(so_far));
    };
    co_await with_scope(body);
    const std::uint64_t of_sockets = weft::current_ledger().io_bytes;
    EXPECT_EQ(of_sockets, 4000u);
    co_await weft::write_file(path, std::string(500, 'x'));
    EXPECT_EQ((co_await weft::read_file(path)).size(), 500u);
    co_return weft::current_ledger();
  };
  const ledger all = rt.run(with_trace(request));
  EXPECT_EQ(all.io_bytes, 5000u);
  EXPECT_GE(all.io_operations, 6u);
  std::filesystem::remove(path);
}

}  // namespace
