// Servers: on real sockets in runtimes, and in virtual time on Unix sockets, where what they do is exact. See weft/serve.hpp.
//
// Long because each limit, and each kind of client, is a scene of its own.
#include <weft/serve.hpp>

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <ctime>
#include <exception>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>
#include <weft/combine.hpp>
#include <weft/io.hpp>
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

// The same with clients that ask again and again by one connection: what the server has taken as a request, it answers.
struct requests {
  std::atomic<std::uint64_t> taken{0}, answered{0};
};
task<> answer_lines(stream peer, requests& of) {
  weft::io::buffered_reader in{peer};
  for (;;) {
    std::optional<std::string> line;
    const auto reads = [&]() -> task<> { line = co_await in.read_line(); };
    auto either = weft::when_any(reads(), draining());
    co_await std::move(either);
    if (!line) co_return;
    ++of.taken;
    co_await peer.write("answer to " + *line + "\n");
  }
}
task<> ask_lines(endpoint where, requests& of) {
  const stream to = co_await weft::net::connect(where);
  weft::io::buffered_reader in{to};
  for (int i = 0;; ++i) {
    const std::string question = std::to_string(i);
    const std::string line = question + "\n";
    auto asking = as_result(to.write(line));
    const auto sent = co_await std::move(asking);
    if (sent.error()) co_return;
    auto reading = as_result(in.read_line());
    const auto answer = co_await std::move(reading);
    if (answer.error() || !*answer) co_return;
    EXPECT_EQ(**answer, "answer to " + question);
    ++of.answered;
  }
}
TEST(serve, answers_each_request_that_it_has_taken_when_it_is_stopped) {
  const auto body = [](requests& of, server_stats& stats) -> task<> {
    listener at = co_await weft::net::listen(anywhere);
    const endpoint where = at.local();
    const auto inside = [&](scope& s) -> task<> {
      const auto answers = [&](stream peer) { return answer_lines(std::move(peer), of); };
      auto serving = s.fork(as_result(serve({.grace = 10min, .stats = &stats}, std::move(at), answers)));
      for (int i = 0; i != 8; ++i) s.fork(ask_lines(where, of));
      co_await comes_true([&] { return of.answered >= 100 && stats.accepted() == 8; });
      serving.request_stop();
      const auto how = co_await std::move(serving);
      EXPECT_TRUE(how.is_stopped());
    };
    co_await weft::with_scope(inside);
  };
  for (const weft::io_backend by : {weft::io_backend::automatic, weft::io_backend::epoll})
    for (const unsigned threads : {1U, 2U}) {
      weft::runtime rt{{.threads = threads, .io = by}};
      server_stats stats;
      requests of;
      rt.run(body(of, stats));
      EXPECT_GE(of.taken, 100U);
      EXPECT_EQ(of.taken, of.answered);
      EXPECT_EQ(stats.cut() + stats.failures() + stats.peer_errors(), 0U);
    }
}

TEST(serve, accepts_from_several_listeners_on_one_port) {
  const auto body = [](server_stats& stats, int questions) -> task<int> {
    auto many = weft::net::listen_many({}, anywhere, 3);
    std::vector<listener> at = co_await std::move(many);
    const endpoint where = at.front().local();
    for (const listener& one : at) EXPECT_EQ(one.local(), where);
    const auto asks = [&]() -> task<int> {
      int right = 0;
      for (int i = 0; i != questions; ++i) {
        std::vector<task<std::string>> those;
        for (int one = 0; one != 8; ++one) those.push_back(ask(where, "question"));
        for (const std::string& answer : co_await weft::when_all(std::move(those))) right += answer == "question";
      }
      co_return right;
    };
    // Fewer places than listeners: none keeps one while nobody comes.
    auto both = weft::when_any(serve({.max_connections = 2, .stats = &stats}, std::move(at), echo), asks());
    const auto ended = co_await std::move(both);
    co_return std::get<1>(ended.value);
  };
  const int questions = test::rounds(10);
  for (const weft::io_backend by : {weft::io_backend::automatic, weft::io_backend::epoll})
    for (const unsigned threads : {1U, 2U}) {
      weft::runtime rt{{.threads = threads, .io = by}};
      server_stats stats;
      EXPECT_EQ(rt.run(body(stats, questions)), 8 * questions);
      EXPECT_EQ(stats.accepted(), 8U * static_cast<unsigned>(questions));
      EXPECT_EQ(rt.stats().watched, 0U);
    }
}

