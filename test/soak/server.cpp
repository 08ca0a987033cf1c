// The server of a soak: `soak_server THREADS IDLE_MS`. It says where it listens, answers what protocol.hpp calls requests
// until SIGTERM, drains, and prints what it has counted as lines of `name=value`. Each client chooses whether a task with
// buffers, a fiber, or a task with lent buffers handles it, so that all of them are at work. tools/soak runs it.
#include <weft/weft.hpp>

#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "protocol.hpp"

namespace {

namespace w = weft;
using namespace std::chrono_literals;
using soak::header;
using request = soak::request_parser::request;
using when = std::chrono::steady_clock::time_point;

// From the first byte of a request to its last one, and for the peer's end behind the last answer. As long as a connection may
// be idle, which clients know.
std::chrono::nanoseconds request_limit;

// Relaxed, all of them: figures that are read when all is over.
struct totals {
  std::atomic<std::uint64_t> requests{0}, answers{0};  // of clients that are counted
  std::atomic<std::uint64_t> other_requests{0}, other_answers{0};
  std::atomic<std::uint64_t> given_up{
      0};  // requests of clients that are counted, whose handler was stopped as idle then
  std::atomic<std::uint64_t> garbage{0}, too_slow{0}, drained{0};
};

void count(std::atomic<std::uint64_t>& one) noexcept { one.fetch_add(1, std::memory_order_relaxed); }  // a figure

// What the three ways have in common.
class conversation {
 public:
  conversation(const w::net::stream& peer, totals& all) noexcept : peer{peer}, all_{all} {}
  conversation(const conversation&) = delete;
  ~conversation() {
    if (is_counted_ && answers_) count(all_.given_up);
  }

  void greeted(std::span<const std::byte, soak::greeting_bytes> greeting) noexcept {
    way = static_cast<char>(greeting[0]);
    is_counted_ = static_cast<char>(greeting[1]) == soak::counted;
  }
  bool is_greeting_known() const noexcept {
    return way == soak::by_task || way == soak::by_fiber || way == soak::by_lent_buffers;
  }
  void has_read() noexcept {
    answers_ = true;
    count(is_counted_ ? all_.requests : all_.other_requests);
  }
  void has_answered() noexcept {
    answers_ = false;
    count(is_counted_ ? all_.answers : all_.other_answers);
  }
  void got_garbage() noexcept { count(all_.garbage); }
  void was_too_slow() noexcept { count(all_.too_slow); }
  void has_drained() noexcept { count(all_.drained); }

  const w::net::stream& peer;
  char way = 0;

