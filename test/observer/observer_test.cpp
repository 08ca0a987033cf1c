// The observer on its socket: who may ask, what is answered, and what becomes of those who ask badly.
#include <weft/observer.hpp>

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <ctime>
#include <fstream>
#include <iterator>
#include <latch>
#include <locale>
#include <nlohmann/json.hpp>
#include <random>
#include <sstream>
#include <thread>
#include <vector>
#include <weft/pool.hpp>
#include <weft/recorder.hpp>
#include <weft/recording.hpp>
#include <weft/scope.hpp>
#include <weft/sync.hpp>

#include "observer/asking.hpp"
#include "support/weft_test.hpp"

namespace w = weft;
using nlohmann::json;
using namespace std::chrono_literals;

namespace {

unsigned mode_of(const std::string& path) {
  struct stat found{};
  return ::lstat(path.c_str(), &found) == 0 ? found.st_mode & 07777U : 0;
}
bool exists(const std::string& path) { return ::access(path.c_str(), F_OK) == 0; }

std::string text_in(const std::string& path) {
  std::ifstream from{path};
  return {std::istreambuf_iterator<char>{from}, {}};
}

// What a constructor says that fails.
std::string refusal(const w::observer_options& options) {
  try {
    const w::observer one{options};
  } catch (const w::error& failure) {
    return failure.what();
  }
  return "it was made";
}

void expect_contains(const std::string& text, std::string_view part) {
  EXPECT_NE(text.find(part), std::string::npos) << text;
}

template <class Condition>
bool comes_true(const Condition& condition) {
  for (int i = 0; i != 6000; ++i) {
    if (condition()) return true;
    std::this_thread::sleep_for(10ms);
  }
  return false;
}

// Runs in a child, which has none of the parent's threads. Its status is what is returned.
template <class Body>
int in_child(const Body& body) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(body());
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 100 + WTERMSIG(status);
}

}  // namespace

// ---- where it is -----------------------------------------------------------------------------------------------------------

TEST(observer, has_a_directory_and_a_socket_that_only_this_user_can_open_and_that_go) {
  const test::own_directory where;
  const std::string directory = where.below("weft");
  const mode_t before = ::umask(0);  // however open new files would be
  std::string socket;
  {
    const w::observer watching{{.directory = directory.c_str()}};
    socket = watching.socket_path();
    EXPECT_EQ(socket, directory + "/" + std::to_string(::getpid()) + ".sock");
    EXPECT_EQ(mode_of(directory), 0700U);
    EXPECT_EQ(mode_of(socket), 0600U);
    EXPECT_EQ(watching.http_port(), 0);
  }
  ::umask(before);
  EXPECT_FALSE(exists(socket));
  EXPECT_TRUE(exists(directory));
}

TEST(observer, takes_no_directory_that_others_can_look_into_or_that_is_a_link) {
  const test::own_directory where;
  for (const mode_t mode : {0755, 0710, 0701, 0770}) {
    const std::string open = where.below("open" + std::to_string(mode));
    ASSERT_EQ(::mkdir(open.c_str(), 0700), 0);
    ASSERT_EQ(::chmod(open.c_str(), mode), 0);
    expect_contains(refusal({.directory = open.c_str()}), "which lets others in");
  }
  const std::string link = where.below("link");
  ASSERT_EQ(::symlink(where.path().c_str(), link.c_str()), 0);
  expect_contains(refusal({.directory = link.c_str()}), "open the directory");
  if (::geteuid() == 0) {
    const std::string others = where.below("others");
    ASSERT_EQ(::mkdir(others.c_str(), 0700), 0);
    ASSERT_EQ(::chown(others.c_str(), 65534, 65534), 0);
    expect_contains(refusal({.directory = others.c_str()}), "it belongs to another user");
  }
}

