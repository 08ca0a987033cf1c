// The flight recorder's files: what is always in them, and that one is whole after each kind of crash.
// Long because each way to a file, and each way in which a program crashes, has a test.
#include <weft/recorder.hpp>

#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <barrier>
#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <locale>
#include <map>
#include <sstream>
#include <string>
#include <thread>
#include <vector>
#include <weft/channel.hpp>
#include <weft/file.hpp>
#include <weft/net.hpp>
#include <weft/pool.hpp>
#include <weft/recording.hpp>
#include <weft/runtime.hpp>
#include <weft/scope.hpp>
#include <weft/snapshot.hpp>
#include <weft/sync.hpp>
#include <weft/traced.hpp>
#include <weft/watchdog.hpp>

#include "support/json.hpp"
#include "support/weft_test.hpp"

namespace {

using namespace std::chrono_literals;
using weft::event_kind;
using weft::recording;
using weft::scope;
using weft::task;

// A file that is gone when this goes.
class temporary_file {
 public:
  explicit temporary_file(const char* name)
      : path_{std::filesystem::temp_directory_path() / ("recorder_test." + std::to_string(::getpid()) + '.' + name)} {}
  temporary_file(const temporary_file&) = delete;
  ~temporary_file() { std::filesystem::remove(path_); }
  const char* path() const noexcept { return path_.c_str(); }

