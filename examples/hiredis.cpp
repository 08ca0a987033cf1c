// A client of Redis, by the non-blocking interface of hiredis: `example_hiredis PATH`, where PATH is the Unix socket of a
// redis-server. Shows commands one after the other, a thousand in one pipeline, one that is given up, and a server that ends and is
// started again. All on one thread, since hiredis has no locks.
#include <hiredis/async.h>

#include <array>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdio>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include <weft/weft.hpp>

namespace w = weft;
using namespace std::literals;

class redis {
 public:
  explicit redis(std::string path) : path_{std::move(path)} {}
  redis(const redis&) = delete;

  /// Keeps connected, until it is stopped.
  w::task<> run() {
    for (;; co_await w::sleep_for(10ms)) co_await serve_connection();
  }

  /// Sends a command at once, behind those that were sent before: that is pipelining. The future has what the server says, and
  /// fails with errc::closed where there is no connection, or it is lost before the reply; nobody knows then whether the server
  /// has executed the command. Who is stopped while it waits drops this reply, and no other.
  template <std::convertible_to<std::string_view>... Words>
  w::future<std::string> send(const Words&... words) {
    std::array<const char*, sizeof...(Words)> texts{std::string_view{words}.data()...};
    const std::array<std::size_t, sizeof...(Words)> sizes{std::string_view{words}.size()...};
    auto waiting = std::make_unique<w::promise<std::string>>();
    w::future<std::string> reply = waiting->get_future();
    if (context_ != nullptr && redisAsyncCommandArgv(context_, replied, waiting.get(), static_cast<int>(texts.size()),
                                                     texts.data(), sizes.data()) == REDIS_OK)
      static_cast<void>(waiting.release());  // hiredis calls replied(), once, whatever happens
    else
      waiting->set_exception(std::make_exception_ptr(lost()));
    return reply;
  }

  /// Waits for a connection first. The words, string literals or what outlives it, stay.
  template <std::convertible_to<std::string_view>... Words>
  w::task<std::string> command(Words... words) {
    co_await connected_.wait();
    co_return co_await send(words...);
  }

 private:
  static constexpr unsigned reads = 1, writes = 2;  // as in w::net::readiness

  // Ends when hiredis has given the connection up.
  w::task<> serve_connection() {
    context_ = redisAsyncConnectUnix(path_.c_str());
    if (context_ == nullptr) throw std::bad_alloc{};
    const auto let_go = [this](redisAsyncContext*) {
      if (context_ != nullptr) redisAsyncFree(context_);  // all who wait for replies get their failures
    };
    const std::unique_ptr<redisAsyncContext, decltype(let_go)> frees{context_, let_go};
    wanted_ = 0;
    if (context_->err != 0) co_return;
    context_->data = this;
    context_->ev = {.data = this,
                    .addRead = [](void* data) { self(data).wants(reads, true); },
                    .delRead = [](void* data) { self(data).wants(reads, false); },
                    .addWrite = [](void* data) { self(data).wants(writes, true); },
                    .delWrite = [](void* data) { self(data).wants(writes, false); },
                    .cleanup = [](void* data) { self(data).ended(); }};
    redisAsyncSetConnectCallback(context_, [](const redisAsyncContext* of, int status) {
      if (status == REDIS_OK) self(of->data).connected_.set();
    });
    while (context_ != nullptr) {
      changed_.reset();
      if (wanted_ == 0) co_await changed_.wait();
      if (wanted_ == 0) continue;
      auto ready = w::net::ready(context_->c.fd, static_cast<w::net::readiness>(wanted_));
      const auto next = co_await w::select(w::on(std::move(ready)), w::on(changed_.wait()));
      if (next.index == 1) continue;
      const auto got = static_cast<unsigned>(std::get<0>(next.value)) & wanted_;
      if ((got & reads) != 0) redisAsyncHandleRead(context_);
      if ((got & writes) != 0 && context_ != nullptr) redisAsyncHandleWrite(context_);
    }
  }

  // ---- what hiredis calls

  static redis& self(void* data) noexcept { return *static_cast<redis*>(data); }
  static w::error lost() { return {w::errc::closed, "redis", "the connection"}; }
  void wants(unsigned what, bool on) noexcept {
    const unsigned before = std::exchange(wanted_, on ? wanted_ | what : wanted_ & ~what);
    if (wanted_ != before) changed_.set();
  }
  void ended() noexcept {
    connected_.reset();
    context_ = nullptr;  // which hiredis frees
    wanted_ = 0;
    changed_.set();
  }
  static void replied(redisAsyncContext*, void* answer, void* data) {
    const std::unique_ptr<w::promise<std::string>> waiting{static_cast<w::promise<std::string>*>(data)};
    const auto* reply = static_cast<const redisReply*>(answer);  // hiredis frees it afterwards
    if (reply == nullptr) return waiting->set_exception(std::make_exception_ptr(lost()));
    if (reply->type == REDIS_REPLY_INTEGER) return waiting->set_value(std::to_string(reply->integer));
    waiting->set_value(reply->str != nullptr ? std::string{reply->str, reply->len} : "(nil)");
  }

  std::string path_;
  redisAsyncContext* context_ = nullptr;
  unsigned wanted_ = 0;
  w::event changed_, connected_;
};

w::task<> session(redis& one, redis& other) {
  std::printf("%s\n", (co_await one.command("PING")).c_str());
  co_await one.command("SET", "greeting", "hello");
  std::printf("stored: %s\n", (co_await one.command("GET", "greeting")).c_str());

  std::vector<w::future<std::string>> pipeline;
  for (int i = 0; i != 1000; ++i) pipeline.push_back(one.send("INCR", "count"));
  int in_order = 0;
  for (auto& reply : pipeline)
    if (co_await std::move(reply) == std::to_string(in_order + 1)) ++in_order;
  std::printf("%d increments in one pipeline, in order\n", in_order);

  // The server answers the commands of a connection in their order, so what is behind this one waits for its reply, too, which
  // nobody wants any more.
  const auto none = co_await w::as_result(w::timeout(50ms, one.command("BLPOP", "queue", "0")));
  std::printf("BLPOP: %s\n", none.error() == w::errc::timed_out ? "given up" : "has an answer");
  auto behind = one.send("GET", "count");
  co_await other.command("LPUSH", "queue", "x");
  std::printf("behind it: %s\n", (co_await std::move(behind)).c_str());

  const auto ended = co_await w::as_result(one.send("SHUTDOWN", "NOSAVE"));
  std::printf("SHUTDOWN: %s\n", ended.error() == w::errc::closed ? "the connection has ended" : "has an answer");
  std::printf("connected again: %s\n", (co_await one.command("PING")).c_str());
  std::printf("what it knows: %s\n", (co_await one.command("GET", "greeting")).c_str());
}

int main(int count, char** arguments) {
  if (count != 2) return std::fputs("example_hiredis PATH\n", stderr), 2;
  redis one{arguments[1]}, other{arguments[1]};
  return w::run_main({.threads = 1}, w::when_any(session(one, other), one.run(), other.run()));
}
