// Servers: on real sockets in runtimes, and in virtual time on Unix sockets, where what they do is exact. See weft/serve.hpp.
#include <weft/serve.hpp>

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <exception>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>
#include <weft/combine.hpp>
#include <weft/race.hpp>
#include <weft/runtime.hpp>
#include <weft/scope.hpp>
#include <weft/select.hpp>
#include <weft/test.hpp>
#include <weft/timed.hpp>

#include "net/sockets.hpp"
#include "support/weft_test.hpp"

namespace {

using namespace std::chrono_literals;
using test::anywhere;
using test::read_all;
using weft::as_result;
using weft::result;
using weft::scope;
using weft::sleep_for;
using weft::task;
using weft::net::draining;
using weft::net::endpoint;
using weft::net::listener;
using weft::net::serve;
using weft::net::server_stats;
using weft::net::stream;
using weft::test::elapsed;

task<> echo(stream peer) {
  std::array<std::byte, 512> buffer;
  while (const std::size_t size = co_await peer.read(buffer)) co_await peer.write(std::span{buffer}.first(size));
}

// Answers each byte after three seconds, and takes draining as the end between two of them.
task<> answer_slowly(stream peer) {
  std::array<std::byte, 1> request;
  for (;;) {
    const auto next = co_await weft::select(weft::on(peer.read(request)), weft::on(draining()));
    if (next.index == 1 || std::get<0>(next.value) == 0) co_return;
    co_await sleep_for(3s);
    co_await peer.write("answer");
  }
}

task<std::string> ask(endpoint where, std::string_view question) {
  const stream to = co_await weft::net::connect(where);
  co_await to.write(question);
  to.shutdown();
  co_return co_await read_all(to);
}

// A listener on a Unix socket, to which one connects without a wait.
class local_listener {
 public:
  local_listener() {
    const int number = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    name_.sun_family = AF_UNIX;  // a name that the system chooses
    EXPECT_EQ(::bind(number, any(), sizeof(sa_family_t)), 0);
    EXPECT_EQ(::listen(number, 100), 0);
    size_ = sizeof name_;
    EXPECT_EQ(::getsockname(number, any(), &size_), 0);
    number_ = number;
    at_ = listener::adopt(number);
  }
  listener take() noexcept { return std::move(at_); }
  int number() const noexcept { return number_; }
  stream connect() {
    const int number = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    EXPECT_EQ(::connect(number, any(), size_), 0);
    return stream::adopt(number);
  }