TEST(observer, goes_to_no_shared_folder_where_there_is_no_runtime_directory) {
  const test::own_directory where;
  const char* const before = ::getenv("XDG_RUNTIME_DIR");
  const std::string kept = before != nullptr ? before : "";
  ::unsetenv("XDG_RUNTIME_DIR");
  expect_contains(refusal({}), "XDG_RUNTIME_DIR is not set");
  ::setenv("XDG_RUNTIME_DIR", "relative", 1);
  expect_contains(refusal({}), "no absolute path");
  ::setenv("XDG_RUNTIME_DIR", "/tmp", 1);  // anybody can write there
  EXPECT_NE(refusal({}), "it was made");
  ::setenv("XDG_RUNTIME_DIR", where.path().c_str(), 1);
  {
    const w::observer watching;
    EXPECT_EQ(watching.socket_path(), where.below("weft/" + std::to_string(::getpid()) + ".sock"));
  }
  if (before != nullptr)
    ::setenv("XDG_RUNTIME_DIR", kept.c_str(), 1);
  else
    ::unsetenv("XDG_RUNTIME_DIR");
}

TEST(observer, replaces_the_socket_of_a_process_that_has_died_and_no_other) {
  const test::own_directory where;
  const auto dies = [&] {
    auto* const leaked = new w::observer{{.directory = where.path().c_str()}};
    return leaked->socket_path().empty() ? 1 : 0;
  };
  ASSERT_EQ(in_child(dies), 0);
  std::string left;
  for (const auto& one : std::filesystem::directory_iterator{where.path()}) left = one.path();
  ASSERT_NE(left, "");
  const std::string mine = where.below(std::to_string(::getpid()) + ".sock");
  ASSERT_EQ(::rename(left.c_str(), mine.c_str()), 0);
  std::string path;
  {
    const w::observer watching{{.directory = where.path().c_str()}};
    path = watching.socket_path();
    test::asking one{path};
    EXPECT_EQ(json::parse(one.ask("help"))["answer"], "help");
    // What somebody else has put there since is not removed.
    ASSERT_EQ(::unlink(path.c_str()), 0);
    ASSERT_EQ(::symlink("elsewhere", path.c_str()), 0);
  }
  struct stat found{};
  EXPECT_EQ(::lstat(path.c_str(), &found), 0);
}

TEST(observer, may_be_there_twice) {
  const test::own_directory where;
  const w::observer one{{.directory = where.path().c_str()}}, two{{.directory = where.path().c_str()}};
  EXPECT_NE(one.socket_path(), two.socket_path());
  test::asking first{one.socket_path()}, second{two.socket_path()};
  EXPECT_EQ(json::parse(first.ask("help"))["answer"], "help");
  EXPECT_EQ(json::parse(second.ask("help"))["answer"], "help");
}

// ---- who may ask -------------------------------------------------------------------------------------------------------------

TEST(observer, another_user_is_refused_even_where_the_files_let_him_in) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  const test::own_directory where;
  const w::observer watching{{.directory = where.path().c_str()}};
  const std::string path{watching.socket_path()};
  const auto as_nobody = [&] {
    if (::setgid(65534) != 0 || ::setuid(65534) != 0) return 1;
    test::asking one{path};
    if (!one.is_connected) return 2;
    one.send("help\n");
    return one.rest().empty() ? 0 : 3;
  };
  EXPECT_EQ(in_child(as_nobody), 2);  // the directory and the file
  ASSERT_EQ(::chmod(where.path().c_str(), 0711), 0);
  ASSERT_EQ(::chmod(path.c_str(), 0666), 0);
  EXPECT_EQ(in_child(as_nobody), 0);  // the kernel's word for who he is
  test::asking mine{path};
  EXPECT_EQ(json::parse(mine.ask("status"))["status"]["observer"]["refused"], 1);
}

// ---- what is answered ------------------------------------------------------------------------------------------------------------

TEST(observer, answers_each_request_with_a_line_of_json) {
  const test::own_directory where;
  const w::observer watching{{.directory = where.path().c_str()}};
  test::asking one{watching.socket_path()};
  const json help = json::parse(one.ask("help"));
  ASSERT_EQ(help["help"].size(), 11U);
  for (const std::string name : help["help"]) {
    const json answer = json::parse(one.ask(R"({"request":")" + name + R"(","id":"a<b"})"));
    EXPECT_EQ(answer["answer"], name);
    EXPECT_EQ(answer["id"], "a<b");
    EXPECT_TRUE(answer.contains(name)) << answer;
    if (name == "subscribe") one.ask("unsubscribe");
  }
  EXPECT_EQ(json::parse(one.ask(R"({"id":-17,"request":"help"})"))["id"], -17);
  const json status = json::parse(one.ask("status"))["status"];
  EXPECT_EQ(status["process"], ::getpid());
}

