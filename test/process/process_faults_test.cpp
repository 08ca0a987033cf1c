// Processes where the system refuses: each call that an operation makes, the first, the second and so on, fails with each error that
// it may have. The operation fails with that error and names the program, or goes on; no process is left, no zombie and no descriptor.
// In a run of the test kit and in runtimes on each back end.
#include <weft/process.hpp>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdarg>
#include <cstddef>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>
#include <weft/task.hpp>

#include "net/faults.hpp"
#include "net/open_descriptors.hpp"
#include "support/injection.hpp"
#include "support/weft_test.hpp"

namespace {

enum class call : unsigned char {
  none,
  init_actions,
  init_attributes,
  add_dup2,
  add_open,
  posix_spawnp,
  pipe2,
  fcntl,
  pidfd_open,
  pidfd_send_signal,
  epoll_ctl,
  waitid
};

const char* name_of(call one) noexcept {
  constexpr const char* names[] = {"none",
                                   "posix_spawn_file_actions_init",
                                   "posix_spawnattr_init",
                                   "posix_spawn_file_actions_adddup2",
                                   "posix_spawn_file_actions_addopen",
                                   "posix_spawnp",
                                   "pipe2",
                                   "fcntl",
                                   "pidfd_open",
                                   "pidfd_send_signal",
                                   "epoll_ctl",
                                   "waitid"};
  return names[static_cast<std::size_t>(one)];
}

using fault = test::fault_of<call>;
using injection = test::injection_of<call>;

// What a call comes to that returns -1, and sets errno.
template <class Real>
int made(call which, Real real) {
  const int refused = injection::outcome_of(which);
  return refused != 0 ? test::fails_with(refused) : real();
}
// The same of one that returns the error number.
template <class Real>
int made_by_number(call which, Real real) {
  const int refused = injection::outcome_of(which);
  return refused != 0 ? refused : real();
}

}  // namespace

// NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming): the linker's names
extern "C" {
int __real_posix_spawn_file_actions_init(posix_spawn_file_actions_t* actions);
int __real_posix_spawnattr_init(posix_spawnattr_t* attributes);
int __real_posix_spawn_file_actions_adddup2(posix_spawn_file_actions_t* actions, int from, int to);
int __real_posix_spawn_file_actions_addopen(posix_spawn_file_actions_t* actions, int number, const char* path,
                                            int flags, mode_t mode);
int __real_posix_spawnp(pid_t* number, const char* file, const posix_spawn_file_actions_t* actions,
                        const posix_spawnattr_t* attributes, char* const* arguments, char* const* variables);
int __real_pipe2(int* both, int flags);
int __real_fcntl(int number, int what, ...);
long __real_syscall(long which, ...);
int __real_epoll_ctl(int set, int what, int number, epoll_event* event);
int __real_waitid(idtype_t kind, id_t id, siginfo_t* how, int options);

int __wrap_posix_spawn_file_actions_init(posix_spawn_file_actions_t* actions) {
  return made_by_number(call::init_actions, [&] { return __real_posix_spawn_file_actions_init(actions); });
}
int __wrap_posix_spawnattr_init(posix_spawnattr_t* attributes) {
  return made_by_number(call::init_attributes, [&] { return __real_posix_spawnattr_init(attributes); });
}
int __wrap_posix_spawn_file_actions_adddup2(posix_spawn_file_actions_t* actions, int from, int to) {
  return made_by_number(call::add_dup2, [&] { return __real_posix_spawn_file_actions_adddup2(actions, from, to); });
}
int __wrap_posix_spawn_file_actions_addopen(posix_spawn_file_actions_t* actions, int number, const char* path,
                                            int flags, mode_t mode) {
  return made_by_number(call::add_open,
                        [&] { return __real_posix_spawn_file_actions_addopen(actions, number, path, flags, mode); });
}
int __wrap_posix_spawnp(pid_t* number, const char* file, const posix_spawn_file_actions_t* actions,
                        const posix_spawnattr_t* attributes, char* const* arguments, char* const* variables) {
  return made_by_number(call::posix_spawnp,
                        [&] { return __real_posix_spawnp(number, file, actions, attributes, arguments, variables); });
}
int __wrap_pipe2(int* both, int flags) {
  return made(call::pipe2, [&] { return __real_pipe2(both, flags); });
}
int __wrap_fcntl(int number, int what, ...) {
  va_list rest;
  va_start(rest, what);
  const long argument = va_arg(rest, long);
  va_end(rest);
  return made(call::fcntl, [&] { return __real_fcntl(number, what, argument); });
}
long __wrap_syscall(long which, ...) {
  va_list rest;
  va_start(rest, which);
  long all[6];
  for (long& one : all) one = va_arg(rest, long);
  va_end(rest);
  const call mine = which == SYS_pidfd_open          ? call::pidfd_open
                    : which == SYS_pidfd_send_signal ? call::pidfd_send_signal
                                                     : call::none;
  const int refused = mine == call::none ? 0 : injection::outcome_of(mine);
  if (refused != 0) return test::fails_with(refused);
  return __real_syscall(which, all[0], all[1], all[2], all[3], all[4], all[5]);
}
int __wrap_epoll_ctl(int set, int what, int number, epoll_event* event) {
  if (what != EPOLL_CTL_ADD) return __real_epoll_ctl(set, what, number, event);
  return made(call::epoll_ctl, [&] { return __real_epoll_ctl(set, what, number, event); });
}
int __wrap_waitid(idtype_t kind, id_t id, siginfo_t* how, int options) {
  return made(call::waitid, [&] { return __real_waitid(kind, id, how, options); });
}
}  // extern "C"
// NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming)