 private:
  sockaddr* any() noexcept { return reinterpret_cast<sockaddr*>(&name_); }
  sockaddr_un name_{};
  socklen_t size_ = 0;
  int number_ = -1;
  listener at_;
};

// Waits for what another task does; a failure after far more time than that takes.
template <class Holds>
task<> comes_true(Holds holds) {
  for (int i = 0; !holds(); ++i) {
    if (i == 600'000) {
      ADD_FAILURE() << "it has not come";
      co_return;
    }
    co_await sleep_for(100us);
  }
}

// ---- on real sockets ------------------------------------------------------------------------------------------------------

task<int> ask_many(server_stats& stats, int clients, int questions) {
  listener at = co_await weft::net::listen(anywhere);
  const endpoint where = at.local();
  const auto asks = [&]() -> task<int> {
    int right = 0;
    for (int i = 0; i != questions; ++i) {
      std::vector<task<std::string>> those;
      for (int one = 0; one != clients; ++one) those.push_back(ask(where, "question"));
      for (const std::string& answer : co_await weft::when_all(std::move(those))) right += answer == "question" ? 1 : 0;
    }
    co_return right;
  };
  auto both = weft::when_any(serve({.stats = &stats}, std::move(at), echo), asks());
  const auto ended = co_await std::move(both);
  co_return std::get<1>(ended.value);
}

TEST(serve, serves_in_a_runtime_on_either_back_end_and_elsewhere) {
  const int questions = test::rounds(10);
  const auto counts = [&](const server_stats& stats) {
    EXPECT_EQ(stats.accepted(), 8U * static_cast<unsigned>(questions));
    EXPECT_EQ(stats.active(), 0U);
    EXPECT_EQ(stats.failures() + stats.peer_errors() + stats.rejected() + stats.cut() + stats.idle(), 0U);
  };
  for (const weft::io_backend by : {weft::io_backend::automatic, weft::io_backend::epoll})
    for (const unsigned threads : {1U, 2U}) {
      weft::runtime rt{{.threads = threads, .io = by}};
      server_stats stats;
      EXPECT_EQ(rt.run(ask_many(stats, 8, questions)), 8 * questions);
      EXPECT_EQ(rt.stats().watched, 0U);
      counts(stats);
    }
  server_stats stats;
  EXPECT_EQ(weft::sync_wait(ask_many(stats, 8, questions)), 8 * questions);
  counts(stats);
}

// It is told to stop while clients come and go: each that was accepted has its answer.
task<> stops_under_load(server_stats& stats, std::atomic<std::uint64_t>& answered) {
  listener at = co_await weft::net::listen(anywhere);
  const endpoint where = at.local();
  const auto asks = [&]() -> task<> {
    for (;;) {
      auto asking = ask(where, "question");
      const auto answer = co_await as_result(std::move(asking));
      if (answer.error()) co_return;  // it is not there any more
      EXPECT_EQ(*answer, "question");
      ++answered;
    }
  };
  const auto body = [&](scope& inside) -> task<> {
    auto serving = inside.fork(as_result(serve({.grace = 10min, .stats = &stats}, std::move(at), echo)));
    for (int i = 0; i != 8; ++i) inside.fork(asks());
    co_await comes_true([&] { return stats.accepted() >= 50; });
    serving.request_stop();
    const auto how = co_await std::move(serving);
    EXPECT_TRUE(how.is_stopped());
  };
  co_await weft::with_scope(body);
}

TEST(serve, answers_all_that_it_has_accepted_when_it_is_stopped) {
  for (const weft::io_backend by : {weft::io_backend::automatic, weft::io_backend::epoll})
    for (const unsigned threads : {1U, 2U}) {
      weft::runtime rt{{.threads = threads, .io = by}};
      server_stats stats;
      std::atomic<std::uint64_t> answered{0};
      rt.run(stops_under_load(stats, answered));
      EXPECT_EQ(answered, stats.accepted());
      EXPECT_EQ(stats.cut() + stats.failures() + stats.peer_errors(), 0U);
    }
}

// A reset ends its own connection, is counted, and is nobody's failure.
TEST(serve, counts_peers_that_reset) {
  static std::atomic<int> told;
  told = 0;
  const auto body = [](server_stats& stats) -> task<> {
    listener at = co_await weft::net::listen(anywhere);
    const endpoint where = at.local();
    const auto resets = [&]() -> task<> {
      for (std::uint64_t i = 0; i != 5; ++i) {
        stream to = co_await weft::net::connect(where);
        co_await to.write("x");
        std::array<std::byte, 1> buffer;
        co_await to.read(buffer);  // it is served
        const linger at_once{.l_onoff = 1, .l_linger = 0};
        EXPECT_EQ(::setsockopt(to.native_handle(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once), 0);
        to = {};
        co_await comes_true([&] { return stats.peer_errors() == i + 1; });
      }
      EXPECT_EQ(co_await ask(where, "still there"), "still there");
    };
    const auto notes = [](const endpoint&, const std::exception_ptr&) { ++told; };
    auto both = weft::when_any(serve({.on_error = notes, .stats = &stats}, std::move(at), echo), resets());
    co_await std::move(both);
  };
  server_stats stats;
  weft::run(body(stats));
  EXPECT_EQ(stats.accepted(), 6U);
  EXPECT_EQ(stats.peer_errors(), 5U);
  EXPECT_EQ(stats.failures(), 0U);
  EXPECT_EQ(told, 0);
}

TEST(serve, tells_what_a_handler_fails_with_and_goes_on) {
  static std::atomic<int> lost;
  const auto body = [](bool by_option) -> task<> {
    lost = 0;
    listener at = co_await weft::net::listen(anywhere);
    const endpoint where = at.local();
    std::vector<std::string> told;
    auto tells = [&](const endpoint& peer, const std::exception_ptr& failure) {
      EXPECT_EQ(peer.address(), "127.0.0.1");
      EXPECT_NE(peer.port(), 0);
      try {
        std::rethrow_exception(failure);
      } catch (const std::exception& known) {
        told.push_back(known.what());
      }
    };
    const auto handles = [](stream peer) -> task<> {
      std::array<std::byte, 1> first;
      co_await peer.read(first);
      if (first[0] == std::byte{'x'}) throw std::runtime_error{"the handler has failed"};
      co_await peer.write(first);
    };
    const auto asks = [&]() -> task<> {
      EXPECT_EQ(co_await ask(where, "x"), "");
      EXPECT_EQ(co_await ask(where, "a"), "a");
    };
    server_stats stats;
    weft::net::serve_options options{.stats = &stats};
    if (by_option) options.on_error = tells;
    auto both = weft::when_any(serve(options, std::move(at), handles), asks());
    co_await std::move(both);
    EXPECT_EQ(stats.failures(), 1U);
    EXPECT_EQ(stats.peer_errors(), 0U);
    EXPECT_EQ(told, by_option ? std::vector<std::string>{"the handler has failed"} : std::vector<std::string>{});
  };
  const auto before = weft::set_lost_error_handler([](const char* operation, const std::exception_ptr&) noexcept {
    EXPECT_STREQ(operation, "serve a connection");
    ++lost;
  });
  weft::runtime rt{{.threads = 1}};
  rt.run(body(true));
  EXPECT_EQ(lost, 0);
  rt.run(body(false));
  EXPECT_EQ(lost, 1);
  weft::set_lost_error_handler(before);
}

std::atomic<int> told_of_failures{0};
void count_failure(const endpoint&, const std::exception_ptr&) { ++told_of_failures; }

// Of a function, a pointer to one, or another one, of which it is a copy: not what refers to it.
TEST(serve, takes_functions_and_copies_as_on_error) {
  using weft::net::connection_error_handler;
  told_of_failures = 0;
  connection_error_handler copy;
  {
    void (*pointer)(const endpoint&, const std::exception_ptr&) = count_failure;
    connection_error_handler by_pointer{pointer}, by_address{&count_failure}, by_name{count_failure};
    by_address(endpoint{}, nullptr);
    by_name(endpoint{}, nullptr);
    connection_error_handler copied{by_pointer};
    copy = copied;
    pointer = nullptr;
    by_pointer = {};
    copied(endpoint{}, nullptr);
  }
  copy(endpoint{}, nullptr);
  EXPECT_EQ(told_of_failures, 4);
}

// ---- in virtual time ------------------------------------------------------------------------------------------------------

// Runs `server` for so long, then has it stopped. Gives whether it ended stopped.
task<bool> stopped_after(std::chrono::nanoseconds limit, task<> server) {
  bool is_stopped = false;
  const auto serves = [&]() -> task<> {
    const auto how = co_await as_result(std::move(server));
    is_stopped = how.is_stopped();
  };
  auto both = weft::when_any(serves(), sleep_for(limit));
  co_await std::move(both);
  co_return is_stopped;
}

TEST(serve, stops_at_once_where_nobody_is_there) {
  weft::test::run([]() -> task<> {
    local_listener at;
    EXPECT_TRUE(co_await stopped_after(5s, serve(at.take(), echo)));
    EXPECT_EQ(elapsed(), 5s);
  });
}

TEST(serve, lets_handlers_end_that_hear_of_draining) {
  weft::test::run([]() -> task<> {
    local_listener at;
    const stream client = at.connect();
    server_stats stats;
    EXPECT_TRUE(co_await stopped_after(5s, serve({.stats = &stats}, at.take(), answer_slowly)));
    EXPECT_EQ(elapsed(), 5s);
    EXPECT_EQ(stats.accepted(), 1U);
    EXPECT_EQ(stats.cut(), 0U);
    EXPECT_EQ(co_await read_all(client), "");
  });
}

TEST(serve, answers_requests_that_are_under_way) {
  weft::test::run([]() -> task<> {
    local_listener at;
    const stream client = at.connect();
    co_await client.write("x");
    server_stats stats;
    EXPECT_TRUE(co_await stopped_after(1s, serve({.stats = &stats}, at.take(), answer_slowly)));
    EXPECT_EQ(elapsed(), 3s);
    EXPECT_EQ(stats.cut(), 0U);
    EXPECT_EQ(co_await read_all(client), "answer");
  });
}

TEST(serve, stops_handlers_after_the_grace) {
  weft::test::run([]() -> task<> {
    local_listener at;
    const stream one = at.connect(), other = at.connect();
    server_stats stats;
    EXPECT_TRUE(co_await stopped_after(1s, serve({.grace = 4s, .stats = &stats}, at.take(), echo)));
    EXPECT_EQ(elapsed(), 5s);
    EXPECT_EQ(stats.cut(), 2U);
    EXPECT_EQ(stats.active(), 0U);
    EXPECT_EQ(stats.failures() + stats.peer_errors(), 0U);
  });
}

TEST(serve, gives_no_grace_where_there_is_none) {
  weft::test::run([]() -> task<> {
    local_listener at;
    const stream client = at.connect();
    server_stats stats;
    EXPECT_TRUE(co_await stopped_after(1s, serve({.grace = 0s, .stats = &stats}, at.take(), echo)));
    EXPECT_EQ(elapsed(), 1s);
    EXPECT_EQ(stats.cut(), 1U);
  });
}

TEST(serve, closes_its_listener_first) {
  weft::test::run([]() -> task<> {
    local_listener at;
    const int number = at.number();
    const auto handles = [number](stream) -> task<> {
      EXPECT_FALSE(weft::net::is_draining());
      co_await draining();
      EXPECT_TRUE(weft::net::is_draining());
      EXPECT_EQ(::fcntl(number, F_GETFD), -1);
    };
    const stream client = at.connect();
    server_stats stats;
    EXPECT_TRUE(co_await stopped_after(1s, serve({.stats = &stats}, at.take(), handles)));
    EXPECT_EQ(stats.accepted(), 1U) << "its handler has looked at nothing";
    EXPECT_EQ(stats.cut(), 0U);
  });
}

TEST(serve, is_told_of_draining_in_what_a_handler_forks) {
  weft::test::run([]() -> task<> {
    local_listener at;
    int told = 0;
    const auto waits = [&]() -> task<> {
      co_await draining();
      ++told;
    };
    const auto handles = [&](stream) -> task<> {
      const auto body = [&](scope& inside) -> task<> {
        inside.fork(waits());
        co_await waits();
      };
      co_await weft::with_scope(body);
    };
    const stream client = at.connect();
    co_await stopped_after(1s, serve(at.take(), handles));
    EXPECT_EQ(told, 2);
    EXPECT_EQ(elapsed(), 1s);
    const auto never = co_await as_result(weft::timeout(1h, draining()));
    EXPECT_EQ(never.error(), weft::errc::timed_out) << "outside of a server";
    EXPECT_FALSE(weft::net::is_draining());
  });
}

TEST(serve, has_no_more_connections_than_it_may) {
  weft::test::run([]() -> task<> {
    local_listener at;
    std::vector<stream> clients;
    for (int i = 0; i != 7; ++i) clients.push_back(at.connect());
    int now = 0, most = 0;
    const auto handles = [&](stream) -> task<> {
      most = std::max(most, ++now);
      co_await sleep_for(1s);
      --now;
    };
    server_stats stats;
    EXPECT_TRUE(co_await stopped_after(10s, serve({.max_connections = 2, .stats = &stats}, at.take(), handles)));
    EXPECT_EQ(most, 2);
    EXPECT_EQ(stats.accepted(), 7U);
  });
}

TEST(serve, stops_handlers_of_idle_connections) {
  weft::test::run([]() -> task<> {
    local_listener at;
    const stream client = at.connect();
    const auto talks = [&]() -> task<> {
      for (int i = 0; i != 5; ++i) {
        co_await sleep_for(3s);
        co_await client.write("x");
      }
      const auto silent_since = elapsed();
      co_await read_all(client);  // up to the end, which is the server's
      EXPECT_GE(elapsed() - silent_since, 4s);
      EXPECT_LE(elapsed() - silent_since, 5s);
    };
    server_stats stats;
    auto server = serve({.idle_timeout = 4s, .stats = &stats}, at.take(), echo);
    co_await weft::when_any(std::move(server), talks());
    EXPECT_EQ(stats.idle(), 1U);
    EXPECT_EQ(stats.peer_errors() + stats.failures(), 0U);
  });
}

// Where a handler has let go of its connection, the one that has the descriptor by then is not idle, either.
TEST(serve, does_not_take_another_connections_activity) {
  weft::test::run([]() -> task<> {
    local_listener at;
    stream* of_first = nullptr;
    bool ended = false;
    const auto handles = [&](stream peer) -> task<> {
      if (of_first == nullptr) {
        of_first = &peer;
        co_await sleep_for(1min);
        ended = true;
      } else {
        co_await echo(std::move(peer));
      }
    };
    const auto talks = [&]() -> task<> {
      const stream first = at.connect();
      co_await sleep_for(
          500ms);  // so that the first one's looks are between bytes of the second one and that one's looks
      const stream second = at.connect();
      *of_first = {};  // before the server accepts the second one, which has that descriptor then
      for (int i = 0; i != 30; ++i) {
        co_await sleep_for(3100ms);
        co_await second.write("x");
        std::array<std::byte, 1> answer;
        auto reading = as_result(second.read(answer));
        const auto got = co_await std::move(reading);
        EXPECT_TRUE(got.has_value() && *got == 1) << "after " << i;
      }
    };
    server_stats stats;
    auto listening = at.take();
    auto server = serve({.idle_timeout = 4s, .stats = &stats}, std::move(listening), handles);
    co_await weft::when_any(std::move(server), talks());
    EXPECT_TRUE(ended);
    EXPECT_EQ(stats.accepted(), 2U);
    EXPECT_EQ(stats.idle(), 0U);
  });
}

// A handler that has let go of its connection is not idle, whoever has that descriptor by then.
TEST(serve, does_not_take_another_connection_for_its_own) {
  weft::test::run([]() -> task<> {
    local_listener at;
    const stream client = at.connect();
    bool ended = false;
    const auto handles = [&](stream peer) -> task<> {
      peer = {};
      co_await sleep_for(1min);
      ended = true;
    };
    server_stats stats;
    co_await stopped_after(2min, serve({.idle_timeout = 4s, .stats = &stats}, at.take(), handles));
    EXPECT_TRUE(ended);
    EXPECT_EQ(stats.idle(), 0U);
  });
}

// As many descriptors as there are now, and some.
class few_descriptors {
 public:
  explicit few_descriptors(unsigned more) {
    EXPECT_EQ(::getrlimit(RLIMIT_NOFILE, &before_), 0);
    const int next = ::dup(STDERR_FILENO);
    ::close(next);
    rlimit few = before_;
    few.rlim_cur = static_cast<rlim_t>(next) + more;
    EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
  }
  few_descriptors(const few_descriptors&) = delete;
  ~few_descriptors() { EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &before_), 0); }

