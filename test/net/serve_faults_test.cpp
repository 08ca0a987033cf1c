// What servers, connections by name and signals come to when system calls fail: as net_faults_test.cpp, of which this is the rest.
#include "support/weft_test.hpp"

#include <signal.h>
#include <sys/socket.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>
#include <weft/net.hpp>
#include <weft/race.hpp>
#include <weft/resolve.hpp>
#include <weft/runtime.hpp>
#include <weft/serve.hpp>
#include <weft/signals.hpp>

#include "net/fault_sweep.hpp"
#include "net/faults.hpp"
#include "net/name_server.hpp"
#include "support/sweep.hpp"
#include "support/system_calls.hpp"

namespace {

using namespace test::in_sweeps;
using test::again;
using test::anywhere;
using test::breathe;
using test::call;
using test::connected_to;
using test::own_listener;
using test::own_socket;
using test::place;
using test::scenario;
using test::sweep_faults;
using weft::signals;
using weft::net::endpoint;
using weft::net::listener;
using weft::net::stream;

class serve_faults : public testing::TestWithParam<place> {};
INSTANTIATE_TEST_SUITE_P(on, serve_faults, testing::ValuesIn(test::places()), test::name_of_place);

// ---- servers ------------------------------------------------------------------------------------------------------------------

// Clients one after the other, each of which is answered: where the system has nothing for a connection, the server pauses, and
// then accepts it. One that was accepted, and can't be watched, is closed.
template <class By>
struct serves : scenario {
  static constexpr std::array those{call::accept4, call::epoll_ctl};
  weft::net::server_stats stats;
  std::uint64_t answered = 0, closed = 0;

  static task<> handle(stream peer) {
    std::array<std::byte, 1> letter;
    if (co_await peer.read(letter) != 0) co_await peer.write("y");
  }
  part<By> asks(std::uint16_t port) {
    for (int i = 0; i != 3; ++i) {
      const own_socket client = connected_to(port);
      client.send("x");
      char answer = 0;
      ssize_t got;
      while ((got = test::real::__real_recv(client.number(), &answer, 1, MSG_DONTWAIT)) < 0 && errno == EAGAIN)
        co_await breathe();
      ++(got == 1 && answer == 'y' ? answered : closed);
    }
  }
  part<By> run() {
    const auto listen = [] { return weft::net::listen(anywhere); };
    listener at = co_await again<By>(*this, listen);
    const std::uint16_t port = at.local().port();
    const auto ignores = [](const endpoint&, const std::exception_ptr&) {};
    const weft::net::serve_options options{.on_error = ignores, .stats = &stats};
    auto server = weft::net::serve(options, std::move(at), handle);
    auto clients = test::as_played(asks(port));
    const auto first = co_await weft::when_any(std::move(server), std::move(clients));
    EXPECT_EQ(first.index, 1U) << "the server has ended";
  }
  void check(std::error_code failed) const {
    const bool is_paused = failed && failures.empty();  // unless it was the listener's own
    if (!failures.empty()) scenario::check(failed);
    EXPECT_EQ(stats.pauses(), is_paused ? 1U : 0U);
    EXPECT_EQ(stats.rejected(), closed);
    EXPECT_LE(closed, is_paused ? 1U : 0U);
    EXPECT_EQ(stats.accepted(), answered);
    EXPECT_EQ(answered + closed, 3U);
    EXPECT_EQ(stats.active(), 0U);
    EXPECT_EQ(stats.failures() + stats.peer_errors(), 0U);
  }
};
TEST_P(serve_faults, of_serve) { sweep_faults<serves>(GetParam()); }

// A call of a handler's that fails is its connection's end, and no other's.
template <class By>
struct serves_who_fail : serves<By> {
  static constexpr std::array those{call::recv, call::send};
  void check(std::error_code failed) const {
    EXPECT_EQ(this->failures, std::vector<std::error_code>{});
    EXPECT_EQ(this->closed, failed ? 1U : 0U);
    EXPECT_EQ(this->answered + this->closed, 3U);
    EXPECT_EQ(this->stats.accepted(), 3U);
    EXPECT_EQ(this->stats.pauses() + this->stats.rejected() + this->stats.active(), 0U);
  }
};
TEST_P(serve_faults, of_the_handlers_of_serve) { sweep_faults<serves_who_fail>(GetParam()); }

// ---- names --------------------------------------------------------------------------------------------------------------------

#if defined(WEFT_WITH_CARES)
// The lookup may ask the same server again, so that a call of its own that fails may have it fail, or not. The name has an address
// of one family alone: that its question could not be asked is no answer that there is none.
template <class By>
struct connects_to_a_name : scenario {
  static constexpr std::array those{call::socket, call::connect, call::sendmsg, call::recvfrom, call::epoll_ctl};
  own_listener at;
  test::name_server server{[](const test::question& asked) { return test::answer(asked, {"127.0.0.1"}); }};
  std::string there;