TEST(observer, knows_the_pools_and_what_their_workers_have_done) {
  const test::own_directory where;
  const w::observer watching{{.directory = where.path().c_str()}};
  test::asking one{watching.socket_path()};
  {
    w::pool crunch{{.threads = 2, .name = "cru\"nch"}};
    const w::pool again{{.threads = 1, .name = "cru\"nch"}};
    crunch.run([]() -> w::task<> { co_return; }());
    const json pools = json::parse(one.ask("status"))["status"]["pools"];
    ASSERT_EQ(pools.size(), 2U);
    EXPECT_EQ(pools[1]["name"], "cru\"nch");
    EXPECT_EQ(pools[0]["name"], "cru\"nch#2");
    ASSERT_EQ(pools[1]["workers"].size(), 2U);
    EXPECT_GE(pools[1]["workers"][0]["jobs"].get<int>() + pools[1]["workers"][1]["jobs"].get<int>(), 1);
  }
  EXPECT_EQ(json::parse(one.ask("status"))["status"]["pools"].size(), 0U);
}

TEST(observer, tells_pools_apart_whose_names_are_no_ascii) {
  const test::own_directory where;
  const w::observer watching{{.directory = where.path().c_str()}};
  const w::pool one{{.threads = 1, .name = "\xc3\xa4"}}, two{{.threads = 1, .name = "\xc3\xb6"}};
  const w::pool three{{.threads = 1, .name = "\xff"}}, four{{.threads = 1, .name = "\xfe"}};
  test::asking asks{watching.socket_path()};
  const std::string metrics = json::parse(asks.ask("metrics"))["metrics"];
  for (const std::string name : {"\xc3\xa4", "\xc3\xb6", "\xef\xbf\xbd", "\xef\xbf\xbd#2"})
    expect_contains(metrics, "\nweft_pool_workers{pool=\"" + name + "\"} 1\n");
}

TEST(observer, writes_numbers_with_digits_alone_whatever_the_locale_is) {
  struct in_groups : std::numpunct<char> {
    char do_thousands_sep() const override { return '.'; }
    std::string do_grouping() const override { return "\1"; }
  };
  const test::own_directory where;
  const w::observer watching{{.directory = where.path().c_str()}};
  const std::locale before = std::locale::global(std::locale{std::locale::classic(), new in_groups});
  w::pool workers{{.threads = 1}};
  std::string text;
  workers.run([](std::string_view path, std::string& told) -> w::task<> {
    w::event gate;
    auto body = [&](w::scope& s) -> w::task<> {
      for (int i = 0; i != 20; ++i) s.fork([](w::event& opens) -> w::task<> { co_await opens.wait(); }(gate));
      co_await w::yield();
      test::asking one{path};
      told = json::parse(one.ask("text"))["text"];
      gate.set();
    };
    co_await w::with_scope(body);
  }(watching.socket_path(), text));
  std::locale::global(before);
  const std::string count = text.substr(0, text.find(" tasks: "));
  EXPECT_EQ(count.find_first_not_of("0123456789"), std::string::npos) << text;
  EXPECT_EQ(count.size(), 2U) << text;
}

TEST(observer, answers_while_all_workers_are_blocked) {
  const test::own_directory where;
  const w::observer watching{{.directory = where.path().c_str()}};
  w::pool workers{{.threads = 2}};
  std::latch both{2}, done{1};
  std::array<std::thread, 2> callers;
  for (std::thread& one : callers)
    one = std::thread{[&] {
      workers.run([](std::latch& arrived, std::latch& until) -> w::task<> {
        arrived.count_down();
        until.wait();  // the thread, not the task
        co_return;
      }(both, done));
    }};
  both.wait();
  test::asking one{watching.socket_path()};
  EXPECT_EQ(json::parse(one.ask("snapshot"))["answer"], "snapshot");
  EXPECT_EQ(json::parse(one.ask("status"))["status"]["pools"][0]["workers"].size(), 2U);
  done.count_down();
  for (std::thread& each : callers) each.join();
}