TEST(listen_many, fails_where_somebody_listens_who_does_not_share) {
  weft::run([]() -> task<> {
    const listener alone = co_await weft::net::listen(anywhere);
    auto many = weft::net::listen_many({}, alone.local(), 2);
    const auto how = co_await as_result(std::move(many));
    EXPECT_EQ(how.error(), std::errc::address_in_use);
  }());
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

// Says at once what it was sent, once its client has said hello.
task<> echo_behind_hello(stream peer) {
  std::array<std::byte, 1> hello;
  if (co_await peer.read(hello) == 0) co_return;
  weft::net::handshake_done();
  co_await echo(std::move(peer));
}

TEST(serve, stops_handlers_whose_peers_do_not_show_themselves) {
  weft::test::run([]() -> task<> {
    local_listener at;
    const stream silent = at.connect(), shown = at.connect();
    server_stats stats;
    const auto talks = [&]() -> task<> {
      co_await sleep_for(4s);
      co_await shown.write("h");
      EXPECT_EQ(co_await read_all(silent), "");
      EXPECT_EQ(elapsed(), 5s);
      co_await sleep_for(1h);
      co_await shown.write("x");
      std::array<std::byte, 1> answer;
      EXPECT_EQ(co_await shown.read(answer), 1U);
    };
    auto server = serve({.handshake_timeout = 5s, .stats = &stats}, at.take(), echo_behind_hello);
    co_await weft::when_any(std::move(server), talks());
    EXPECT_EQ(stats.late(), 1U);
    EXPECT_EQ(stats.peer_errors(), 1U);
    EXPECT_EQ(stats.failures() + stats.slow() + stats.idle(), 0U);
    weft::net::handshake_done();  // outside of a server: nothing
  });
}

TEST(serve, hears_of_a_handshake_in_what_a_handler_forks) {
  weft::test::run([]() -> task<> {
    local_listener at;
    const stream client = at.connect();
    bool ended = false;
    const auto handles = [&](stream) -> task<> {
      const auto shows = []() -> task<> {
        co_await sleep_for(1s);
        weft::net::handshake_done();
      };
      const auto body = [&](scope& inside) -> task<> { co_await inside.fork(shows()); };
      co_await weft::with_scope(body);
      co_await sleep_for(1min);
      ended = true;
    };
    server_stats stats;
    co_await stopped_after(2min, serve({.handshake_timeout = 2s, .stats = &stats}, at.take(), handles));
    EXPECT_TRUE(ended);
    EXPECT_EQ(stats.late(), 0U);
  });
}

// How one that sends `piece` each `every` ends, after how long, at 100 bytes a second in windows of 10 s; 1 h: it has not.
task<std::chrono::nanoseconds> lasts(std::string piece, std::chrono::nanoseconds every, server_stats& stats) {
  local_listener at;
  const stream client = at.connect();
  const auto begun = elapsed();
  const auto drips = [&]() -> task<> {
    for (;;) {
      co_await sleep_for(every);
      auto writing = as_result(client.write(piece));
      const auto sent = co_await std::move(writing);
      if (sent.error() || elapsed() - begun >= 1h) co_return;
    }
  };
  const auto swallows = [](stream peer) -> task<> { co_await read_all(peer); };
  auto server = serve({.min_rate = 100, .rate_window = 10s, .grace = 0s, .stats = &stats}, at.take(), swallows);
  co_await weft::when_any(std::move(server), drips());
  co_return elapsed() - begun;
}

TEST(serve, stops_handlers_of_connections_that_drip) {
  weft::test::run([]() -> task<> {
    server_stats fast, slow, seldom, never;
    EXPECT_GE(co_await lasts(std::string(110, 'x'), 1s, fast), 1h);
    EXPECT_EQ(fast.slow() + fast.peer_errors(), 0U);
    const auto dripped = co_await lasts("x", 1s, slow);
    EXPECT_GE(dripped, 10s);
    EXPECT_LE(dripped, 15s);
    EXPECT_EQ(slow.slow(), 1U);
    EXPECT_EQ(slow.peer_errors(), 1U);
    EXPECT_EQ(slow.failures(), 0U);
    // A byte, then silence for far longer than a window.
    EXPECT_LE(co_await lasts("x", 1min, seldom), 3min);
    EXPECT_EQ(seldom.slow(), 1U);
    EXPECT_GE(co_await lasts("x", 2h, never), 1h) << "a silence is no slow connection";
    EXPECT_EQ(never.slow(), 0U);
  });
}

// A few bytes, and an answer that takes a minute: it is not the peer that is slow.
TEST(serve, does_not_take_its_own_work_for_a_slow_peer) {
  weft::test::run([]() -> task<> {
    local_listener at;
    const stream client = at.connect();
    const auto works = [](stream peer) -> task<> {
      std::array<std::byte, 16> request;
      while (co_await peer.read(request) != 0) {
        co_await sleep_for(1min);
        co_await peer.write(std::string(2000, 'x'));
      }
    };
    server_stats stats;
    const auto asks = [&]() -> task<> {
      for (int i = 0; i != 10; ++i) {
        co_await client.write("request");
        EXPECT_EQ((co_await test::read_exactly(client, 2000)).size(), 2000U);
      }
    };
    auto server = serve({.min_rate = 100, .stats = &stats}, at.take(), works);
    co_await weft::when_any(std::move(server), asks());
    EXPECT_EQ(stats.slow(), 0U);
  });
}

// One that does not read what it is sent is slow, too, and a silence of all its peers is for .idle_timeout.
TEST(serve, stops_handlers_whose_peers_read_in_drips) {
  weft::test::run([]() -> task<> {
    local_listener at;
    const stream client = at.connect();
    client.set_receive_buffer(4096);
    const auto sends = [](stream peer) -> task<> {
      peer.set_send_buffer(4096);
      const std::string much(1'000'000, 'x');
      for (;;) co_await peer.write(much);
    };
    server_stats stats;
    const auto drinks = [&]() -> task<> {
      std::array<std::byte, 100> sip;
      for (;;) {
        co_await sleep_for(1s);
        auto reading = as_result(client.read(sip));
        const auto got = co_await std::move(reading);
        if (got.error() || *got == 0 || stats.slow() != 0) co_return;
      }
    };
    auto server = serve({.min_rate = 100'000, .stats = &stats}, at.take(), sends);
    co_await weft::when_any(std::move(server), drinks());
    EXPECT_EQ(stats.slow(), 1U);
  });
}

// Clients of each hostile kind beside good ones, each of which gets its answers.
TEST(serve, goes_on_under_hostile_clients) {
  weft::test::run([]() -> task<> {
    constexpr int each = 18;  // all fit into the backlog, since a local connect would block
    local_listener at;
    server_stats stats;
    int told = 0, right = 0;
    auto notes = [&](const endpoint&, const std::exception_ptr& failure) {
      ++told;
      EXPECT_EQ(weft::detail::code_of(failure), std::errc::message_size);
    };
    const auto answers = [](stream peer) -> task<> {
      weft::io::buffered_reader in{peer};
      for (;;) {
        const std::optional<std::string> line = co_await in.read_line(100);
        if (!line) co_return;
        weft::net::handshake_done();
        co_await peer.write(*line + "\n");
      }
    };
    const auto until_it_ends = [](const stream& one) -> task<> {
      auto reading = as_result(read_all(one));
      static_cast<void>(co_await std::move(reading));
    };
    const auto silent = [&]() -> task<> {
      const stream one = at.connect();
      co_await until_it_ends(one);
    };
    const auto drips = [&]() -> task<> {
      const stream one = at.connect();
      co_await one.write("\n");  // shows itself
      for (;;) {
        co_await sleep_for(1s);
        auto writing = as_result(one.write("x"));
        const auto sent = co_await std::move(writing);
        if (sent.error()) co_return;
      }
    };
    const auto garbage = [&]() -> task<> {
      const stream one = at.connect();
      const std::string much(5000, '\xff');
      auto writing = as_result(one.write(much));
      static_cast<void>(co_await std::move(writing));
      co_await until_it_ends(one);
    };
    const auto resets = [&]() -> task<> {
      stream one = at.connect();
      co_await one.write("question\n");
      co_await sleep_for(1s);
      one = {};  // with an answer that was not read, that is a reset
    };
    const auto good = [&]() -> task<> {
      const stream one = at.connect();
      for (int i = 0; i != 20; ++i) {
        co_await one.write("a good question\n");
        right += co_await test::read_exactly(one, 16) == "a good question\n";
        co_await sleep_for(100ms);
      }
    };
    std::vector<task<>> all;
    for (int i = 0; i != each; ++i) {
      all.push_back(silent());
      all.push_back(drips());
      all.push_back(garbage());
      all.push_back(resets());
      all.push_back(good());
    }
    const auto clients = [&]() -> task<> {
      co_await weft::when_all(std::move(all));
      co_await sleep_for(1s);
      EXPECT_EQ(stats.active(), 0U);
    };
    weft::net::serve_options options{.max_connections = 5 * each,
                                     .handshake_timeout = 5s,
                                     .min_rate = 20,
                                     .rate_window = 5s,
                                     .on_error = notes,
                                     .stats = &stats};
    auto server = serve(options, at.take(), answers);
    const auto ended = co_await weft::when_any(std::move(server), clients());
    EXPECT_EQ(ended.index, 1U) << "the server has ended";
    EXPECT_EQ(right, 20 * each);
    EXPECT_EQ(stats.accepted(), 5U * each);
    EXPECT_EQ(stats.late(), std::uint64_t{each});
    EXPECT_EQ(stats.slow(), std::uint64_t{each});
    EXPECT_EQ(stats.failures(), std::uint64_t{each});
    EXPECT_EQ(told, each);
    EXPECT_EQ(stats.peer_errors(), std::uint64_t{3 * each}) << "late, slow and resetting ones";
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

task<> lasts_a_minute() { co_await sleep_for(1min); }

// The same by a handler that is no coroutine, and gives its descriptor back where it is called.
TEST(serve, does_not_take_another_connection_for_one_that_a_plain_function_has_dropped) {
  weft::test::run([]() -> task<> {
    local_listener at;
    bool is_first = true;
    const auto handles = [&](stream peer) -> task<> {
      if (!std::exchange(is_first, false)) return echo(std::move(peer));
      peer = {};
      return lasts_a_minute();
    };
    const auto talks = [&]() -> task<> {
      stream spare = test::connected().here;
      const stream first = at.connect();
      co_await sleep_for(500ms);
      spare = {};  // the second one has its descriptor here, and so that of the first one there
      const stream second = at.connect();
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
    EXPECT_EQ(stats.accepted(), 2U);
    EXPECT_EQ(stats.idle(), 0U);
  });
}

// What a handler fails with when it is stopped is told, beside what it was stopped for.
TEST(serve, tells_what_a_handler_fails_with_that_it_has_stopped) {
  weft::test::run([]() -> task<> {
    for (const bool by_grace : {false, true}) {
      local_listener at;
      const stream client = at.connect();
      const auto handles = [](stream peer) -> task<> {
        auto reading = as_result(read_all(peer));
        const auto how = co_await std::move(reading);
        if (how.is_stopped()) throw std::runtime_error{"the cleanup has failed"};
      };
      int told = 0;
      auto notes = [&](const endpoint&, const std::exception_ptr& failure) {
        ++told;
        EXPECT_THROW(std::rethrow_exception(failure), std::runtime_error);
      };
      server_stats stats;
      const weft::net::serve_options options{
          .idle_timeout = by_grace ? 1h : 4s, .grace = 1s, .on_error = notes, .stats = &stats};
      co_await stopped_after(10s, serve(options, at.take(), handles));
      EXPECT_EQ(told, 1);
      EXPECT_EQ(stats.failures(), 1U);
      EXPECT_EQ(stats.peer_errors(), 0U);
      EXPECT_EQ(stats.idle(), by_grace ? 0U : 1U);
      EXPECT_EQ(stats.cut(), by_grace ? 1U : 0U);
    }
  });
}

// Once, where it was stopped as slow or late and fails with what its peer did.
TEST(serve, counts_an_error_of_a_peer_once) {
  weft::test::run([]() -> task<> {
    local_listener at;
    const stream client = at.connect();
    const auto handles = [](stream peer) -> task<> {
      auto reading = as_result(read_all(peer));
      const auto how = co_await std::move(reading);
      if (how.is_stopped()) throw std::system_error{make_error_code(weft::errc::closed)};
    };
    server_stats stats;
    co_await stopped_after(10s, serve({.handshake_timeout = 1s, .stats = &stats}, at.take(), handles));
    EXPECT_EQ(stats.late(), 1U);
    EXPECT_EQ(stats.peer_errors(), 1U);
    EXPECT_EQ(stats.failures(), 0U);
  });
}

// A server in a handler has handshakes of its own, or none.
TEST(serve, hears_of_no_handshake_of_a_server_inside) {
  weft::test::run([]() -> task<> {
    local_listener outer, inner;
    const stream client = outer.connect(), of_inner = inner.connect();
    bool is_shown = false;
    const auto shows = [&](stream) -> task<> {
      weft::net::handshake_done();
      is_shown = true;
      co_return;
    };
    auto at = inner.take();
    const auto handles = [&](stream) -> task<> { co_await serve({.grace = 0s}, std::move(at), shows); };
    server_stats stats;
    co_await stopped_after(10s, serve({.handshake_timeout = 2s, .stats = &stats}, outer.take(), handles));
    EXPECT_TRUE(is_shown);
    EXPECT_EQ(stats.late(), 1U);
  });
}

// Looks are some time apart, so others go on.
TEST(serve, goes_on_with_times_that_are_next_to_none) {
  for (const weft::io_backend by : {weft::io_backend::automatic, weft::io_backend::epoll})
    for (const auto limit : {0, 1}) {
      const auto body = [limit]() -> task<> {
        listener at = co_await weft::net::listen(anywhere);
        const endpoint where = at.local();
        const auto asks = [&]() -> task<> {
          const stream client = co_await weft::net::connect(where);
          co_await sleep_for(20ms);
        };
        weft::net::serve_options options{.grace = 0s};
        if (limit == 0) options.idle_timeout = 1ns;
        if (limit == 1) options.min_rate = 1;
        options.rate_window = 1ns;
        auto both = weft::when_any(serve(options, std::move(at), echo), asks());
        co_await std::move(both);
      };
      weft::runtime{{.threads = 1, .io = by}}.run(body());
    }
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

// On both back ends: eight are in the backlog, and there are descriptors for some of them. Each is answered once those before it
// have gone.
task<> accepts_again(server_stats& stats) {
  listener at = co_await weft::net::listen(anywhere);
  const endpoint where = at.local();
  std::vector<stream> clients;
  for (int i = 0; i != 8; ++i) clients.push_back(co_await weft::net::connect(where));
  const few_descriptors limited{3};
  const auto talks = [&]() -> task<> {
    co_await comes_true([&] { return stats.pauses() >= 3; });
    EXPECT_LT(stats.accepted(), 8U);
    std::array<std::byte, 1> answer;
    for (const stream& one : clients) {
      co_await one.write("x");
      EXPECT_EQ(co_await one.read(answer), 1U);
      one.shutdown();
      EXPECT_EQ(co_await one.read(answer), 0U);
    }
  };
  auto both = weft::when_any(serve({.stats = &stats}, std::move(at), echo), talks());
  co_await std::move(both);
  EXPECT_EQ(stats.accepted(), 8U);
  EXPECT_EQ(stats.rejected(), 0U);
}

TEST(serve, accepts_again_in_a_runtime_once_there_are_descriptors) {
  for (const weft::io_backend by : {weft::io_backend::automatic, weft::io_backend::epoll})
    for (const unsigned threads : {1U, 2U}) {
      weft::runtime rt{{.threads = threads, .io = by}};
      server_stats stats;
      rt.run(accepts_again(stats));
    }
}

std::chrono::nanoseconds processor_time() {
  timespec now{};
  EXPECT_EQ(::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now), 0);
  return std::chrono::seconds{now.tv_sec} + std::chrono::nanoseconds{now.tv_nsec};
}

// A listener with a backlog stays readable all the while, and nobody may be woken by it again and again. A tenth of a processor
// is far more than it takes, and far less than a loop without a pause, also on a machine with other work.
TEST(serve, takes_next_to_no_processor_time_while_it_pauses) {
  struct way {
    weft::io_backend by;
    unsigned threads;
  };
  for (const way each :
       {way{weft::io_backend::automatic, 1}, {weft::io_backend::epoll, 1}, {weft::io_backend::epoll, 2}}) {
    weft::runtime rt{{.threads = each.threads, .io = each.by}};
    server_stats stats;
    const auto body = [&]() -> task<> {
      listener at = co_await weft::net::listen(anywhere);
      const endpoint where = at.local();
      std::vector<stream> clients;
      for (int i = 0; i != 8; ++i) clients.push_back(co_await weft::net::connect(where));
      const few_descriptors limited{0};
      const auto looks = [&]() -> task<> {
        co_await comes_true([&] { return stats.pauses() >= 5; });  // which takes 80 ms, and the next one 160
        bool is_little = false;  // some tries: the time for which a machine stalls may look like its own
        for (int tries = 5; !is_little && tries != 0; --tries) {
          const auto began = weft::current_clock().now();
          const std::uint64_t before = stats.pauses();
          const auto used_before = processor_time();
          co_await sleep_for(250ms);
          const auto used = processor_time() - used_before;
          const std::uint64_t pauses = stats.pauses() - before;
          const auto took = weft::current_clock().now() - began;
          EXPECT_LE(pauses, 2 + static_cast<std::uint64_t>(took / 160ms));
          is_little = used < took / 10;
        }
        EXPECT_TRUE(is_little);
        EXPECT_EQ(stats.accepted(), 0U);
      };
      auto both = weft::when_any(serve({.stats = &stats}, std::move(at), echo), looks());
      co_await std::move(both);
    };
    rt.run(body());
  }
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

// One of several fails: all drain.
TEST(serve, drains_all_listeners_where_one_fails) {
  weft::test::run([]() -> task<> {
    local_listener one, other;
    const int broken = one.number();
    const stream client = other.connect();
    co_await client.write("x");
    const auto breaks = [&]() -> task<> {
      co_await sleep_for(1s);
      EXPECT_EQ(::shutdown(broken, SHUT_RDWR), 0);
    };
    std::vector<listener> at;
    at.push_back(one.take());
    at.push_back(other.take());
    auto both = weft::when_all(serve(std::move(at), answer_slowly), breaks());
    const auto how = co_await as_result(std::move(both));
    EXPECT_EQ(how.error(), std::errc::invalid_argument);
    EXPECT_EQ(elapsed(), 3s);
    EXPECT_EQ(co_await read_all(client), "answer");
    EXPECT_EQ(::fcntl(other.number(), F_GETFD), -1);
  });
}

// A place that is free is for whoever has somebody, and who has nobody keeps none.
TEST(serve, shares_its_places_among_its_listeners) {
  weft::test::run([]() -> task<> {
    local_listener one, other;
    server_stats stats;
    std::vector<listener> at;
    at.push_back(one.take());
    at.push_back(other.take());
    const auto asks = [&]() -> task<> {
      for (int i = 0; i != 10; ++i) {
        const stream client = i % 3 == 0 ? one.connect() : other.connect();
        co_await client.write("x");
        std::array<std::byte, 1> answer;
        EXPECT_EQ(co_await client.read(answer), 1U);
      }
    };
    auto server = serve({.max_connections = 1, .stats = &stats}, std::move(at), echo);
    co_await weft::when_any(std::move(server), asks());
    EXPECT_EQ(stats.accepted(), 10U);
    EXPECT_EQ(elapsed(), 0s);
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
  EXPECT_DEATH(static_cast<void>(serve({.handshake_timeout = 0s}, listener{}, echo)),
               "handshake_timeout that is no time");
  EXPECT_DEATH(static_cast<void>(serve({.rate_window = 0s}, listener{}, echo)), "a rate_window that is no time");
  EXPECT_DEATH(static_cast<void>(serve({}, std::vector<listener>{}, echo)), "a server was given no listener");
  EXPECT_DEATH(weft::sync_wait(weft::net::listen_many({}, anywhere, 0)), "listen_many was asked for no listener");
  EXPECT_DEATH(static_cast<void>(serve({.grace = -1s}, listener{}, echo)), "a grace below zero");
}

}  // namespace