 private:
  rlimit before_{};
};

// With a backlog, and no descriptor for it, it looks again after 5, 10, 20, … ms, and then once a second; and at once when a
// connection of its own has ended.
TEST(serve, pauses_where_there_is_no_descriptor) {
  weft::test::run([]() -> task<> {
    local_listener at;
    const stream one = at.connect(), other = at.connect();
    const few_descriptors limited{1};
    server_stats stats;
    const auto looks = [&]() -> task<> {
      co_await sleep_for(100s);
      EXPECT_EQ(stats.accepted(), 1U);
      EXPECT_GE(stats.pauses(), 90U);
      EXPECT_LE(stats.pauses(), 110U);
      co_await sleep_for(1ms);
      one.shutdown();
      std::array<std::byte, 1> end;
      EXPECT_EQ(co_await one.read(end), 0U);
      co_await other.write("x");
      EXPECT_EQ(co_await other.read(end), 1U);
      EXPECT_EQ(elapsed(), 100s + 1ms);
      EXPECT_EQ(stats.accepted(), 2U);
      EXPECT_EQ(stats.rejected(), 0U);
    };
    auto server = serve({.stats = &stats}, at.take(), echo);
    co_await weft::when_any(std::move(server), looks());
  });
}

TEST(serve, fails_where_its_listener_does_but_drains_first) {
  weft::test::run([]() -> task<> {
    local_listener at;
    const stream client = at.connect();
    co_await client.write("x");
    const auto breaks = [](int number) -> task<> {
      co_await sleep_for(1s);
      EXPECT_EQ(::shutdown(number, SHUT_RDWR), 0);
    };
    auto both = weft::when_all(serve(at.take(), answer_slowly), breaks(at.number()));
    const auto how = co_await as_result(std::move(both));
    EXPECT_EQ(how.error(), std::errc::invalid_argument);
    EXPECT_EQ(elapsed(), 3s);
    EXPECT_EQ(co_await read_all(client), "answer");
  });
}

TEST(serve, fails_without_a_listener) {
  weft::test::run([]() -> task<> {
    auto serving = serve(listener{}, echo);
    const auto how = co_await as_result(std::move(serving));
    EXPECT_EQ(how.error(), weft::errc::closed);
    EXPECT_EQ(elapsed(), 0s);
  });
}

TEST(serve_death, by_options_that_make_no_sense) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(static_cast<void>(serve({.max_connections = 0}, listener{}, echo)), "could serve nobody");
  EXPECT_DEATH(static_cast<void>(serve({.idle_timeout = 0s}, listener{}, echo)), "an idle_timeout that is no time");
  EXPECT_DEATH(static_cast<void>(serve({.grace = -1s}, listener{}, echo)), "a grace below zero");
}

}  // namespace
