// Processes: what they get and give, how they end, and that nothing is left of them. In runtimes on either back end, too.
#include <weft/process.hpp>

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>
#include <weft/blocking.hpp>
#include <weft/combine.hpp>
#include <weft/io.hpp>
#include <weft/pool.hpp>
#include <weft/runtime.hpp>
#include <weft/scope.hpp>
#include <weft/select.hpp>
#include <weft/stop.hpp>
#include <weft/timed.hpp>

#include "support/in_runtime.hpp"
#include "support/weft_test.hpp"

namespace {

using namespace std::chrono_literals;
using weft::exit_status;
using weft::output_of;
using weft::process;
using weft::process_output;
using weft::run_process;
using weft::stdio;
using weft::task;
using arguments = std::vector<std::string>;

static_assert(weft::io::reader<weft::process_reader> && weft::io::writer<weft::process_writer>);

arguments shell(const std::string& script) { return {"/bin/sh", "-c", script}; }

std::size_t open_descriptors() {
  return static_cast<std::size_t>(
      std::distance(std::filesystem::directory_iterator{"/proc/self/fd"}, std::filesystem::directory_iterator{}));
}

// No child is there, not even one that has ended.
void expect_no_child() {
  int how;
  EXPECT_EQ(::waitpid(-1, &how, WNOHANG), -1);
  EXPECT_EQ(errno, ECHILD);
}

template <class F>
std::error_code code_of(F f) {
  try {
    f();
  } catch (const std::system_error& failure) {
    return failure.code();
  }
  return {};
}
template <class T>
std::error_code code_of(const weft::result<T>& got) {
  return code_of([&] { static_cast<void>(got.value()); });
}

// The letter that the system has for the state of the process with this number: T, it is suspended; X: there is none.
char state_of(int number) {
  std::ifstream stat{"/proc/" + std::to_string(number) + "/stat"};
  std::string text{std::istreambuf_iterator<char>{stat}, {}};
  const std::size_t name_end = text.rfind(')');
  return name_end != text.npos ? text.at(name_end + 2) : 'X';
}
// Whether a process with this number goes on; one that has ended, and waits to be reaped by whoever has it now, does not.
bool is_running(int number) { return state_of(number) != 'Z' && state_of(number) != 'X'; }
template <class Done>
void keep_on(Done done) {
  const auto limit = std::chrono::steady_clock::now() + 60s;
  while (!done()) {
    if (std::chrono::steady_clock::now() > limit) {
      ADD_FAILURE() << "it has not come";
      return;
    }
    std::this_thread::sleep_for(1ms);
  }
}

task<std::string> line_of(const weft::process_reader& from) {
  std::string got;
  for (char one;;) {
    if (co_await from.read(std::as_writable_bytes(std::span{&one, 1})) == 0 || one == '\n') co_return got;
    got += one;
  }
}

// ---- how one ends -----------------------------------------------------------------------------------------------------------

WEFT_TEST("process: the code that it has returned is its end") {
  EXPECT_TRUE((co_await run_process({"true"})).is_success());
  const exit_status end = co_await run_process(shell("exit 7"));
  EXPECT_FALSE(end.is_success());
  EXPECT_EQ(end.code(), 7);
  EXPECT_EQ(end.signal(), 0);
  EXPECT_EQ(end.to_string(), "exit code 7");
  expect_no_child();
}

WEFT_TEST("process: a signal that has ended it is its end") {
  const exit_status end = co_await run_process(shell("kill -KILL $$"));
  EXPECT_FALSE(end.is_success());
  EXPECT_EQ(end.code(), -1);
  EXPECT_EQ(end.signal(), SIGKILL);
  EXPECT_EQ(end.to_string(), "signal 9 (Killed)");
}

WEFT_TEST("process: its end is told to all that wait, and again") {
  process child{{.in = stdio::pipe()}, {"cat"}};
  const auto with_end = [&]() -> task<exit_status> { co_return co_await child.wait(); };
  const auto closes = [&]() -> task<> {
    child.input.close();
    co_return;
  };
  const auto [first, second, third] = co_await weft::when_all(with_end(), with_end(), closes());
  EXPECT_TRUE(first.is_success());
  EXPECT_TRUE(second.is_success());
  EXPECT_TRUE((co_await child.wait()).is_success());
  EXPECT_TRUE((co_await child.end()).is_success());
  child.signal(SIGTERM);  // to nobody
  expect_no_child();
}

WEFT_TEST("process: its end is a case of a select") {
  process child{{.in = stdio::pipe()}, {"cat"}};
  const auto before = co_await weft::select(weft::on(child.wait()), weft::otherwise);
  EXPECT_EQ(before.index, 1U);
  child.input.close();
  const auto end = co_await weft::select(weft::on(child.wait()), weft::after(60s));
  EXPECT_EQ(end.index, 0U);
  EXPECT_TRUE((co_await child.wait()).is_success());
}

WEFT_TEST("process: fifty at once") {
  std::atomic<int> sum{0};
  co_await weft::with_scope({}, [&](weft::scope& all) -> task<> {
    for (int i = 0; i != 50; ++i)
      all.fork([](int code, std::atomic<int>& into) -> task<> {
        into += (co_await run_process(shell("exit " + std::to_string(code)))).code();
      }(i, sum));
    co_return;
  });
  EXPECT_EQ(sum, 49 * 50 / 2);
  expect_no_child();
}

WEFT_TEST("process: somebody else who reaps it takes its end away") {
  process child{{}, {"true"}};
  int how;
  EXPECT_EQ(::waitpid(child.id(), &how, 0), child.id());
  EXPECT_EQ(code_of(co_await weft::as_result(child.wait())), std::errc::no_child_process);
  EXPECT_EQ(code_of(co_await weft::as_result(child.wait())), std::errc::no_child_process);
}

// ---- what it gets and gives ---------------------------------------------------------------------------------------------------

WEFT_TEST("process: its output and its error output are collected") {
  const process_output got = co_await output_of(shell("echo out; echo err >&2; exit 3"));
  EXPECT_EQ(got.out, "out\n");
  EXPECT_EQ(got.err, "err\n");
  EXPECT_EQ(got.status.code(), 3);
}

WEFT_TEST("process: more than pipes hold goes in and comes out") {
  std::string much(std::size_t{3} << 20, 'x');
  for (std::size_t i = 0; i < much.size(); i += 997) much[i] = static_cast<char>('a' + i % 26);
  const process_output got = co_await output_of({.input = much}, {"cat"});
  EXPECT_EQ(got.out.size(), much.size());
  EXPECT_TRUE(got.out == much);
  EXPECT_TRUE(got.status.is_success());
}

WEFT_TEST("process: one that does not read its input is no failure") {
  const std::string much(std::size_t{1} << 20, 'x');
  const process_output got = co_await output_of({.input = much}, shell("echo done"));
  EXPECT_EQ(got.out, "done\n");
}

WEFT_TEST("process: one that writes more than it may is ended") {
  const auto got = co_await weft::as_result(output_of({.limit = 100'000}, {"yes"}));
  EXPECT_EQ(code_of(got), std::errc::file_too_large);
  expect_no_child();
}

WEFT_TEST("process: a conversation, line by line") {
  process child{{.in = stdio::pipe(), .out = stdio::pipe()}, shell("while read line; do echo \"<$line>\"; done")};
  for (const std::string text : {"one", "two", "three"}) {
    co_await child.input.write(text + "\n");
    EXPECT_EQ(co_await line_of(child.output), "<" + text + ">");
  }
  child.input.close();
  EXPECT_EQ(co_await line_of(child.output), "");
  EXPECT_TRUE((co_await child.wait()).is_success());
}

WEFT_TEST("process: one that a thread of the pool has started is as any other") {
  process child = co_await weft::blocking([] { return process{{.in = stdio::pipe(), .out = stdio::pipe()}, {"cat"}}; });
  co_await child.input.write("a line\n");
  EXPECT_EQ(co_await line_of(child.output), "a line");
  child.input.close();
  EXPECT_TRUE((co_await child.wait()).is_success());
  expect_no_child();
}

WEFT_TEST("process: the error output goes where the output goes") {
  process child{{.out = stdio::pipe(), .err = stdio::to_output()}, shell("echo one; echo two >&2")};
  EXPECT_EQ(co_await line_of(child.output), "one");
  EXPECT_EQ(co_await line_of(child.output), "two");
  EXPECT_TRUE((co_await child.wait()).is_success());
}

WEFT_TEST("process: a stream of the caller's, and further descriptors as 3, 4, and no others") {
  int both[2];
  EXPECT_EQ(::pipe2(both, O_CLOEXEC), 0);
  const int inherited_by_accident = ::dup(both[0]);  // not close-on-exec
  const exit_status end =
      co_await run_process({.out = stdio::descriptor(both[1]), .descriptors = {both[1], both[1]}},
                           shell("echo out; echo three >&3; echo four >&4\n"
                                 "for n in 0 1 2 3 4 5 6 7 8 9; do [ -e /proc/self/fd/$n ] && echo $n; done; :"));
  EXPECT_TRUE(end.is_success());
  ::close(both[1]);
  std::string got(1000, '\0');
  got.resize(static_cast<std::size_t>(::read(both[0], got.data(), got.size())));
  EXPECT_EQ(got, "out\nthree\nfour\n0\n1\n2\n3\n4\n");
  ::close(both[0]);
  ::close(inherited_by_accident);
}

WEFT_TEST("process: its variables, its directory") {
  const process_output here = co_await output_of(
      {.process = {.variables = {"WEFT_A=1=2", "WEFT_B=", "PATH=" + std::string{::getenv("PATH")}}, .directory = "/"}},
      shell("pwd; echo $WEFT_A; echo \"[$WEFT_B]\"; echo $HOME"));
  const char* const home = ::getenv("HOME");
  EXPECT_EQ(here.out, "/\n1=2\n[]\n" + std::string{home != nullptr ? home : ""} + "\n");

  const process_output alone = co_await output_of(
      {.process = {.environment = weft::strings{"A=1", "B=2"}, .variables = {"B=3"}}}, {"/usr/bin/env"});
  EXPECT_EQ(alone.out, "A=1\nB=3\n");
}

// Its own are passed as they are, also one without a name, and those that are given take the place of theirs, the last one of a
// name.
WEFT_TEST("process: the variables of its program, and others") {
  char with_no_name[] = "WEFT_ODD", with_one[] = "WEFT_OWN=1", other[] = "WEFT_OTHER=1";
  char* own[] = {with_no_name, with_one, other, nullptr};
  char** const before = std::exchange(environ, own);
  const process_output all = co_await output_of({}, {"/usr/bin/env"});
  const process_output changed =
      co_await output_of({.process = {.variables = {"WEFT_OWN=2", "WEFT_MORE=1", "WEFT_OWN=3"}}}, {"/usr/bin/env"});
  environ = nullptr;  // as clearenv() leaves it
  const process_output none = co_await output_of({}, {"/usr/bin/env"});
  environ = before;
  EXPECT_EQ(all.out, "WEFT_ODD\nWEFT_OWN=1\nWEFT_OTHER=1\n");
  EXPECT_EQ(changed.out, "WEFT_ODD\nWEFT_OTHER=1\nWEFT_MORE=1\nWEFT_OWN=3\n");
  EXPECT_EQ(none.out, "");
}

WEFT_TEST("process: it begins with no signal blocked or ignored") {
  const auto ignored = ::signal(SIGUSR1, SIG_IGN);
  sigset_t one, before;
  sigemptyset(&one);
  sigaddset(&one, SIGUSR2);
  pthread_sigmask(SIG_BLOCK, &one, &before);
  process child{{.out = stdio::pipe()}, {"grep", "-E", "^Sig(Blk|Ign)", "/proc/self/status"}};
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  ::signal(SIGUSR1, ignored);
  EXPECT_EQ(co_await line_of(child.output), "SigBlk:\t0000000000000000");
  // But for two that the C library keeps to itself.
  EXPECT_EQ(co_await line_of(child.output), "SigIgn:\t0000000180000000");
  EXPECT_TRUE((co_await child.wait()).is_success());
}

// ---- what can't be started ----------------------------------------------------------------------------------------------------

WEFT_TEST("process: what can't be started is an error, and leaves nothing") {
  static_cast<void>(co_await output_of({"true"}));  // what is made once is there
  const std::size_t before = open_descriptors();
  const weft::process_options pipes{.in = stdio::pipe(), .out = stdio::pipe(), .err = stdio::pipe()};
  const auto refusal = [](const weft::process_options& options, const arguments& what) {
    return code_of([&] { const process child{options, what}; });
  };
  EXPECT_EQ(refusal(pipes, {"/nowhere/at/all"}), std::errc::no_such_file_or_directory);
  EXPECT_EQ(refusal(pipes, {"weft-has-no-such-program"}), std::errc::no_such_file_or_directory);
  EXPECT_EQ(refusal(pipes, {"/etc/passwd"}), std::errc::permission_denied);
  EXPECT_EQ(refusal(pipes, {}), std::errc::invalid_argument);
  EXPECT_EQ(refusal(pipes, {""}), std::errc::invalid_argument);
  EXPECT_EQ(refusal(pipes, {std::string{"true\0x", 6}}), std::errc::invalid_argument);
  EXPECT_EQ(refusal({.variables = {"NAME"}}, {"true"}), std::errc::invalid_argument);
  EXPECT_EQ(refusal({.variables = {"=1"}}, {"true"}), std::errc::invalid_argument);
  EXPECT_EQ(refusal({.out = stdio::to_output()}, {"true"}), std::errc::invalid_argument);
  EXPECT_EQ(refusal({.directory = "/nowhere/at/all"}, {"true"}), std::errc::no_such_file_or_directory);
  EXPECT_EQ(refusal({.out = stdio::descriptor(-1)}, {"true"}), std::errc::bad_file_descriptor);
  EXPECT_EQ(refusal({.descriptors = {1'000'000}}, {"true"}), std::errc::bad_file_descriptor);
  EXPECT_EQ(code_of(co_await weft::as_result(run_process({.out = stdio::pipe()}, {"true"}))),
            std::errc::invalid_argument);
  EXPECT_EQ(code_of(co_await weft::as_result(output_of({"/nowhere/at/all"}))), std::errc::no_such_file_or_directory);
  expect_no_child();
  EXPECT_EQ(open_descriptors(), before);
}

WEFT_TEST("process: at each descriptor that the system does not give, nothing is left") {
  const weft::process_options pipes{.in = stdio::pipe(), .out = stdio::pipe(), .err = stdio::pipe()};
  static_cast<void>(co_await output_of({"true"}));  // what is made once is there
  const std::size_t before = open_descriptors();
  rlimit all{};
  EXPECT_EQ(::getrlimit(RLIMIT_NOFILE, &all), 0);
  int refused = 0;
  for (rlim_t most = 3; most != 200; ++most) {
    const rlimit few{.rlim_cur = most, .rlim_max = all.rlim_max};
    EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
    bool is_made = false;
    const std::error_code refusal = code_of([&] {
      const process child{pipes, {"cat"}};
      is_made = true;
    });
    ::setrlimit(RLIMIT_NOFILE, &all);
    if (is_made) break;
    ++refused;
    // Where its number would be too high for a duplicate, the system says that the argument makes no sense.
    EXPECT_TRUE(refusal == std::errc::too_many_files_open || refusal == std::errc::invalid_argument)
        << refusal.message();
    expect_no_child();
  }
  EXPECT_GT(refused, 3);
  expect_no_child();
  EXPECT_EQ(open_descriptors(), before);
}

// ---- ending one ---------------------------------------------------------------------------------------------------------------

WEFT_TEST("process: one that is destroyed is killed, with its group, and reaped") {
  int child_of_child = 0;
  {
    process child{{.out = stdio::pipe()}, shell("trap '' TERM; sleep 1000 & echo $!; wait")};
    child_of_child = std::stoi(co_await line_of(child.output));
    EXPECT_TRUE(is_running(child_of_child));
  }
  expect_no_child();
  keep_on([&] { return !is_running(child_of_child); });
}

WEFT_TEST("process: end() asks it to end, and gives it time") {
  process child{{.out = stdio::pipe()},
                shell("trap 'echo asked; exit 5' TERM; echo ready; while :; do sleep 0.01; done")};
  EXPECT_EQ(co_await line_of(child.output), "ready");
  EXPECT_EQ((co_await child.end(60s)).code(), 5);
  EXPECT_EQ(co_await line_of(child.output), "asked");
  expect_no_child();
}

WEFT_TEST("process: each signal comes once, in its group and outside of it") {
  for (const arguments& how : {arguments{COUNTS_SIGNALS}, arguments{COUNTS_SIGNALS, "outside"}}) {
    process child{{.out = stdio::pipe()}, how};
    EXPECT_EQ(co_await line_of(child.output), "ready");
    EXPECT_EQ(::getpgid(child.id()), how.size() == 1 ? child.id() : ::getpgrp());
    child.signal(SIGRTMIN);
    EXPECT_TRUE((co_await child.end(60s)).is_success());
    EXPECT_EQ(co_await line_of(child.output), "1");
  }
  expect_no_child();
}

WEFT_TEST("process: end() kills what does not end in time") {
  process child{{.out = stdio::pipe()}, shell("trap '' TERM; echo ready; while :; do sleep 0.01; done")};
  EXPECT_EQ(co_await line_of(child.output), "ready");
  EXPECT_EQ((co_await child.end(20ms)).signal(), SIGKILL);
  expect_no_child();
}

// By itself: a signal to its group could suspend a child of the shell's before that is another program, for which the shell waits.
WEFT_TEST("process: end() ends one that is suspended") {
  process child{{}, shell("trap 'exit 5' TERM; kill -STOP $$; while :; do sleep 0.01; done")};
  keep_on([&] { return state_of(child.id()) == 'T'; });  // until then SIGTERM would be taken first
  EXPECT_EQ((co_await child.end(60s)).code(), 5);
}

WEFT_TEST("process: end() kills what it leaves behind, once its time is over") {
  process child{{.out = stdio::pipe()}, shell("sh -c 'trap \"\" TERM; echo $$; while :; do sleep 0.01; done' & wait")};
  const int child_of_child = std::stoi(co_await line_of(child.output));
  EXPECT_NE((co_await child.end(20ms)).signal(), 0);
  keep_on([&] { return !is_running(child_of_child); });
}

// The shell dies of the signal at once.
WEFT_TEST("process: end() gives time to those that a shell has started, too") {
  process child{
      {.out = stdio::pipe()},
      shell("sh -c 'trap \"sleep 0.1; echo cleaned; exit\" TERM; echo begun; while :; do sleep 0.01; done' & wait")};
  const int self = static_cast<int>(::syscall(SYS_pidfd_open, ::getpid(), 0));
  const bool tells_of_groups = ::syscall(SYS_pidfd_send_signal, self, 0, nullptr, 4U) == 0 || errno != EINVAL;
  ::close(self);
  EXPECT_EQ(co_await line_of(child.output), "begun");
  EXPECT_EQ((co_await child.end(60s)).signal(), SIGTERM);
  EXPECT_EQ(co_await line_of(child.output), tells_of_groups ? "cleaned" : "");  // by Linux 6.9
}

WEFT_TEST("process: one without a group of its own is ended alone") {
  process child{{.out = stdio::pipe(), .own_group = false}, shell("sleep 1000 & echo $!; wait")};
  const int child_of_child = std::stoi(co_await line_of(child.output));
  EXPECT_EQ(::getpgid(child.id()), ::getpgrp());
  EXPECT_EQ((co_await child.end(60s)).signal(), SIGTERM);
  EXPECT_TRUE(is_running(child_of_child));
  ::kill(child_of_child, SIGKILL);
}

WEFT_TEST("process: a stop of run_process ends it, and then the task") {
  const auto start = std::chrono::steady_clock::now();
  const auto got = co_await weft::as_result(weft::timeout(50ms, run_process({.grace = 60s}, {"sleep", "1000"})));
  EXPECT_EQ(code_of(got), weft::errc::timed_out);
  EXPECT_LT(std::chrono::steady_clock::now() - start, 50s);
  expect_no_child();
}

WEFT_TEST("process: a stop of run_process kills what ignores the signal, and what that has started") {
  const std::string deaf = "trap '' TERM; while :; do sleep 0.01; done";
  const arguments both = shell("(" + deaf + ") & " + deaf);
  const auto got = co_await weft::as_result(weft::timeout(50ms, run_process({.grace = 20ms}, both)));
  EXPECT_EQ(code_of(got), weft::errc::timed_out);
  expect_no_child();
}

WEFT_TEST("process: one that has filled a pipe which nobody reads, and ignores the signal, is killed") {
  process child{{.out = stdio::pipe()}, shell("trap '' TERM; exec yes")};
  EXPECT_EQ(co_await line_of(child.output), "y");
  EXPECT_EQ((co_await child.end(20ms)).signal(), SIGKILL);
  expect_no_child();
}

WEFT_TEST("process: a stop of output_of ends it") {
  const auto got = co_await weft::as_result(weft::timeout(50ms, output_of(shell("echo begun; sleep 1000"))));
  EXPECT_EQ(code_of(got), weft::errc::timed_out);
  expect_no_child();
}

WEFT_TEST("process: one that is given up goes on") {
  process child{{.in = stdio::pipe()}, {"cat"}};
  const int number = child.release();
  EXPECT_EQ(child.id(), -1);
  EXPECT_EQ(child.release(), -1);
  EXPECT_TRUE(is_running(number));
  EXPECT_EQ(code_of(co_await weft::as_result(child.wait())), weft::errc::closed);
  EXPECT_EQ(code_of([&] { child.signal(SIGTERM); }), weft::errc::closed);
  child.input.close();
  int how = -1;
  EXPECT_EQ(::waitpid(number, &how, 0), number);
  EXPECT_EQ(how, 0);
}

WEFT_TEST("process: one that was reaped can't be given up") {
  process child{{}, {"true"}};
  EXPECT_TRUE((co_await child.wait()).is_success());
  EXPECT_EQ(child.release(), -1);
}

TEST(process, has_the_processors_of_who_made_the_runtime) {
  const auto count = [](weft::runtime_options how) {
    weft::runtime rt{how};
    return rt.run(output_of({"nproc"})).out;
  };
  EXPECT_EQ(count({.threads = 2, .pin = true}), count({.threads = 2}));
}

WEFT_TEST("process: a signal that is none is refused") {
  const process child{{}, {"sleep", "1000"}};
  EXPECT_EQ(code_of([&] { child.signal(1000); }), std::errc::invalid_argument);
  co_return;
}

// ---- pipes ----------------------------------------------------------------------------------------------------------------------

WEFT_TEST("process: input that nobody reads any more is closed, and raises no signal") {
  process child{{.in = stdio::pipe()}, {"true"}};
  EXPECT_TRUE((co_await child.wait()).is_success());
  EXPECT_EQ(code_of(co_await weft::as_result(child.input.write("text"))), weft::errc::closed);
  EXPECT_EQ(code_of(co_await weft::as_result(child.input.write_some(std::as_bytes(std::span{"text"})))),
            weft::errc::closed);
  sigset_t pending;
  sigpending(&pending);
  EXPECT_EQ(sigismember(&pending, SIGPIPE), 0);
}

// On one thread, since a read may not begin while another thread closes: that it waits is sure there.
TEST(process, a_read_that_waits_ends_where_the_pipe_is_closed_here) {
  weft::runtime rt{{.threads = 1}};
  const auto body = []() -> task<> {
    process child{{.in = stdio::pipe(), .out = stdio::pipe()}, {"cat"}};
    const auto reads = [&]() -> task<std::error_code> {
      std::array<std::byte, 8> buffer;
      co_return code_of(co_await weft::as_result(child.output.read(buffer)));
    };
    const auto closes = [&]() -> task<> {
      co_await weft::yield();
      child.output.close();
    };
    const auto [refusal, nothing] = co_await weft::when_all(reads(), closes());
    static_cast<void>(nothing);
    EXPECT_EQ(refusal, weft::errc::closed);
    EXPECT_FALSE(child.output.is_open());
  };
  rt.run(body());
}

// On a thread that does not block SIGPIPE; a runtime's do.
TEST(process, raises_no_sigpipe_on_a_plain_thread) {
  process child{{.in = stdio::pipe()}, {"true"}};
  EXPECT_TRUE(weft::sync_wait(child.wait()).is_success());
  EXPECT_EQ(code_of([&] { weft::sync_wait(child.input.write("text")); }), weft::errc::closed);
}

WEFT_TEST("process: what was made before the pipe was closed, and is awaited later, fails") {
  process child{{.in = stdio::pipe(), .out = stdio::pipe()}, {"cat"}};
  std::array<std::byte, 8> buffer;
  auto reads = child.output.read(buffer);
  auto writes_some = child.input.write_some(std::as_bytes(std::span{"text"}));
  auto writes = child.input.write("text");
  child.output.close();
  child.input.close();
  process other{{.in = stdio::pipe(), .out = stdio::pipe()}, {"cat"}};  // which gets the numbers
  co_await other.input.write("its own");
  EXPECT_EQ(code_of(co_await weft::as_result(std::move(reads))), weft::errc::closed);
  EXPECT_EQ(code_of(co_await weft::as_result(std::move(writes_some))), weft::errc::closed);
  EXPECT_EQ(code_of(co_await weft::as_result(std::move(writes))), weft::errc::closed);
  other.input.close();
  EXPECT_EQ(co_await line_of(other.output), "its own");
}

// Whether it has not ended.
bool goes_on(int number) {
  siginfo_t how{};
  return ::waitid(P_PID, static_cast<id_t>(number), &how, WEXITED | WNOHANG | WNOWAIT) == 0 && how.si_pid == 0;
}

WEFT_TEST("process: end() that is stopped kills nothing") {
  process child{{.out = stdio::pipe()}, shell("trap '' TERM; echo ready; while :; do sleep 0.01; done")};
  EXPECT_EQ(co_await line_of(child.output), "ready");
  const auto got = co_await weft::as_result(weft::timeout(20ms, child.end(60s)));
  EXPECT_EQ(code_of(got), weft::errc::timed_out);
  EXPECT_TRUE(goes_on(child.id()));
  EXPECT_EQ((co_await child.end(0s)).signal(), SIGKILL);
}

WEFT_TEST("process: one that was given up can't be ended") {
  process child{{}, {"true"}};
  const int number = child.release();
  EXPECT_EQ(code_of(co_await weft::as_result(child.end())), weft::errc::closed);
  int how;
  EXPECT_EQ(::waitpid(number, &how, 0), number);
}

WEFT_TEST("process: one that has left its group is ended, too") {
  process child{
      {.out = stdio::pipe()},
      {"perl", "-e", "$| = 1; system('sleep 1000 &'); setpgrp(0, getpgrp(getppid())); print \"ready\\n\"; sleep 1000"}};
  EXPECT_EQ(co_await line_of(child.output), "ready");
  EXPECT_EQ(::getpgid(child.id()), ::getpgrp());
  EXPECT_EQ((co_await child.end(60s)).signal(), SIGTERM);
}

#ifndef WEFT_TEST_TSAN  // which can't go on in a forked child that has threads
// A program that ignores SIGCHLD: how its processes have ended is not known, and it hears of that by errors.
int where_nobody_is_told() {
  ::signal(SIGCHLD, SIG_IGN);
  const auto lost = [](const std::error_code& code) {
    return code == std::errc::no_child_process || code == std::errc::no_such_process;
  };
  weft::runtime rt{{.threads = 1}};
  const auto all = [&]() -> task<bool> {
    const auto run = co_await weft::as_result(run_process({"true"}));
    const auto output = co_await weft::as_result(output_of({"true"}));
    co_return lost(code_of(run)) && lost(code_of(output));
  };
  if (!rt.run(all())) return 1;
  try {
    const process gone{{}, {"true"}};
    ::usleep(50'000);
  } catch (const weft::error&) {  // it was gone at once
  }
  return 0;
}
TEST(process, is_lost_where_sigchld_is_ignored) {
  EXPECT_EXIT(::_exit(where_nobody_is_told()), testing::ExitedWithCode(0), "");
}

TEST(process, is_not_killed_by_a_forked_copy) {
  process child{{}, {"sleep", "1000"}};
  if (const pid_t copy = ::fork(); copy == 0) {
    child = process{{}, {"true"}};
    ::_exit(0);
  } else {
    int how = -1;
    EXPECT_EQ(::waitpid(copy, &how, 0), copy);
    EXPECT_EQ(how, 0);
  }
  EXPECT_TRUE(goes_on(child.id()));
}
#endif

}  // namespace