TEST(observer, who_subscribes_gets_a_line_each_second_until_he_no_longer_wants_it) {
  const test::own_directory where;
  const w::observer watching{{.directory = where.path().c_str()}};
  test::asking one{watching.socket_path()};
  EXPECT_EQ(json::parse(one.ask("subscribe"))["subscribe"], true);
  for (int i = 0; i != 3; ++i) EXPECT_EQ(json::parse(one.line())["event"], "second");
  one.send("unsubscribe\n");
  json answer;
  do answer = json::parse(one.line());
  while (answer.contains("event"));
  EXPECT_EQ(answer["answer"], "unsubscribe");
  EXPECT_EQ(json::parse(one.ask("help"))["answer"], "help");
}

// ---- those who ask badly ---------------------------------------------------------------------------------------------------------

TEST(observer, garbage_gets_an_error_and_nothing_worse) {
  const test::own_directory where;
  const w::observer watching{{.directory = where.path().c_str(), .patience = 10min}};
  test::asking one{watching.socket_path()};
  std::mt19937 random{7};
  for (int i = 0; i != 200; ++i) {
    std::string garbage(random() % 300, ' ');
    for (char& c : garbage) c = static_cast<char>(random());
    std::erase(garbage, '\n');
    EXPECT_TRUE(json::parse(one.ask(garbage)).contains("error"));
  }
  for (const std::string_view wrong :
       {"", "{", "{}", "[]", R"({"request":"help")", R"({"request":"help"} x)", R"({"request":7})",
        R"({"request":"help","request":"help"})", R"({"request":"help","id":1.5})", R"({"request":"help","id":[1]})",
        R"({"request":"help","id":0123})", R"({"request":"help","what":"x"})", R"({"request":"../../etc/passwd"})",
        R"({"request":"help","id":1234567890123456789012345678901})", "HELP", "help help", "snapshot\v"})
    EXPECT_TRUE(json::parse(one.ask(wrong)).contains("error")) << wrong;
  EXPECT_TRUE(json::parse(one.ask(std::string(1'000'000, 'x'))).contains("error"));
  EXPECT_EQ(json::parse(one.ask("help"))["answer"], "help");
}

TEST(observer, many_requests_at_once_are_answered_one_after_the_other_and_the_last_needs_no_end) {
  const test::own_directory where;
  const w::observer watching{{.directory = where.path().c_str(), .patience = 10min}};
  test::asking one{watching.socket_path()};
  std::string all;
  for (int i = 0; i != 500; ++i) all += R"({"request":"help","id":)" + std::to_string(i) + "}\n";
  std::thread sender{[&] {
    one.send(all + "status");
    one.end_sending();
  }};
  for (int i = 0; i != 500; ++i) EXPECT_EQ(json::parse(one.line())["id"], i);
  EXPECT_EQ(json::parse(one.line())["answer"], "status");
  EXPECT_EQ(one.rest(), "");
  sender.join();
}