  part<By> run() {
    const endpoint ask[] = {server.at()};
    const weft::net::connect_options options{.delay = 1h, .names = {.servers = ask, .timeout = 20ms, .tries = 10}};
    const std::string port = std::to_string(at.port);
    const auto connect = [&] { return weft::net::connect(options, "db.test.", port); };
    const stream made = co_await again<By>(*this, connect);
    co_await made.write("to it");
    while (there.empty()) {  // before it one that failed
      const own_socket peer = at.accept();
      there = peer.receive();
    }
  }
  void check(std::error_code failed) const {
    if (!failures.empty()) scenario::check(failed);
    EXPECT_EQ(there, "to it");
  }
};
TEST_P(serve_faults, of_a_connect_to_a_name) { sweep_faults<connects_to_a_name>(GetParam()); }
#endif

// ---- signals ------------------------------------------------------------------------------------------------------------------

using handler_function = void (*)(int);
handler_function handler_of(int number) {
  struct sigaction now{};
  EXPECT_EQ(::sigaction(number, nullptr, &now), 0);
  return now.sa_handler;
}
// On this thread, at once.
void send(int number) {
  sigset_t this_one, before;
  sigemptyset(&this_one);
  sigaddset(&this_one, number);
  ::pthread_sigmask(SIG_UNBLOCK, &this_one, &before);
  EXPECT_EQ(::raise(number), 0);
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

// These are ignored, so that one that nobody hears ends nothing.
struct with_ignored_signals : scenario {
  static constexpr std::array numbers{SIGINT, SIGTERM, SIGUSR1};
  std::array<struct sigaction, numbers.size()> before{};

  with_ignored_signals() {
    struct sigaction ignored{};
    ignored.sa_handler = SIG_IGN;
    for (std::size_t i = 0; i != numbers.size(); ++i) EXPECT_EQ(::sigaction(numbers[i], &ignored, &before[i]), 0);
  }
  with_ignored_signals(const with_ignored_signals&) = delete;
  ~with_ignored_signals() {
    for (std::size_t i = 0; i != numbers.size(); ++i) ::sigaction(numbers[i], &before[i], nullptr);
  }
  static void expect_ignored() {
    for (const int number : numbers) EXPECT_EQ(handler_of(number), SIG_IGN) << number;
  }
  void check(std::error_code failed) const {
    scenario::check(failed);
    expect_ignored();  // the handlers of before are back
  }
};

template <class By>
struct hears_signals : with_ignored_signals {
  static constexpr std::array those{call::fcntl, call::epoll_ctl};
  std::atomic<int> got = 0;

  part<By> takes(const signals& of) {
    for (int i = 0; i != 2; ++i) got += co_await of.next() == SIGUSR1 ? 1 : 0;
  }
  part<By> sends() {
    send(SIGUSR1);                        // before it is waited for, perhaps
    while (got == 0) co_await breathe();  // two that come before the first is taken are one
    send(SIGUSR1);
  }
  part<By> run() {
    const auto hear = []() -> task<signals> {
      expect_ignored();  // also behind a failure
      co_return signals{SIGUSR1};
    };
    const signals of = co_await again<By>(*this, hear);
    co_await together(takes(of), sends());
  }
  void check(std::error_code failed) const {
    with_ignored_signals::check(failed);
    EXPECT_EQ(got, 2);
  }
};
TEST_P(serve_faults, of_signals) { sweep_faults<hears_signals>(GetParam()); }

template <class By>
struct is_interrupted : with_ignored_signals {
  static constexpr std::array those{call::fcntl, call::epoll_ctl};
  int number = 0;

  part<By> waits() {
    const auto wait = [] { return weft::interrupted(); };
    number = co_await again<By>(*this, wait);
  }
  part<By> sends() {
    while (handler_of(SIGTERM) == SIG_IGN) co_await breathe();
    send(SIGTERM);
  }
  part<By> run() { co_await together(waits(), sends()); }
  void check(std::error_code failed) const {
    with_ignored_signals::check(failed);
    EXPECT_EQ(number, SIGTERM);
  }
};
TEST_P(serve_faults, of_interrupted) { sweep_faults<is_interrupted>(GetParam()); }

// The process has one eventfd for all signals, which is made once: so this is a process of its own.
TEST(serve_faults_of_signals, leave_the_next_one_to_be_heard_where_there_is_no_eventfd) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto tries = [] {
    {
      const test::injection fails{{call::eventfd, {EMFILE, ENFILE}}, 0};
      const auto first = weft::sync_wait(as_result(weft::interrupted()));
      if (first.error() != std::errc::too_many_files_open) std::_Exit(1);
      try {
        const signals of{SIGUSR1};
        std::_Exit(2);
      } catch (const weft::error& failure) {
        if (failure.code() != std::errc::too_many_files_open_in_system) std::_Exit(3);
      }
      if (fails.struck() != 2) std::_Exit(4);
      if (handler_of(SIGUSR1) != SIG_DFL) std::_Exit(5);
    }
    const signals of{SIGUSR1};
    send(SIGUSR1);
    std::_Exit(weft::sync_wait(of.next()) == SIGUSR1 ? 0 : 6);
  };
  EXPECT_EXIT(tries(), testing::ExitedWithCode(0), "");
}

}  // namespace