 private:
  totals& all_;
  bool is_counted_ = false, answers_ = false;
};

header answer_to(const request& one) noexcept {
  return {.magic = soak::answer_magic, .number = one.head.number, .size = one.head.checksum, .checksum = one.sum};
}

// ---- a task with buffers ------------------------------------------------------------------------------------------------------

w::task<std::uint32_t> read_payload(w::io::buffered_reader<const w::net::stream&>& in, std::size_t size) {
  soak::checksum sum;
  std::array<std::byte, 512> piece;
  while (size != 0) {
    const std::span<std::byte> part = std::span{piece}.first(std::min(size, piece.size()));
    co_await in.read_exactly(part);
    sum.add(part);
    size -= part.size();
  }
  co_return sum.value();
}

w::task<> answer_in_task(conversation& with, w::io::buffered_reader<const w::net::stream&>& in) {
  w::io::buffered_writer out{with.peer, 1024};
  for (;;) {
    // What has come decides, and not which of the two was first.
    std::size_t came = 0;
    const auto looks = [&]() -> w::task<> { came = (co_await in.peek()).size(); };
    auto either = w::when_any(looks(), w::net::draining());
    co_await std::move(either);
    if (came == 0) {
      if (w::net::is_draining()) with.has_drained();
      co_return;
    }
    request one{};
    const auto reads = [&]() -> w::task<> {
      co_await in.read_exactly(std::as_writable_bytes(std::span{&one.head, 1}));
      if (soak::is_request(one.head)) one.sum = co_await read_payload(in, one.head.size);
    };
    auto in_time = w::as_result(w::timeout(request_limit, reads()));
    auto how = co_await std::move(in_time);
    if (how.is_stopped()) co_await w::check_stop();  // as idle, or when the grace is over
    if (how.error() == w::errc::timed_out) {
      with.was_too_slow();
      co_return;
    }
    std::move(how).value();
    if (!soak::is_request(one.head)) {
      with.got_garbage();
      co_return;
    }
    with.has_read();
    const header head = answer_to(one);
    co_await out.write(std::as_bytes(std::span{&head, 1}));
    soak::answer_bytes bytes{head.number, head.checksum};
    std::array<std::byte, 512> piece;
    for (std::size_t left = head.size; left != 0;) {
      const std::span<std::byte> part = std::span{piece}.first(std::min(left, piece.size()));
      bytes.fill(part);
      co_await out.write(part);
      left -= part.size();
    }
    co_await out.flush();
    with.has_answered();
  }
}

// ---- a fiber ------------------------------------------------------------------------------------------------------------------

// How long to wait for the next piece: for ever between two requests.
std::chrono::nanoseconds time_left(const soak::request_parser& parser, when since) noexcept {
  if (parser.is_between()) return 24h;
  return std::max<std::chrono::nanoseconds>(0ns, since + request_limit - std::chrono::steady_clock::now());
}

void answer_from_fiber(const w::net::stream& peer, const request& one) {
  const header head = answer_to(one);
  w::await(peer.write(std::as_bytes(std::span{&head, 1})));
  soak::answer_bytes bytes{head.number, head.checksum};
  std::array<std::byte, 2048> piece;
  for (std::size_t left = head.size; left != 0;) {
    const std::span<std::byte> part = std::span{piece}.first(std::min(left, piece.size()));
    bytes.fill(part);
    w::await(peer.write(part));
    left -= part.size();
  }
}

void answer_in_fiber(conversation* with, std::span<const std::byte> have) {
  soak::request_parser parser;
  std::array<std::byte, 1024> room;
  when since = std::chrono::steady_clock::now();
  for (;;) {
    while (!have.empty()) {
      if (parser.is_between()) since = std::chrono::steady_clock::now();
      const auto one = parser.take(have);
      if (parser.is_broken()) return with->got_garbage();
      if (!one) continue;
      with->has_read();
      answer_from_fiber(with->peer, *one);
      with->has_answered();
    }
    if (parser.is_between()) {
      const auto next = w::await(w::select(w::on(with->peer.read(room)), w::on(w::net::draining())));
      if (next.index == 1) return with->has_drained();
      have = std::span{room}.first(std::get<0>(next.value));
    } else {
      const auto next = w::await(w::select(w::on(with->peer.read(room)), w::after(time_left(parser, since))));
      if (next.index == 1) return with->was_too_slow();
      have = std::span{room}.first(std::get<0>(next.value));
    }
    if (have.empty()) return;
  }
}

// ---- a task with lent buffers ---------------------------------------------------------------------------------------------------

w::task<> answer_by_lent_buffers(conversation& with, std::span<const std::byte> have) {
  soak::request_parser parser;
  w::net::lent_buffer lent;
  when since = std::chrono::steady_clock::now();
  for (;;) {
    while (!have.empty()) {
      if (parser.is_between()) since = std::chrono::steady_clock::now();
      const auto one = parser.take(have);
      if (parser.is_broken()) co_return with.got_garbage();
      if (!one) continue;
      with.has_read();
      const header head = answer_to(*one);
      std::vector<std::byte> body(head.size);
      soak::answer_bytes{head.number, head.checksum}.fill(body);
      std::array<std::span<const std::byte>, 2> parts{std::as_bytes(std::span{&head, 1}), body};
      co_await with.peer.write(std::span{parts});
      with.has_answered();
    }
    lent = {};
    if (parser.is_between()) {
      auto next = co_await w::select(w::on(with.peer.receive()), w::on(w::net::draining()));
      if (next.index == 1) co_return with.has_drained();
      lent = std::get<0>(std::move(next.value));
    } else {
      auto next = co_await w::select(w::on(with.peer.receive()), w::after(time_left(parser, since)));
      if (next.index == 1) co_return with.was_too_slow();
      lent = std::get<0>(std::move(next.value));
    }
    have = lent.bytes();
    if (have.empty()) co_return;
  }
}

// ---- the server -----------------------------------------------------------------------------------------------------------------

// Closes so that no answer is lost: a socket that is closed with something unread in it resets its connection, and drops what
// the peer has not taken yet.
w::task<> linger(const w::net::stream& peer) {
  std::array<std::byte, 512> room;
  const auto drops = [&]() -> w::task<> {
    while (co_await peer.read(room) != 0) {
    }
  };
  auto in_time = w::as_result(w::timeout(request_limit, drops()));
  static_cast<void>(co_await std::move(in_time));
}

w::task<> handle(w::net::stream peer, totals& all) {
  conversation with{peer, all};
  w::io::buffered_reader<const w::net::stream&> in{peer, 1024};
  // A client that says nothing is idle, one that says half of it is slow.
  const std::span<const std::byte> began = co_await in.peek();
  if (began.empty()) co_return;
  std::array<std::byte, soak::greeting_bytes> greeting{};
  auto greets = w::as_result(w::timeout(request_limit, in.read_exactly(greeting)));
  auto how = co_await std::move(greets);
  if (how.is_stopped()) co_await w::check_stop();
  if (how.error() == w::errc::timed_out) co_return with.was_too_slow();
  std::move(how).value();
  with.greeted(greeting);
  if (!with.is_greeting_known()) co_return with.got_garbage();
  if (with.way == soak::by_task) {
    co_await answer_in_task(with, in);
  } else if (with.way == soak::by_fiber) {
    const auto in_scope = [&](w::scope& fibers) -> w::task<> {
      co_await fibers.go(answer_in_fiber, &with, in.buffered());
    };
    co_await w::with_scope(in_scope);
  } else {
    co_await answer_by_lent_buffers(with, in.buffered());
  }
  peer.shutdown();
  co_await linger(peer);
}

w::task<> serve(std::chrono::milliseconds idle, w::net::server_stats& stats, totals& all) {
  w::net::listener at = co_await w::net::listen({.backlog = 4096}, w::net::endpoint{"127.0.0.1", 0});
  std::printf("listening on %s\n", at.local().to_string().c_str());
  std::fflush(stdout);
  const auto on_error = [](const w::net::endpoint& peer, const std::exception_ptr& failure) {
    try {
      std::rethrow_exception(failure);
    } catch (const std::exception& known) {
      std::fprintf(stderr, "soak_server: %s: %s\n", peer.to_string().c_str(), known.what());
    } catch (...) {
      std::fprintf(stderr, "soak_server: %s: not a std::exception\n", peer.to_string().c_str());
    }
  };
  const auto handler = [&all](w::net::stream peer) { return handle(std::move(peer), all); };
  const w::net::serve_options options{.idle_timeout = idle, .grace = 10min, .on_error = on_error, .stats = &stats};
  co_await w::net::serve(options, std::move(at), handler);
}

std::size_t open_descriptors() {
  std::size_t out = 0;
  for (const auto& one : std::filesystem::directory_iterator{"/proc/self/fd"}) out += one.exists() ? 1 : 0;
  return out;
}

void print(const char* name, std::uint64_t value) {
  std::printf("%s=%llu\n", name, static_cast<unsigned long long>(value));
}

}  // namespace