TEST(observer, who_never_reads_is_dropped_and_others_are_answered_meanwhile) {
  const test::own_directory where;
  const w::observer watching{{.directory = where.path().c_str(), .patience = 500ms}};
  test::asking lazy{watching.socket_path()}, lively{watching.socket_path()};
  const int small = 4096;
  ::setsockopt(lazy.number(), SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
  // It sends on as long as anybody takes it: nobody does once the answers have no room, and then the connection ends.
  std::thread sender{[&] {
    while (lazy.send("metrics\n")) continue;
  }};
  EXPECT_TRUE(comes_true([&] { return json::parse(lively.ask("status"))["status"]["observer"]["dropped"] == 1; }));
  sender.join();
  EXPECT_EQ(json::parse(lively.ask("help"))["answer"], "help");
}

TEST(observer, who_begins_a_request_and_does_not_end_it_is_dropped_and_who_just_waits_is_not) {
  const test::own_directory where;
  const w::observer watching{{.directory = where.path().c_str(), .patience = 300ms}};
  test::asking waits{watching.socket_path()}, half{watching.socket_path()}, slow{watching.socket_path()};
  half.send("snap");
  EXPECT_EQ(half.rest(), "");
  while (slow.send("x")) std::this_thread::sleep_for(20ms);  // never ends a line
  EXPECT_EQ(json::parse(waits.ask("status"))["status"]["observer"]["dropped"], 2);
}

TEST(observer, too_many_are_told_so) {
  const test::own_directory where;
  const w::observer watching{{.directory = where.path().c_str()}};
  std::vector<test::asking> all;
  for (int i = 0; i != 16; ++i) {
    all.emplace_back(watching.socket_path());
    EXPECT_EQ(json::parse(all.back().ask("help"))["answer"], "help");
  }
  {
    test::asking one_more{watching.socket_path()};
    EXPECT_EQ(json::parse(one_more.line())["error"], "too many clients");
    EXPECT_EQ(one_more.rest(), "");
  }
  all.pop_back();
  EXPECT_TRUE(comes_true([&] {
    test::asking again{watching.socket_path()};
    return json::parse(again.ask("help")).contains("answer");
  }));
}

TEST(observer, without_a_number_for_a_connection_it_waits_for_one_and_does_not_spin) {
  const test::own_directory where;
  const w::observer watching{{.directory = where.path().c_str()}};
  test::asking beside{watching.socket_path()};
  EXPECT_EQ(json::parse(beside.ask("help"))["answer"], "help");
  rlimit before{};
  ::getrlimit(RLIMIT_NOFILE, &before);
  const int late = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int next = ::dup(late);  // the lowest one that is free
  ::close(next);
  const rlimit none{.rlim_cur = static_cast<rlim_t>(next), .rlim_max = before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  sockaddr_un to{};
  to.sun_family = AF_UNIX;
  watching.socket_path().copy(to.sun_path, sizeof to.sun_path - 1);
  EXPECT_EQ(::connect(late, reinterpret_cast<const sockaddr*>(&to), sizeof to), 0);
  EXPECT_EQ(::send(late, "help\n", 5, MSG_NOSIGNAL), 5);
  const auto wakes_of_process = [] {
    rusage all{};
    ::getrusage(RUSAGE_SELF, &all);
    return all.ru_nvcsw + all.ru_nivcsw;
  };
  const long wakes_before = wakes_of_process();
  const auto time_before = std::clock();
  ::sleep(2);
  EXPECT_LT(wakes_of_process() - wakes_before, 1000);
  EXPECT_LT(std::clock() - time_before, CLOCKS_PER_SEC);  // of two seconds of it
  EXPECT_EQ(json::parse(beside.ask("status"))["status"]["open_descriptors"],
            next);  // that there are none is what it is about
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  char answer[1];
  EXPECT_EQ(::recv(late, answer, 1, 0), 1);
  ::close(late);
}

TEST(observer, tells_what_holds_up_a_worker) {
  const test::own_directory where;
  const w::observer watching{{.directory = where.path().c_str(), .stall_after = 20ms}};
  test::asking one{watching.socket_path()}, other{watching.socket_path()};
  EXPECT_EQ(json::parse(one.ask("stalls"))["stalls"].size(), 0U);
  one.ask("subscribe");
  w::pool workers{{.threads = 1}};
  // One that is held up before it waits, by the machine, is blamed for that: then once more, when the watchdog reports again.
  bool waits = false;
  for (std::size_t times = 1; !waits && times <= 20; ++times) {
    std::latch done{1};
    std::thread caller{[&] {
      workers.run([](std::latch& until) -> w::task<> {
        until.wait();  // the thread, not the task
        co_return;
      }(done));
    }};
    json event;
    do event = json::parse(one.line());
    while (event["event"] != "stall");
    EXPECT_EQ(event["stall"]["worker"], 0);
    EXPECT_GT(event["stall"]["seconds"].get<double>(), 0.0);
    EXPECT_EQ(json::parse(other.ask("stalls"))["stalls"].size(), times);
    done.count_down();
    caller.join();
    waits = event["stall"]["doing"].get<std::string>().find("futex") != std::string::npos;
    if (!waits) std::this_thread::sleep_for(1100ms);
  }
  EXPECT_TRUE(waits);
}

// By the watchdog's signal. Without a watchdog nobody is asked, and what runs has no stack.
TEST(observer, tells_what_one_is_in_that_computes) {
  std::atomic<bool> computes{false}, end{false};
  std::thread thread{[&] {
    auto spins_for_observer = [&]() -> w::task<> {
      computes = true;
      while (!end) {
      }
      co_return;
    };
    w::sync_wait(spins_for_observer());
  }};
  while (!computes) std::this_thread::yield();
  for (const bool has_watchdog : {false, true}) {
    const test::own_directory where;
    const std::chrono::milliseconds stall_after = has_watchdog ? 1h : 0h;
    const w::observer watching{{.directory = where.path().c_str(), .stall_after = stall_after}};
    test::asking one{watching.socket_path()};
    const auto running = [&] {
      const json seen = json::parse(one.ask("snapshot"));
      json all = json::array();
      for (const json& task : seen.at("snapshot").at("tasks"))
        if (task.at("state") == "running") all.push_back(task);
      EXPECT_EQ(all.size(), 1U) << seen;
      return all;
    };
    const auto has_stack = [&] {
      return std::ranges::none_of(running(), [](const json& task) { return task.at("stack").empty(); });
    };
#if defined(WEFT_TEST_TSAN)  // which puts handlers off until the next call that it knows
    static_cast<void>(has_stack());
#else
    if (has_watchdog)
      EXPECT_TRUE(comes_true(has_stack));  // a thread that does not run in time answers another time
    else
      EXPECT_FALSE(has_stack());
#endif
  }
  end = true;
  thread.join();
}

TEST(observer, records_where_workers_compute) {
  const test::own_directory where;
  const w::observer watching{{.directory = where.path().c_str(), .samples_a_second = 1000}};
  w::pool workers{{.threads = 1}};
  std::atomic<bool> ends{false};
  std::thread caller{[&] {
    workers.run([](std::atomic<bool>& until) -> w::task<> {
      while (!until) {
      }
      co_return;
    }(ends));
  }};
  const std::string file = where.below("recording");
  EXPECT_TRUE(comes_true([&] {
    w::save_recording(file.c_str());
    const w::recording all = w::recording::read(file.c_str());
    return std::ranges::any_of(all.events(), [](const auto& one) { return one.kind == w::event_kind::sample; });
  }));
  ends = true;
  caller.join();
}

// ---- dumps -----------------------------------------------------------------------------------------------------------------------

TEST(observer, a_signal_has_a_dump_written_and_is_the_programs_again_at_the_end) {
  const test::own_directory where;
  const std::string to = where.below("dump");
  ::signal(SIGUSR2, SIG_IGN);
  {
    const w::observer watching{{.directory = where.path().c_str(), .dump_signal = SIGUSR2, .dump_file = to.c_str()}};
    expect_contains(refusal({.directory = where.path().c_str(), .dump_signal = SIGUSR1}), "another observer");
    ::raise(SIGUSR2);
    const std::string head = "weft: dump of process " + std::to_string(::getpid());
    EXPECT_TRUE(comes_true([&] { return text_in(to).find(head) != std::string::npos; }));
    ::raise(SIGUSR2);
    EXPECT_TRUE(comes_true([&] { return text_in(to).rfind(head) != text_in(to).find(head); }));
    EXPECT_EQ(mode_of(to), 0600U);
    EXPECT_EQ(in_child([&] {  // whose signals are not its parent's
                const auto size = std::filesystem::file_size(to);
                ::raise(SIGUSR2);
                ::usleep(200'000);
                return std::filesystem::file_size(to) == size ? 0 : 1;
              }),
              0);
  }
  EXPECT_EQ(::signal(SIGUSR2, SIG_DFL), SIG_IGN);
  expect_contains(refusal({.directory = where.path().c_str(), .dump_signal = SIGSEGV}), "a fault");
}

TEST(observer, a_dump_that_can_not_be_written_is_told_of_and_holds_up_nothing) {
  const test::own_directory where;
  const std::string pipe = where.below("pipe");  // which nobody reads
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  for (const std::string& to : {pipe, std::string{"/dev/full"}}) {
    const std::string errors = where.below("errors");
    const int before = ::dup(STDERR_FILENO),
              file = ::open(errors.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    ::dup2(file, STDERR_FILENO);
    {
      const w::observer watching{{.directory = where.path().c_str(), .dump_signal = SIGUSR2, .dump_file = to.c_str()}};
      ::raise(SIGUSR2);
      EXPECT_TRUE(comes_true([&] { return text_in(errors).find("can't be written to " + to) != std::string::npos; }));
      test::asking one{watching.socket_path()};
      EXPECT_EQ(json::parse(one.ask("help"))["answer"], "help");
    }
    ::dup2(before, STDERR_FILENO);
    ::close(before);
    ::close(file);
  }
}

// ---- forks, and rest ---------------------------------------------------------------------------------------------------------------

TEST(observer, a_forked_child_lets_go_of_its_sockets_and_may_have_an_observer_of_its_own) {
  const test::own_directory where;
  std::array<int, 2> pipe{};
  ASSERT_EQ(::pipe(pipe.data()), 0);
  auto* const watching = new w::observer{{.directory = where.path().c_str()}};
  test::asking client{watching->socket_path()};
  EXPECT_EQ(json::parse(client.ask("help"))["answer"], "help");
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(pipe[1]);
    delete watching;       // as an exit would: takes nothing of the parent's away
    std::error_code gone;  // of the descriptor that lists them
    for (const auto& open : std::filesystem::directory_iterator{"/proc/self/fd"})
      if (std::filesystem::read_symlink(open, gone) == where.path()) ::_exit(2);
    bool answers = true;
#ifndef WEFT_TEST_TSAN  // which starts no threads behind a fork
    const w::observer own{{.directory = where.path().c_str()}};
    test::asking one{own.socket_path()};
    answers = json::parse(one.ask("status"))["status"]["process"] == ::getpid();
#endif
    char end;
    while (::read(pipe[0], &end, 1) > 0) continue;
    ::_exit(answers ? 0 : 1);
  }
  EXPECT_EQ(json::parse(client.ask("help"))["answer"], "help");
  EXPECT_TRUE(exists(std::string{watching->socket_path()}));
  delete watching;
  EXPECT_EQ(client.rest(), "");  // the child does not keep it open
  ::close(pipe[1]);
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  ::close(pipe[0]);
}

#ifndef WEFT_TEST_TSAN  // to which a thread that nobody joins is a fault
// As some programs do that become daemons, of all that are open.
TEST(observer, ends_where_its_descriptors_were_closed_and_does_not_spin) {
  const test::own_directory where;
  EXPECT_EQ(in_child([&] {
              auto* const watching = new w::observer{{.directory = where.path().c_str()}};
              if (watching->socket_path().empty()) return 2;
              ::close_range(3, ~0U, 0);
              ::sleep(2);  // until it wakes, for its look each second
              const auto before = std::clock();
              ::sleep(2);
              return std::clock() - before < CLOCKS_PER_SEC / 2 ? 0 : 1;
            }),
            0);
}
#endif

#if !defined(WEFT_TEST_ASAN) && !defined(WEFT_TEST_TSAN)  // which have threads that work by themselves
TEST(observer, lets_an_idle_process_sleep) {
  const test::own_directory where;
  const w::observer watching{{.directory = where.path().c_str()}};
  const w::pool idle{{.threads = 2}};
  // By a child, so that it is not this process that reads. Rest: no thread has been awake for four seconds.
  const std::string tasks = "/proc/" + std::to_string(::getpid()) + "/task";
  const auto switches = [&] {
    std::string all;
    for (const auto& one : std::filesystem::directory_iterator{tasks}) {
      std::istringstream lines{text_in(one.path() / "status")};
      for (std::string line; std::getline(lines, line);)
        if (line.find("voluntary_ctxt_switches") == 0) all += line;
    }
    return all;
  };
  EXPECT_EQ(in_child([&] {
              for (int i = 0; i != 15; ++i) {
                const std::string before = switches();
                ::sleep(4);
                if (switches() == before) return 0;
              }
              return 1;
            }),
            0);
}
#endif
