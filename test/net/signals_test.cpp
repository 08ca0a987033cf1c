// Signals of the process, in runtimes on either back end, outside of one, and in fibers. See weft/signals.hpp.
#include <weft/signals.hpp>

#include <signal.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <string>
#include <thread>
#include <utility>
#include <vector>
#include <weft/combine.hpp>
#include <weft/executor.hpp>
#include <weft/fiber.hpp>
#include <weft/on_scope_exit.hpp>
#include <weft/race.hpp>
#include <weft/runtime.hpp>
#include <weft/scope.hpp>
#include <weft/select.hpp>

#include "support/weft_test.hpp"

namespace {

using namespace std::chrono_literals;
using weft::signals;
using weft::task;

// A shell starts what runs in its background with these ignored.
[[maybe_unused]] const bool are_as_in_the_foreground = [] {
  for (const int number : {SIGINT, SIGTERM, SIGUSR1, SIGUSR2}) ::signal(number, SIG_DFL);
  return true;
}();

using handler_function = void (*)(int);
handler_function handler_of(int number) {
  struct sigaction now{};
  EXPECT_EQ(::sigaction(number, nullptr, &now), 0);
  return now.sa_handler;
}
// Calls that do something, until it says that it is done; a failure after far more time than it can take.
template <class Done>
void keep_on(Done done) {
  const auto limit = std::chrono::steady_clock::now() + 60s;
  while (!done()) {
    if (std::chrono::steady_clock::now() > limit) {
      ADD_FAILURE() << "it has not come";
      return;
    }
    std::this_thread::yield();
  }
}
void wait_until_heard(int number) {
  keep_on([number] { return handler_of(number) != SIG_DFL; });
}
void send_to_process(int number) {
#ifdef WEFT_TEST_TSAN  // which holds a signal back until its thread calls a function that it knows; a futex is none
  sigset_t this_one, before;
  sigemptyset(&this_one);
  sigaddset(&this_one, number);
  ::pthread_sigmask(SIG_UNBLOCK, &this_one, &before);
  EXPECT_EQ(::raise(number), 0);
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
#else
  EXPECT_EQ(::kill(::getpid(), number), 0);
#endif
}
// The line of /proc/self/status that a child process has.
std::string of_child(const char* line) {
  const std::string command = std::string{"grep "} + line + " /proc/self/status";
  std::FILE* const output = ::popen(command.c_str(), "r");
  std::array<char, 128> text{};
  EXPECT_NE(std::fgets(text.data(), static_cast<int>(text.size()), output), nullptr);
  EXPECT_EQ(::pclose(output), 0);
  return text.data();
}

task<int> takes_three() {
  signals of{SIGUSR1, SIGUSR2};
  int sum = 0;
  for (const int number : {SIGUSR1, SIGUSR2, SIGUSR1}) {
    send_to_process(number);
    const int got = co_await of.next();
    sum += got == number ? 1 : 0;
  }
  co_return sum;
}

TEST(signals, are_heard_in_a_runtime_on_either_back_end) {
  for (const weft::io_backend by : {weft::io_backend::automatic, weft::io_backend::epoll})
    for (const unsigned threads : {1U, 2U}) {
      weft::runtime rt{{.threads = threads, .io = by}};
      EXPECT_EQ(rt.run(takes_three()), 3);
      EXPECT_EQ(rt.stats().watched, 0U);
    }
}

TEST(signals, are_heard_on_a_plain_thread) {
  EXPECT_EQ(weft::sync_wait(takes_three()), 3);
  const signals of{SIGUSR1};
  send_to_process(SIGUSR1);
  EXPECT_EQ(weft::sync_wait(of.next()), SIGUSR1);
}

TEST(signals, are_heard_by_a_guest) {
  weft::runtime rt{{.guest = true}};
  EXPECT_EQ(rt.run(takes_three()), 3);
}

TEST(signals, are_heard_in_a_fiber) {
  const auto body = [](weft::scope& s) -> task<int> {
    auto waits = s.go([] {
      const signals of{SIGUSR1};
      send_to_process(SIGUSR1);
      return weft::await(of.next());
    });
    co_return co_await std::move(waits);
  };
  EXPECT_EQ(weft::run(weft::with_scope(body)), SIGUSR1);
}

// Between two waits, too; again and again before it is taken, once; and several, in the order of the list.
TEST(signals, that_came_before_are_there) {
  const signals of{SIGUSR2, SIGUSR1};
  for (const int number : {SIGUSR1, SIGUSR1, SIGUSR2, SIGUSR1}) EXPECT_EQ(::raise(number), 0);
  EXPECT_EQ(weft::sync_wait(of.next()), SIGUSR2);
  EXPECT_EQ(weft::sync_wait(of.next()), SIGUSR1);
  const auto none = weft::sync_wait(weft::as_result(weft::timeout(1ms, of.next())));
  EXPECT_EQ(none.error(), weft::errc::timed_out);
}

TEST(signals, are_for_all_that_hear_them) {
  const auto one = []() -> task<int> {
    const signals of{SIGUSR1};
    co_return co_await of.next();
  };
  const auto body = [&](weft::scope& s) -> task<int> {
    std::vector<weft::fork<int>> all;
    for (int i = 0; i != 20; ++i) all.push_back(s.fork_here(one()));
    send_to_process(SIGUSR1);
    int sum = 0;
    for (auto& each : all) sum += co_await std::move(each);
    co_return sum;
  };
  EXPECT_EQ(weft::run(weft::with_scope(body)), 20 * SIGUSR1);
}

TEST(signals, are_a_case_of_a_select) {
  const auto body = []() -> task<std::size_t> {
    const signals of{SIGUSR1}, never{SIGUSR2};
    send_to_process(SIGUSR1);
    const auto chosen = co_await weft::select(weft::on(never.next()), weft::on(of.next()), weft::after(1h));
    EXPECT_EQ(std::get<1>(chosen.value), SIGUSR1);
    co_return chosen.index;
  };
  EXPECT_EQ(weft::run(body()), 1U);
}

void programs_own(int) {}
void programs_newer(int) {}

TEST(signals, leave_the_handler_of_before) {
  ::signal(SIGUSR1, programs_own);
  {
    const signals outer{SIGUSR1};
    EXPECT_NE(handler_of(SIGUSR1), programs_own);
    {
      signals inner{SIGUSR1}, moved{std::move(inner)};
      EXPECT_EQ(::raise(SIGUSR1), 0);
      EXPECT_EQ(weft::sync_wait(moved.next()), SIGUSR1);
    }
    EXPECT_NE(handler_of(SIGUSR1), programs_own);
    EXPECT_EQ(weft::sync_wait(outer.next()), SIGUSR1);
  }
  EXPECT_EQ(handler_of(SIGUSR1), programs_own);
  {
    const signals of{SIGUSR1};
    ::signal(SIGUSR1, programs_newer);
  }
  EXPECT_EQ(handler_of(SIGUSR1), programs_newer);
  ::signal(SIGUSR1, SIG_DFL);
}

// What the program installs while somebody hears the signal is in force when the last one has gone, whoever came meanwhile.
TEST(signals, leave_the_handler_that_came_between_two) {
  for (const handler_function newer : {handler_function{programs_newer}, SIG_DFL, SIG_IGN}) {
    ::signal(SIGUSR1, programs_own);
    {
      const signals outer{SIGUSR1};
      ::signal(SIGUSR1, newer);
      const signals inner{SIGUSR1};
      EXPECT_EQ(::raise(SIGUSR1), 0);
      EXPECT_EQ(weft::sync_wait(inner.next()), SIGUSR1);
    }
    EXPECT_EQ(handler_of(SIGUSR1), newer);
    ::signal(SIGUSR1, SIG_DFL);
  }
}

TEST(signals, leave_the_default_action_that_the_program_has_set) {
  ::signal(SIGUSR1, programs_own);
  {
    const signals of{SIGUSR1};
    ::signal(SIGUSR1, SIG_DFL);
  }
  EXPECT_EQ(handler_of(SIGUSR1), SIG_DFL);
}

TEST(signals, that_are_named_twice_come_once) {
  const signals of{SIGUSR1, SIGUSR1, SIGUSR2};
  EXPECT_EQ(::raise(SIGUSR1), 0);
  EXPECT_EQ(::raise(SIGUSR2), 0);
  EXPECT_EQ(weft::sync_wait(of.next()), SIGUSR1);
  EXPECT_EQ(weft::sync_wait(of.next()), SIGUSR2);
}

TEST(signals, refuse_what_cannot_be_heard) {
  for (const int number : {-1, 0, 65, 1000, SIGKILL, SIGSTOP, SIGSEGV, SIGBUS, SIGFPE, SIGILL}) try {
      const signals of{SIGUSR1, number};
      ADD_FAILURE() << number;
    } catch (const weft::error& refused) {
      EXPECT_EQ(refused.code(), std::errc::invalid_argument) << number;
    }
  EXPECT_EQ(handler_of(SIGUSR1), SIG_DFL);  // what was begun is undone
}

TEST(signals, block_nothing_in_a_child_process) {
  const std::string before = of_child("SigBlk"), ignored = of_child("SigIgn"), caught = of_child("SigCgt");
  const signals of{SIGUSR1, SIGTERM, SIGINT};
  EXPECT_EQ(of_child("SigBlk"), before);
  EXPECT_EQ(of_child("SigIgn"), ignored);
  EXPECT_EQ(of_child("SigCgt"), caught);
}

// Runs that in a child, and gives what it exits with; -1: otherwise.
template <class Body>
int exit_of_child(Body body) {
  const ::pid_t child = ::fork();
  if (child == 0) ::_exit(body());
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// One signal comes and is given, so that the file which is watched has something to read: whoever watches it is told of that
// once, and from then on only of what comes.
task<> hear_one(const signals& of) {
  sigset_t it, usual;
  sigemptyset(&it);
  sigaddset(&it, SIGUSR1);
  ::pthread_sigmask(SIG_UNBLOCK, &it, &usual);  // a worker has it blocked
  ::raise(SIGUSR1);                             // the handler has run
  ::pthread_sigmask(SIG_SETMASK, &usual, nullptr);
  EXPECT_EQ(co_await of.next(), SIGUSR1);
}
task<> until_watched(const weft::runtime& rt) {
  while (rt.stats().changes == 0) co_await weft::sleep_for(1ms);
}

// A child has the parent's handlers, and the file by which these wake who waits.
TEST(signals, of_a_forked_child_do_not_wake_its_parent) {
  for (const weft::io_backend by : {weft::io_backend::automatic, weft::io_backend::epoll}) {
    weft::runtime rt{{.threads = 1, .io = by}};
    const auto waits = [&]() -> task<> {
      const signals of{SIGUSR1};
      co_await hear_one(of);
      const auto kills = [&]() -> task<> {
        co_await until_watched(rt);
        const std::uint64_t before = rt.stats().changes;
        EXPECT_EQ(exit_of_child([] { return ::raise(SIGUSR1); }), 0);
        sigset_t usual, blocked, in_child;
        sigemptyset(&blocked);
        sigaddset(&blocked, SIGUSR1);
        ::pthread_sigmask(SIG_BLOCK, &blocked, &usual);
        in_child = usual;
        sigdelset(&in_child, SIGUSR1);
        const ::pid_t child = ::fork();
        if (child == 0) {
          ::sigsuspend(&in_child);  // until the handler has run
          ::_exit(0);
        }
        ::pthread_sigmask(SIG_SETMASK, &usual, nullptr);
        EXPECT_EQ(::kill(child, SIGUSR1), 0);
        int status = -1;
        EXPECT_EQ(::waitpid(child, &status, 0), child);
        EXPECT_TRUE(WIFEXITED(status));
        for (int i = 0; i != 5; ++i) co_await weft::sleep_for(5ms);  // it would have been reported
        EXPECT_EQ(rt.stats().changes, before);
        send_to_process(SIGUSR1);
      };
      const auto [number, none] = co_await weft::when_all(of.next(), kills());
      EXPECT_EQ(number, SIGUSR1);
    };
    rt.run(waits());
  }
}

#ifndef WEFT_TEST_TSAN  // which starts no threads behind a fork
TEST(signals, are_heard_in_a_forked_child_by_itself) {
  weft::runtime rt{{.threads = 1}};
  const auto waits = [&]() -> task<> {
    const signals of{SIGUSR1, SIGUSR2};
    co_await hear_one(of);
    const auto forks = [&]() -> task<> {
      co_await until_watched(rt);
      const std::uint64_t before = rt.stats().changes;
      EXPECT_EQ(exit_of_child([] {
                  int got = 0;
                  std::thread other{[&got] {  // as its own process: this thread is a task of the parent's runtime
                    sigset_t none;
                    sigemptyset(&none);
                    ::pthread_sigmask(SIG_SETMASK, &none, nullptr);
                    got = weft::runtime{{.threads = 1}}.run(takes_three());
                  }};
                  other.join();
                  return got;
                }),
                3);
      for (int i = 0; i != 5; ++i) co_await weft::sleep_for(5ms);
      EXPECT_EQ(rt.stats().changes, before);
      send_to_process(SIGUSR2);
    };
    const auto [number, none] = co_await weft::when_all(of.next(), forks());
    EXPECT_EQ(number, SIGUSR2);
  };
  rt.run(waits());
}
#endif

TEST(interrupted, ends_at_either_signal) {
  for (const int number : {SIGINT, SIGTERM}) {
    std::thread sender{[number] {
      wait_until_heard(number);
      send_to_process(number);
    }};
    EXPECT_EQ(weft::run(weft::interrupted()), number);
    sender.join();
    EXPECT_EQ(handler_of(number), SIG_DFL);
  }
}

TEST(interrupted, ends_a_program) {
  std::thread sender{[] {
    wait_until_heard(SIGTERM);
    send_to_process(SIGTERM);
  }};
  bool drained = false;
  const auto drains = [&]() -> task<> {
    co_await weft::sleep_for(1ms);
    drained = true;
  };
  const auto serves = [&]() -> task<> {
    co_await weft::on_scope_exit(drains);
    co_await weft::sleep_for(1h);
  };
  EXPECT_EQ(weft::run_main(weft::when_any(serves(), weft::interrupted())), 0);
  EXPECT_TRUE(drained);
  sender.join();
}

// The system brings the default action back before anybody has gone on: so a program that hangs is ended by the next one.
TEST(interrupted, is_for_the_first_signal_only) {
  weft::manual_executor by_hand;
  int got = 0;
  weft::start(by_hand, weft::interrupted(), [&](weft::result<int> how) { got = how.value(); });
  by_hand.run_all();
  EXPECT_NE(handler_of(SIGTERM), SIG_DFL);
  EXPECT_EQ(::raise(SIGTERM), 0);
  EXPECT_EQ(handler_of(SIGTERM), SIG_DFL);
  EXPECT_NE(handler_of(SIGINT), SIG_DFL);
  keep_on([&] { return by_hand.run_all(), got != 0; });
  EXPECT_EQ(got, SIGTERM);
  EXPECT_EQ(handler_of(SIGINT), SIG_DFL);
}

// The system's return to the default action is not the program's: its own handler is back.
TEST(interrupted, leaves_the_handler_of_before) {
  ::signal(SIGTERM, programs_own);
  weft::manual_executor by_hand;
  int got = 0;
  weft::start(by_hand, weft::interrupted(), [&](weft::result<int> how) { got = how.value(); });
  by_hand.run_all();
  EXPECT_EQ(::raise(SIGTERM), 0);
  EXPECT_EQ(handler_of(SIGTERM), SIG_DFL);
  keep_on([&] { return by_hand.run_all(), got != 0; });
  EXPECT_EQ(handler_of(SIGTERM), programs_own);
  ::signal(SIGTERM, SIG_DFL);
}

TEST(interrupted, leaves_a_signal_to_who_hears_all_of_them) {
  weft::manual_executor by_hand;
  bool is_over = false;
  weft::start(by_hand, weft::interrupted(), [&](weft::result<int>) { is_over = true; });
  by_hand.run_all();
  {
    const signals of{SIGINT};
    for (int i = 0; i != 3; ++i) {
      EXPECT_EQ(::raise(SIGINT), 0);
      EXPECT_EQ(weft::sync_wait(of.next()), SIGINT);
    }
  }
  keep_on([&] { return by_hand.run_all(), is_over; });
  EXPECT_EQ(handler_of(SIGINT), SIG_DFL);
}

TEST(signals_death, by_a_second_interrupt) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        weft::manual_executor by_hand;
        weft::start(by_hand, weft::interrupted(), [](weft::result<int>) {});
        by_hand.run_all();
        ::raise(SIGINT);
        ::raise(SIGINT);
      },
      testing::KilledBySignal(SIGINT), "");
}
TEST(signals_death, by_two_that_wait_at_once) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(weft::sync_wait([]() -> task<> {
                 const signals of{SIGUSR1};
                 co_await weft::when_all(of.next(), of.next());
               }()),
               "two tasks wait for the next signal of one");
}

}  // namespace