int main(int argument_count, char** arguments) {
  if (argument_count != 3) {
    std::fprintf(stderr, "soak_server THREADS IDLE_MS\n");
    return 2;
  }
  soak::raise_descriptor_limit();
  const auto threads = static_cast<unsigned>(std::strtoul(arguments[1], nullptr, 10));
  const std::chrono::milliseconds idle{std::strtoul(arguments[2], nullptr, 10)};
  request_limit = idle;
  w::net::server_stats stats;
  totals all;
  std::size_t watched = 0, before = 0, after = 0;
  std::string how;
  {
    w::runtime rt{{.threads = threads}};
    rt.run(
        w::when_any(w::sleep_for(1ms), w::interrupted()));  // what the process keeps for signals is there from now on
    before = open_descriptors();
    how = rt.explain();
    rt.run(w::when_any(serve(idle, stats, all), w::interrupted()));
    // Workers close what they have armed after the last task has ended: within a minute.
    for (int i = 0; i != 12000 && (after = open_descriptors()) > before; ++i) ::usleep(5000);
    watched = rt.stats().watched;
  }
  std::printf("how it waits: %s\n", how.substr(0, how.find('\n')).c_str());
  print("accepted", stats.accepted());
  print("active", stats.active());
  print("rejected", stats.rejected());
  print("pauses", stats.pauses());
  print("peer_errors", stats.peer_errors());
  print("failures", stats.failures());
  print("idle", stats.idle());
  print("cut", stats.cut());
  print("requests", all.requests);
  print("answers", all.answers);
  print("given_up", all.given_up);
  print("other_requests", all.other_requests);
  print("other_answers", all.other_answers);
  print("garbage", all.garbage);
  print("too_slow", all.too_slow);
  print("drained", all.drained);
  print("watched_at_end", watched);
  print("descriptors_before", before);
  print("descriptors_after", after);
  return 0;
}
