// An adapter for hiredis, the C client of Redis: its non-blocking interface, awaited. hiredis owns the socket, and says which
// way it wants to be called; weft waits until that is possible.
//
// Threads  hiredis has no locks: all calls come from tasks of one thread, as in a runtime with `.threads = 1`, or of one strand.
#pragma once

#include <hiredis/async.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include <weft/weft.hpp>

namespace hiredis {

/// A copy of what the server has said, which hiredis frees when its callback returns.
struct reply {
  int type = REDIS_REPLY_NIL;
  long long number = 0;
  std::string text;  // also of an error
  std::vector<reply> elements;

  explicit reply(const redisReply& of)
      : type{of.type}, number{of.integer}, text{of.str != nullptr ? std::string{of.str, of.len} : std::string{}} {
    for (std::size_t i = 0; i != of.elements; ++i) elements.emplace_back(*of.element[i]);
  }
};

/// A connection to the server on a Unix socket, which is made anew whenever it was lost, while run() runs.
class client {
 public:
  explicit client(std::string path) : path_{std::move(path)} {}
  client(const client&) = delete;

  /// Keeps connected, until it is stopped.
  weft::task<> run() {
    constexpr std::chrono::milliseconds first{5}, most{1000};
    for (auto delay = first;; delay = std::min(2 * delay, most)) {
      if (co_await serve_connection()) delay = first;
      co_await weft::sleep_for(delay);
    }
  }

  /// Sends a command at once, behind those that were sent before. Several may be under way: that is pipelining. The future fails
  /// with errc::closed where there is no connection, or it is lost before the reply has come; nobody knows then whether the
  /// server has executed the command. Who is stopped while it waits for the future drops the reply, and no other one.
  template <std::convertible_to<std::string_view>... Words>
  weft::future<reply> send(const Words&... words) {
    std::array<const char*, sizeof...(Words)> texts{std::string_view{words}.data()...};
    const std::array<std::size_t, sizeof...(Words)> sizes{std::string_view{words}.size()...};
    auto waiting = std::make_unique<weft::promise<reply>>();
    weft::future<reply> out = waiting->get_future();
    if (context_ != nullptr && redisAsyncCommandArgv(context_, replied, waiting.get(), static_cast<int>(texts.size()),
                                                     texts.data(), sizes.data()) == REDIS_OK)
      static_cast<void>(waiting.release());  // hiredis calls replied(), once, whatever happens
    else
      waiting->set_exception(std::make_exception_ptr(lost()));
    return out;
  }

  /// Waits for a connection first. The words, string literals or what outlives it, stay.
  template <std::convertible_to<std::string_view>... Words>
  weft::task<reply> command(Words... words) {
    co_await connected_.wait();
    co_return co_await send(words...);
  }

 private:
  // Frees what hiredis has not freed itself; all who wait for replies get their failures.
  struct connection {
    client& of;
    ~connection() {
      if (of.context_ != nullptr) redisAsyncFree(of.context_);
    }
  };

  static constexpr unsigned reads = 1, writes = 2;
  static client& self(void* data) noexcept { return *static_cast<client*>(data); }
  static weft::error lost() { return {weft::errc::closed, "redis", "the connection"}; }

  // Whether there was one. It ends when hiredis has given it up.
  weft::task<bool> serve_connection() {
    context_ = redisAsyncConnectUnix(path_.c_str());
    if (context_ == nullptr) throw std::bad_alloc{};
    const connection frees{*this};
    wanted_ = 0;
    if (context_->err != 0) co_return false;
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
    bool was_connected = false;
    while (context_ != nullptr) {
      was_connected = was_connected || connected_.is_set();
      changed_.reset();
      if (wanted_ == 0) co_await changed_.wait();
      if (wanted_ == 0) continue;
      const auto either = static_cast<weft::net::readiness>(wanted_);
      const auto next =
          co_await weft::select(weft::on(weft::net::ready(context_->c.fd, either)), weft::on(changed_.wait()));
      if (next.index == 1) continue;
      const auto got = static_cast<unsigned>(std::get<0>(next.value)) & wanted_;
      if ((got & reads) != 0) redisAsyncHandleRead(context_);
      if ((got & writes) != 0 && context_ != nullptr) redisAsyncHandleWrite(context_);
    }
    co_return was_connected;
  }

  // ---- what hiredis calls

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
    const std::unique_ptr<weft::promise<reply>> waiting{static_cast<weft::promise<reply>*>(data)};
    if (answer == nullptr)
      waiting->set_exception(std::make_exception_ptr(lost()));
    else
      waiting->set_value(reply{*static_cast<const redisReply*>(answer)});
  }

  std::string path_;
  redisAsyncContext* context_ = nullptr;
  unsigned wanted_ = 0;  // reads, writes
  weft::event changed_, connected_;
};

}  // namespace hiredis