namespace {

using namespace std::chrono_literals;
using test::place;
using test::runner;
using weft::as_result;
using weft::process;
using weft::stdio;
using weft::task;

class process_faults : public testing::TestWithParam<place> {};
INSTANTIATE_TEST_SUITE_P(on, process_faults, testing::ValuesIn(test::places()), test::name_of_place);

void expect_no_child() {
  int how;
  EXPECT_EQ(::waitpid(-1, &how, WNOHANG), -1);
  EXPECT_EQ(errno, ECHILD);
}

// Each fault of starting one. EINTR of waitid() is none, nor ETXTBSY that soon passes: it is called again.
const std::vector<fault> of_starts{
    {call::init_actions, {ENOMEM}},
    {call::init_attributes, {ENOMEM}},
    {call::add_dup2, {ENOMEM}},
    {call::add_open, {ENOMEM}},
    {call::posix_spawnp, {EAGAIN}},
    {call::posix_spawnp, {ENOMEM}},
    {call::posix_spawnp, {EACCES}},
    {call::posix_spawnp, {ETXTBSY, ETXTBSY}},
    {call::pipe2, {EMFILE}},
    {call::pipe2, {ENFILE}},
    {call::fcntl, {EMFILE}},
    {call::fcntl, {EINVAL}},
    {call::pidfd_open, {EMFILE}},
    {call::pidfd_open, {ENOSYS}},
    {call::pidfd_open, {EPERM}},
    {call::epoll_ctl, {ENOSPC}},
    {call::epoll_ctl, {ENOMEM}},
    {call::waitid, {EINTR}},
    {call::waitid, {EINTR, EINTR, EINTR}},
};

// Runs `operation` with each of `faults`. It fails with the fault's error, in a sentence with `names`, and leaves nothing.
template <class Operation>
void sweep(place where, const std::vector<fault>& faults, std::initializer_list<call> makes, std::string_view names,
           Operation operation) {
  runner run{where};
  run([&]() -> task<> { co_await operation(); });  // what is made once is made
  for (const fault& what : faults) {
    std::size_t before = 0;
    for (bool has_struck = true; has_struck; ++before) {
      const testing::ScopedTrace trace{__FILE__, __LINE__,
                                       what.to_string() + " behind " + std::to_string(before) + " calls"};
      const std::size_t open = test::open_descriptors();
      const auto body = [&]() -> task<> {
        const injection one{what, before};
        const auto how = co_await as_result(operation());
        has_struck = one.struck() != 0;
        const bool is_none = what.results[0] == EINTR || what.results[0] == ETXTBSY;
        const int expected = has_struck && !is_none ? what.results[0] : 0;
        EXPECT_EQ(how.error().value(), expected) << how.error().message();
        if (how.has_value()) co_return;
        try {
          static_cast<void>(how.value());
        } catch (const weft::error& failure) {
          EXPECT_NE(std::string_view{failure.what()}.find(names), std::string_view::npos) << failure.what();
        }
      };
      run(body);
      expect_no_child();
      EXPECT_EQ(test::open_descriptors(), open);
      if (testing::Test::HasFailure()) return;
    }
    const bool is_made = std::ranges::find(makes, what.at) != makes.end();
    if (is_made && (what.at != call::epoll_ctl || where < place::uring)) {
      EXPECT_GT(before, 1U) << name_of(what.at) << " was never called";
    }
  }
}

TEST_P(process_faults, of_starting_one_with_pipes) {
  const auto starts = []() -> task<> {
    const process child{{.in = stdio::pipe(), .out = stdio::pipe(), .err = stdio::pipe()}, {"cat"}};
    EXPECT_GT(child.id(), 0);
    co_return;
  };
  sweep(GetParam(), of_starts,
        {call::init_actions, call::init_attributes, call::add_dup2, call::posix_spawnp, call::pipe2, call::fcntl,
         call::pidfd_open, call::epoll_ctl, call::waitid},
        "cat", starts);
}

TEST_P(process_faults, of_starting_one_with_descriptors) {
  const auto starts = []() -> task<> {
    const process child{{.in = stdio::null(),
                         .out = stdio::descriptor(2),
                         .err = stdio::to_output(),
                         .directory = "/",
                         .descriptors = {0, 1},
                         .own_group = true},
                        {"sleep", "1000"}};
    EXPECT_GT(child.id(), 0);
    co_return;
  };
  sweep(GetParam(), of_starts,
        {call::init_actions, call::init_attributes, call::add_dup2, call::add_open, call::posix_spawnp, call::fcntl,
         call::pidfd_open, call::epoll_ctl, call::waitid},
        "sleep", starts);
}

TEST_P(process_faults, of_run_process) {
  const auto runs = []() -> task<> {
    const weft::exit_status how = co_await weft::run_process({.in = stdio::null()}, {"true"});
    EXPECT_TRUE(how.is_success());
  };
  sweep(GetParam(), of_starts, {call::posix_spawnp, call::pidfd_open, call::epoll_ctl, call::waitid}, "true", runs);
}

TEST_P(process_faults, of_output_of) {
  const auto asks = []() -> task<> {
    const weft::process_output got = co_await weft::output_of({.input = "text"}, {"cat"});
    EXPECT_EQ(got.out, "text");
    EXPECT_TRUE(got.status.is_success());
  };
  sweep(GetParam(), of_starts,
        {call::add_dup2, call::posix_spawnp, call::pipe2, call::fcntl, call::pidfd_open, call::epoll_ctl, call::waitid},
        "cat", asks);
}

// A system that refuses waitid(), as a filter of system calls may, loses no exit status: it can be waited for again.
TEST_P(process_faults, of_wait) {
  runner run{GetParam()};
  const auto body = []() -> task<> {
    for (std::size_t before = 0;; ++before) {
      const process child{{.in = stdio::null()}, {"sh", "-c", "exit 3"}};
      std::error_code failure;
      std::size_t struck = 0;
      {
        const injection one{{call::waitid, {EPERM}}, before};
        const auto how = co_await as_result(child.wait());
        failure = how.error();
        struck = one.struck();
      }
      EXPECT_EQ(failure.value(), struck != 0 ? EPERM : 0);
      EXPECT_EQ((co_await child.wait()).code(), 3);
      if (struck == 0) break;
    }
  };
  run(body);
  expect_no_child();
}

TEST_P(process_faults, of_the_wait_of_a_running_one_which_is_ended_all_the_same) {
  runner run{GetParam()};
  const auto body = []() -> task<> {
    for (const bool own_group : {false, true}) {
      const process child{{.in = stdio::null(), .own_group = own_group}, {"sleep", "1000"}};
      const injection one{{call::waitid, {EPERM}}, 0};
      EXPECT_EQ((co_await as_result(child.wait())).error(), std::errc::operation_not_permitted);
    }
  };
  run(body);
  expect_no_child();
}

// An end() that fails has the process still: the destructor kills and reaps it.
TEST_P(process_faults, of_end) {
  runner run{GetParam()};
  const std::size_t open_before = test::open_descriptors();
  for (const bool own_group : {false, true})
    for (const fault& what : {fault{call::waitid, {EPERM}}, fault{call::waitid, {EINTR, EINTR}},
                              fault{call::pidfd_send_signal, {EPERM}}, fault{call::pidfd_send_signal, {EINVAL}}}) {
      std::size_t struck = 1;
      for (std::size_t before = 0; struck != 0; ++before) {
        const testing::ScopedTrace trace{__FILE__, __LINE__,
                                         what.to_string() + " behind " + std::to_string(before) + " calls"};
        const auto body = [&]() -> task<> {
          const process child{{.in = stdio::null(), .own_group = own_group}, {"sleep", "1000"}};
          const injection one{what, before};
          const auto how = co_await as_result(child.end(10s));
          struck = one.struck();
          if (how.has_value())
            EXPECT_NE(how.value().signal(), 0);
          else
            EXPECT_EQ(how.error().value(), what.results[0]) << how.error().message();
        };
        run(body);
        expect_no_child();
        if (testing::Test::HasFailure()) return;
      }
    }
  EXPECT_EQ(test::open_descriptors(), open_before);
}

TEST_P(process_faults, of_signal) {
  runner run{GetParam()};
  const auto body = []() -> task<> {
    const process child{{.in = stdio::null()}, {"sleep", "1000"}};
    {
      const injection one{{call::pidfd_send_signal, {EPERM}}, 0};
      try {
        child.signal(SIGTERM);
        ADD_FAILURE() << "it was not refused";
      } catch (const weft::error& failure) {
        EXPECT_EQ(failure.code(), std::errc::operation_not_permitted);
        EXPECT_NE(std::string_view{failure.what()}.find("send a signal to a process"), std::string_view::npos);
      }
    }
    child.signal(SIGTERM);
    EXPECT_EQ((co_await child.wait()).signal(), SIGTERM);
  };
  run(body);
  expect_no_child();
}

// While this program has its file open to be written.
TEST_P(process_faults, of_a_program_that_stays_busy) {
  runner run{GetParam()};
  const injection always{{call::posix_spawnp, {ETXTBSY, ETXTBSY, ETXTBSY, ETXTBSY, ETXTBSY, ETXTBSY, ETXTBSY, ETXTBSY}},
                         1};
  run([]() -> task<> {
    EXPECT_TRUE((co_await weft::run_process({"true"})).is_success());
    const auto how = co_await as_result(weft::run_process({"true"}));
    EXPECT_EQ(how.error(), std::errc::text_file_busy);
  });
  expect_no_child();
}

TEST_P(process_faults, options_that_make_no_sense_start_nothing) {
  runner run{GetParam()};
  run([]() -> task<> {
    for (int i = 0; i != 3; ++i) {
      const injection one{{call::posix_spawnp, {EACCES}}, 0};
      weft::process_options with_pipe;
      (i == 0 ? with_pipe.in : i == 1 ? with_pipe.out : with_pipe.err) = stdio::pipe();
      const auto how = co_await as_result(weft::run_process(with_pipe, {"true"}));
      EXPECT_EQ(how.error(), std::errc::invalid_argument);
      EXPECT_EQ(one.struck(), 0U);
    }
  });
}

// As a program that has become another user. The destructor does not wait for its end, and leaves no zombie.
TEST_P(process_faults, one_that_can_not_be_killed_is_reaped_once_it_has_ended) {
  runner run{GetParam()};
  run([]() -> task<> {
    for (const bool ends_before : {true, false}) {
      int number = -1;
      const auto wait_for_end = [&] {
        siginfo_t how{};
        EXPECT_EQ(::waitid(P_PID, static_cast<id_t>(number), &how, WEXITED | WNOWAIT), 0);
      };
      {
        const injection one{{call::pidfd_send_signal, {EPERM}}, 0};
        weft::process_options how{.own_group = false};
        if (!ends_before) how.in = stdio::pipe();  // which is closed last, and ends it
        const process child{how, {ends_before ? "true" : "cat"}};
        number = child.id();
        if (ends_before) wait_for_end();
      }
      if (!ends_before) wait_for_end();
      EXPECT_TRUE((co_await weft::run_process({"true"})).is_success());  // what starts one reaps those
      EXPECT_EQ(::waitpid(number, nullptr, WNOHANG), -1);
    }
  });
  expect_no_child();
}

}  // namespace