 private:
  std::filesystem::path path_;
};

recording recorded() {
  const temporary_file file{"now"};
  weft::save_recording(file.path());
  return recording::read(file.path());
}

std::vector<recording::event> of_kind(const recording& all, event_kind kind) {
  std::vector<recording::event> some;
  for (const recording::event& one : all.events())
    if (one.kind == kind) some.push_back(one);
  return some;
}

std::string chrome_trace(const recording& all) {
  std::ostringstream out;
  all.write_chrome_trace(out);
  return out.str();
}

task<> a_request(weft::executor& workers) {
  weft::channel<int> numbers{0};
  auto body = [&](scope& s) -> task<> {
    s.fork([&]() -> task<> {
      for (int i = 0; i != 3; ++i) co_await numbers.receive();
    });
    for (int i = 0; i != 3; ++i) co_await numbers.send(i);
  };
  co_await weft::with_scope({.executor = &workers}, body);
}

void run_a_request() {
  const weft::pool workers{{.threads = 2}};
  weft::sync_wait(weft::with_trace({.name = "a \"request\"\\"}, a_request, std::ref(workers.executor())));
}

TEST(recorder, has_sleeps_and_calls_of_workers) {
  const auto is_mine = [](const auto& one) { return one.thread == static_cast<std::uint32_t>(::gettid()); };
  const auto called_by_me = [&](const recording& all) {
    auto calls = of_kind(all, event_kind::call_thread);
    std::erase_if(calls, [&](const auto& one) { return !is_mine(one); });
    return calls;
  };
  {
    const weft::pool workers{{.threads = 2, .name = "sleepy"}};
    auto nothing = []() -> task<> { co_return; };
    recording all = recorded();
    while (of_kind(all, event_kind::sleep).size() < 2 || called_by_me(all).empty()) {
      std::this_thread::sleep_for(1ms);  // in which both fall asleep
      weft::sync_wait(weft::start_on(workers.executor(), nothing()));
      all = recorded();
    }
    EXPECT_TRUE(all.is_whole());
    EXPECT_EQ(all.why(), recording::reason::asked_for);
    EXPECT_EQ(all.signal(), 0);
    EXPECT_EQ(all.process(), static_cast<std::uint64_t>(::getpid()));
    EXPECT_EQ(all.thread_name(called_by_me(all).back().number).substr(0, 7), "sleepy-");
  }
  EXPECT_FALSE(of_kind(recorded(), event_kind::wake_up).empty());
}

TEST(recorder, has_stops_with_their_cause_and_deadlines_with_their_line) {
  auto waits = [](scope& s) -> task<> {
    s.fork([]() -> task<> { co_await weft::sleep_for(1h); });
    s.request_stop({.reason = "the recorder's test says so"});
    co_return;
  };
  auto late = []() -> task<> { co_await weft::sleep_for(1h); };
  int line = 0;
  auto all = [&]() -> task<> {
    static_cast<void>(co_await weft::as_result(weft::with_scope(waits)));
    line = __LINE__ + 1;
    static_cast<void>(co_await weft::as_result(weft::with_deadline(1ms, late)));
  };
  weft::sync_wait(all());
  const recording seen = recorded();
  const auto stops = of_kind(seen, event_kind::stop), deadlines = of_kind(seen, event_kind::deadline);
  EXPECT_TRUE(std::ranges::any_of(stops, [&](const auto& one) {
    return seen.text(one.second) == "the recorder's test says so" && one.number != 0;
  }));
  EXPECT_TRUE(std::ranges::any_of(deadlines, [&](const auto& one) {
    return seen.text(one.second).ends_with("recorder_test.cpp") && one.number == static_cast<std::uint32_t>(line);
  }));
}

TEST(recorder, has_stops_of_tokens_handles_and_pools_and_time_outs) {
  const auto here = [](const char* reason) { return weft::stop_cause{.reason = reason}; };
  weft::stop_source of_wait, of_run, of_start;
  auto forever = []() -> task<> { co_await weft::sleep_for(1h); };
  const auto stops_soon = [](weft::stop_source& what, weft::stop_cause why, auto waits) {
    std::jthread stopper{[&] {
      std::this_thread::sleep_for(1ms);
      what.request_stop(why);
    }};
    EXPECT_THROW(waits(), weft::stopped);
  };
  weft::pool workers{{.threads = 1, .use_caller = true}};
  stops_soon(of_wait, here("of sync_wait's token"), [&] { weft::sync_wait(forever(), of_wait.token()); });
  stops_soon(of_run, here("of run's token"), [&] { workers.run(forever(), of_run.token()); });
  weft::start(forever(), [](const weft::result<void>&) {}, of_start.token());
  of_start.request_stop(here("of start's token"));
  auto by_handle = [&](scope& s) -> task<> {
    auto fork = s.fork(forever);
    fork.request_stop(here("by its handle"));
    EXPECT_TRUE((co_await weft::as_result(std::move(fork))).is_stopped());
    EXPECT_EQ((co_await weft::as_result(weft::timeout(1ms, forever()))).error(), weft::errc::timed_out);
  };
  weft::sync_wait(weft::with_scope(by_handle));
  workers.shutdown(weft::pool_shutdown::cancel);

  const recording seen = recorded();
  const auto stops = of_kind(seen, event_kind::stop), deadlines = of_kind(seen, event_kind::deadline);
  for (const char* const why : {"of sync_wait's token", "of run's token", "of start's token", "by its handle",
                                "a pool was shut down by cancel"})
    EXPECT_EQ(std::ranges::count_if(stops, [&](const auto& one) { return seen.text(one.second) == why; }), 1) << why;
  EXPECT_EQ(std::ranges::count_if(deadlines, [&](const auto& one) { return seen.text(one.second) == "timeout()"; }), 1);
}

// A thread of its own, of which no earlier test has events; it is stopped once it sleeps.
TEST(recorder, has_sleeps_of_a_thread_in_sync_wait) {
  weft::stop_source source;
  std::atomic<int> number{0};
  std::jthread sleeper{[&] {
    auto waits = [&]() -> task<> {
      number = ::gettid();
      co_await weft::sleep_for(1h);
    };
    EXPECT_THROW(weft::sync_wait(waits(), source.token()), weft::stopped);
  }};
  const auto has = [&](event_kind kind, std::uint32_t what) {
    return std::ranges::any_of(of_kind(recorded(), kind), [&](const auto& one) {
      return one.thread == static_cast<std::uint32_t>(number.load()) && one.number == what;
    });
  };
  test::until([&] { return number != 0 && has(event_kind::sleep, weft::no_worker); });
  source.request_stop();
  sleeper.join();
  EXPECT_TRUE(has(event_kind::wake_up, 1));
}

TEST(recorder, has_failures_before_there_is_a_descriptor) {
  auto fails = [](const char* path) -> task<> {
    auto listener = co_await weft::net::listen({"127.0.0.1", 0});
    const weft::net::endpoint nobody = listener.local();
    listener.close();
    EXPECT_EQ((co_await weft::as_result(weft::net::connect(nobody))).error(), std::errc::connection_refused);
    EXPECT_EQ((co_await weft::as_result(weft::file::open(path))).error(), std::errc::no_such_file_or_directory);
  };
  weft::run({.threads = 1}, fails("/nowhere/at/all"));
  const recording all = recorded();
  const auto failures = of_kind(all, event_kind::io_error);
  const auto has = [&](std::uint32_t number, const char* what) {
    return std::ranges::any_of(failures, [&](const auto& one) {
      return one.number == number && all.text(one.second) == what && one.first == ~std::uint64_t{0};
    });
  };
  EXPECT_TRUE(has(ECONNREFUSED, "connect"));
  EXPECT_TRUE(has(ENOENT, "open a file"));
}

TEST(recorder, has_failures_of_io) {
  weft::runtime rt{{.threads = 1}};
  auto fails = []() -> task<> {
    auto listener = co_await weft::net::listen({"127.0.0.1", 0});
    auto accepts = [&](scope& s) -> task<> {
      auto gone = s.fork([&]() -> task<> {
        auto peer = co_await listener.accept();
        const ::linger at_once{.l_onoff = 1, .l_linger = 0};  // closes with a reset
        ::setsockopt(peer.native_handle(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
        peer.close();
      });
      auto peer = co_await weft::net::connect(listener.local());
      co_await std::move(gone);
      std::array<std::byte, 10> buffer;
      const auto got = co_await weft::as_result(peer.read(buffer));
      EXPECT_EQ(got.error(), std::errc::connection_reset);
    };
    co_await weft::with_scope(accepts);
  };
  rt.run(fails());
  const recording all = recorded();
  const auto failures = of_kind(all, event_kind::io_error);
  EXPECT_TRUE(std::ranges::any_of(failures, [&](const auto& one) {
    return one.number == ECONNRESET && all.text(one.second) == "read a socket" && one.first != 0;
  }));
}

// A thread may get the ring of one that has ended. So there are more of them at once than there were before.
TEST(recorder, keeps_the_newest_events_in_rings_of_the_size_that_was_asked_for) {
  constexpr std::size_t threads = 64, places = 64;
  weft::set_recorder_bytes(places * 32);
  {
    std::barrier all_record{threads};
    std::vector<std::jthread> all;
    for (std::size_t i = 0; i != threads; ++i)
      all.emplace_back([&] {
        auto stops = [](const char* reason) -> task<> {
          auto body = [=](scope& s) -> task<> {
            s.request_stop({.reason = reason});
            co_return;
          };
          static_cast<void>(co_await weft::as_result(weft::with_scope(body)));
        };
        weft::sync_wait(stops("the first word"));
        all_record.arrive_and_wait();
        for (std::size_t n = 0; n != 2 * places; ++n) weft::sync_wait(stops("a word"));
        weft::sync_wait(stops("the last word"));
      });
  }
  weft::set_recorder_bytes(std::size_t{1} << 20);
  const recording seen = recorded();
  std::map<std::uint32_t, std::size_t> in_ring;
  std::map<std::uint32_t, std::string> last;
  for (const recording::event& one : seen.events()) {
    ++in_ring[one.ring];
    last[one.ring] = seen.text(one.second);
  }
  std::size_t small = 0, ended = 0;
  for (const auto& [ring, events] : in_ring) {
    small += events == places - 1 ? 1 : 0;  // the place behind the newest may be written to at any time
    ended += last[ring] == "the last word" ? 1 : 0;
  }
  EXPECT_GE(small, 1u);
  EXPECT_GE(ended, threads);
}

// The ring of a thread that has ended, whose first events are written over: what is left of it is still its own.
TEST(recorder, tells_threads_apart_that_had_the_same_ring) {
  constexpr int more_than_a_ring_has = 40'000;
  const auto record = [](const char* reason, int times) {
    std::uint32_t number = 0;
    std::jthread{[&] {
      number = static_cast<std::uint32_t>(::gettid());
      auto stops = [&]() -> task<> {
        auto body = [&](scope& s) -> task<> {
          s.request_stop({.reason = reason});
          co_return;
        };
        static_cast<void>(co_await weft::as_result(weft::with_scope(body)));
      };
      for (int i = 0; i != times; ++i) weft::sync_wait(stops());
    }}.join();
    return number;
  };
  const std::uint32_t one = record("of the one before", more_than_a_ring_has), other = record("of the other one", 1);
  const recording seen = recorded();
  std::size_t of_one = 0, of_other = 0;
  for (const recording::event& event : of_kind(seen, event_kind::stop)) {
    const std::string_view reason = seen.text(event.second);
    of_one += reason == "of the one before" && event.thread == one ? 1 : 0;
    of_other += reason == "of the other one" && event.thread == other ? 1 : 0;
    EXPECT_FALSE(reason == "of the one before" && event.thread == other);
  }
  EXPECT_GT(of_one, 0u);
  EXPECT_EQ(of_other, 1u);
}

TEST(recorder, says_why_a_file_is_not_written) {
  try {
    weft::save_recording("/no such directory/file");
    FAIL() << "it was written";
  } catch (const weft::error& refused) {
    EXPECT_EQ(refused.code(), std::errc::no_such_file_or_directory);
    EXPECT_NE(std::string_view{refused.what()}.find("save a recording /no such directory/file"),
              std::string_view::npos);
  }
  EXPECT_THROW(weft::save_recording_on_crash(std::string(5000, 'x').c_str()), weft::error);
  EXPECT_THROW(recording::read("/no such file"), weft::error);
}

TEST(recorder, is_saved_on_a_deadlock_where_asked_for) {
  EXPECT_FALSE(weft::detail::save_recording_of_deadlock());
  const temporary_file file{"deadlock"};
  weft::save_recording_on_deadlock(file.path());
  EXPECT_TRUE(weft::detail::save_recording_of_deadlock());
  EXPECT_EQ(recording::read(file.path()).why(), recording::reason::deadlock);
  weft::save_recording_on_deadlock("/no such directory/file");
  EXPECT_FALSE(weft::detail::save_recording_of_deadlock());
  weft::save_recording_on_deadlock(nullptr);
  EXPECT_FALSE(weft::detail::save_recording_of_deadlock());
}

// By the watchdog, before it tells of it: two tasks that wait for each other's mutex.
TEST(recorder, is_saved_when_the_watchdog_finds_a_deadlock) {
  const temporary_file file{"found deadlock"};
  weft::save_recording_on_deadlock(file.path());
  struct told {
    const temporary_file& file;
    std::atomic<int> count{0};
    recording::reason why = recording::reason::asked_for;
    std::size_t members = 0;
    bool has_turns = false;
  } what{file};
  const auto tell = [](const weft::snapshot& found, void* with) {
    auto& mine = *static_cast<told*>(with);
    if (found.deadlocks().size() == 1) mine.members = found.deadlocks()[0].circle.size();
    try {
      const recording all = recording::read(mine.file.path());
      mine.why = all.why();
      mine.has_turns = std::ranges::any_of(of_kind(all, event_kind::turn_begins), [&](const recording::event& one) {
        return std::ranges::any_of(found.deadlocks()[0].circle,
                                   [&](weft::task_id id) { return one.first == id.address(); });
      });
    } catch (const weft::error&) {  // there is none: `why` is as it was
    }
    ++mine.count;
  };
  weft::mutex one, other;
  weft::latch both{2};
  const auto takes = [&](weft::mutex& mine, weft::mutex& then) -> task<> {
    const auto a = co_await mine.lock();
    co_await both.arrive_and_wait();
    const auto b = co_await then.lock();
  };
  const auto all = [&](scope& s) -> task<> {
    s.fork(takes(one, other));
    s.fork(takes(other, one));
    co_return;
  };
  const auto request = [&]() -> task<> { co_await weft::with_scope(all); };
  weft::pool workers{{.threads = 2}};
  weft::stop_source stop;
  {
    const weft::watchdog dog{{.stall_after = 4ms, .with = &what, .on_deadlock = tell}};
    std::jthread runs{[&] {
      static_cast<void>(weft::sync_wait(
          weft::as_result(weft::start_on(workers.executor(), weft::with_trace({.name = "stuck"}, request))),
          stop.token()));
    }};
    test::until([&] { return what.count == 1; });
    stop.request_stop();
  }
  weft::save_recording_on_deadlock(nullptr);
  EXPECT_EQ(what.members, 2u);
  EXPECT_EQ(what.why, recording::reason::deadlock);
  EXPECT_TRUE(what.has_turns) << "what the two did before is not in it";
}

// ---- what is made of it -------------------------------------------------------------------------------------------------

TEST(chrome_trace, has_a_track_a_thread_and_one_a_request_and_arrows_for_wakes) {
  run_a_request();
  const std::string text = chrome_trace(recorded());
  const test::json all = test::json::parse(text);
  std::size_t requests = 0, threads = 0, turns = 0, begins = 0, ends = 0;
  for (const test::json& one : all["traceEvents"].elements()) {
    const std::string phase = one["ph"].text();
    const double process = one["pid"].number();
    if (phase == "M" && one["name"].text() == "thread_name") {
      const std::string name = one["args"]["name"].text();
      if (process == 2 && name.starts_with("a \"request\"\\ #")) ++requests;
      if (process == 1) ++threads;
    }
    if (phase == "X") {
      EXPECT_GE(one["dur"].number(), 0);
      turns += process == 2 ? 1 : 0;
    }
    begins += phase == "s" ? 1 : 0;
    ends += phase == "f" ? 1 : 0;
  }
  EXPECT_GE(requests, 1u);
  EXPECT_GE(threads, 2u);
  EXPECT_GE(turns, 3u);
  EXPECT_GE(begins, 3u);
  EXPECT_EQ(begins, ends);
  EXPECT_NE(text.find("a_request(weft::executor&)"), std::string::npos) << "no turn has its function";
}

// Of a program that has set a locale, and of a stream that was used for something else.
TEST(chrome_trace, writes_numbers_as_json_has_them) {
  struct with_groups : std::numpunct<char> {
    char do_decimal_point() const override { return ','; }
    char do_thousands_sep() const override { return '.'; }
    std::string do_grouping() const override { return "\3"; }
  };
  run_a_request();
  const recording all = recorded();
  std::ostringstream out;
  out.imbue(std::locale{out.getloc(), new with_groups});
  out << std::hex;
  all.write_chrome_trace(out);
  EXPECT_EQ(out.str(), chrome_trace(all));
  out.str("");
  out << 4096;
  EXPECT_EQ(out.str(), "1.000") << "the stream is as it was before";
}

// ---- crashes ------------------------------------------------------------------------------------------------------------

#if !defined(WEFT_TEST_ASAN) && !defined(WEFT_TEST_TSAN)  // which handle these signals themselves

// Runs it in a child, which is to crash. Gives the status, as waitpid() does.
int status_of(const std::function<void()>& crash) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(STDERR_FILENO);
    crash();
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return status;
}

// Of each root in the thread that crashed, a turn ends before the next one begins, and none ends that has not begun; one still
// runs. Other threads have events of before, of which the first may be written over.
void expect_alternating_turns(const recording& all) {
  const auto begun = of_kind(all, event_kind::turn_begins);
  ASSERT_FALSE(begun.empty());
  const std::uint32_t crashed = std::ranges::max_element(begun, {}, &recording::event::when)->thread;
  std::map<std::uint64_t, bool> is_in_turn;
  std::size_t turns = 0;
  for (const recording::event& one : all.events()) {  // in a thread, in their order
    if (one.thread != crashed || (one.kind != event_kind::turn_begins && one.kind != event_kind::turn_ends)) continue;
    const bool begins = one.kind == event_kind::turn_begins;
    bool& runs = is_in_turn[one.first];
    EXPECT_NE(runs, begins) << "turn " << turns << " of root " << one.first << (begins ? " begins" : " ends")
                            << " twice";
    runs = begins;
    turns += begins ? 1 : 0;
  }
  EXPECT_GE(turns, 2u) << "before and behind its sleep";
  EXPECT_EQ(std::ranges::count_if(is_in_turn, [](const auto& one) { return one.second; }), 1);
}

void expect_recorded_crash(const temporary_file& file, int number) {
  const recording all = recording::read(file.path());
  EXPECT_TRUE(all.is_whole());
  EXPECT_EQ(all.why(), recording::reason::crash);
  EXPECT_EQ(all.signal(), number);
  const auto begun = of_kind(all, event_kind::turn_begins), ended = of_kind(all, event_kind::turn_ends);
  EXPECT_EQ(begun.size(), ended.size() + 1) << "what ran as it crashed has not ended";
  expect_alternating_turns(all);
  const std::string text = chrome_trace(all);
  static_cast<void>(test::json::parse(text));
  EXPECT_NE(text.find("still running"), std::string::npos);
  EXPECT_NE(text.find("test_recorder+0x"), std::string::npos) << "functions are given by their place in the file";
}

// A new program would be better than a child of this one, which has its events; but those are of before, and of other roots.
template <class Crash>
int crash_in_request(const temporary_file& file, Crash crash) {
  return status_of([&] {
    std::jthread{[&] {  // with a ring of its own
      weft::save_recording_on_crash(file.path());
      auto request = [&]() -> task<> {
        co_await weft::sleep_for(1ms);
        crash();
      };
      weft::sync_wait(weft::with_trace({.name = "crashes"}, request));
    }}
        .join();
  });
}

TEST(recorder, is_saved_at_a_segmentation_fault) {
  const temporary_file file{"segv"};
  const int status = crash_in_request(file, [] { *reinterpret_cast<volatile int*>(16) = 1; });  // NOLINT: as it should
  EXPECT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(WTERMSIG(status), SIGSEGV);
  expect_recorded_crash(file, SIGSEGV);
}

TEST(recorder, is_saved_at_abort) {
  const temporary_file file{"abort"};
  const int status = crash_in_request(file, [] { std::abort(); });
  EXPECT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(WTERMSIG(status), SIGABRT);
  expect_recorded_crash(file, SIGABRT);
}

TEST(recorder, is_saved_where_a_contract_is_broken) {
  const temporary_file file{"contract"};
  const int status = crash_in_request(file, [] {
    auto nothing = []() -> task<> { co_return; };
    weft::sync_wait(nothing());  // inside of a task
  });
  EXPECT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(WTERMSIG(status), SIGABRT);
  expect_recorded_crash(file, SIGABRT);
}

void leaves(int) { ::_exit(42); }

TEST(recorder, calls_the_handler_before_it) {
  const temporary_file file{"chain"};
  const int status = status_of([&] {
    std::signal(SIGSEGV, leaves);
    weft::save_recording_on_crash(file.path());
    *reinterpret_cast<volatile int*>(16) = 1;  // NOLINT: as it should
  });
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 42);
  EXPECT_EQ(recording::read(file.path()).signal(), SIGSEGV);
}

// Also where the program asks for the file before it uses anything else.
TEST(recorder, leaves_the_stack_that_abort_prints) {
  const temporary_file file{"words"};
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const int status = status_of([&] {
    ::dup2(ends[1], STDERR_FILENO);
    weft::save_recording_on_crash(file.path());
    auto aborts = []() -> task<> {
      std::abort();
      co_return;
    };
    weft::sync_wait(aborts());
  });
  ::close(ends[1]);
  std::string text;
  for (char part[512];;) {
    const ssize_t got = ::read(ends[0], part, sizeof part);
    if (got <= 0) break;
    text.append(part, static_cast<std::size_t>(got));
  }
  ::close(ends[0]);
  EXPECT_EQ(WTERMSIG(status), SIGABRT);
  EXPECT_NE(text.find("async stack of the running task"), std::string::npos) << text;
}

TEST(recorder, writes_nothing_at_a_crash_unless_asked) {
  const temporary_file file{"none"};
  const int status = status_of([&] {
    weft::save_recording_on_crash(file.path());
    weft::save_recording_on_crash(nullptr);
    *reinterpret_cast<volatile int*>(16) = 1;  // NOLINT: as it should
  });
  EXPECT_EQ(WTERMSIG(status), SIGSEGV);
  EXPECT_FALSE(std::filesystem::exists(file.path()));
}

#endif

// ---- files that are not as they should be -------------------------------------------------------------------------------

std::vector<std::byte> bytes_of(const char* path) {
  std::ifstream in{path, std::ios::binary};
  std::string all{std::istreambuf_iterator<char>{in}, {}};
  const auto* const from = reinterpret_cast<const std::byte*>(all.data());
  return {from, from + all.size()};
}

TEST(recording, is_read_as_far_as_it_was_written) {
  run_a_request();
  const temporary_file file{"cut"};
  weft::save_recording(file.path());
  const std::vector<std::byte> whole = bytes_of(file.path());
  const std::size_t events = recording::parse(whole).events().size();
  EXPECT_TRUE(recording::parse(whole).is_whole());
  std::size_t before = 0;
  for (std::size_t size = 128; size < whole.size(); size += 997) {
    const recording part = recording::parse(std::span{whole}.first(size));
    EXPECT_FALSE(part.is_whole());
    EXPECT_LE(before, part.events().size());
    before = part.events().size();
    EXPECT_LE(before, events);
  }
}

TEST(recording, refuses_what_is_none) {
  EXPECT_THROW(static_cast<void>(recording::parse({})), weft::error);
  const temporary_file file{"wrong"};
  weft::save_recording(file.path());
  const std::vector<std::byte> whole = bytes_of(file.path());
  for (const std::size_t at : {0u, 8u, 12u, 16u, 20u}) {  // name, version, sizes, reason
    std::vector<std::byte> wrong = whole;
    wrong[at] ^= std::byte{0x5a};
    try {
      static_cast<void>(recording::parse(wrong));
      FAIL() << "byte " << at << " may be anything";
    } catch (const weft::error& refused) {
      EXPECT_EQ(refused.code(), std::errc::illegal_byte_sequence);
    }
  }
}

}  // namespace
