// One who asks, on either socket: what has come from him, and what he has not read yet.
//
// One request at a time: while an answer has not gone out, nothing more is read, so memory is bounded by one answer each. Who does
// not read is dropped after a while, and so is who begins a request and does not end it.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <weft/unix.hpp>

#include "observer/http.hpp"

namespace weft::detail {

/// An answer, perhaps to several.
using shared_text = std::shared_ptr<const std::string>;
inline shared_text as_shared(std::string text) { return std::make_shared<const std::string>(std::move(text)); }

class observer_client {
 public:
  using time_point = std::chrono::steady_clock::time_point;

  /// How long a connection by HTTP may say nothing.
  static constexpr std::chrono::seconds idle_http{60};

  observer_client(net::owned_descriptor socket, bool is_http, time_point now, std::chrono::milliseconds patience)
      : socket_{std::move(socket)},
        patience_{patience},
        moved_{now},
        http_{is_http ? std::make_unique<http_reader>() : nullptr} {}

  int number() const noexcept { return socket_.number(); }
  bool is_http() const noexcept { return http_ != nullptr; }

  /// Reads what there is, up to a bound. False: the connection has broken.
  bool receive(time_point now);
  /// Whether a line has come whole; it is `line` then, without its end, until the next call. Too long is `longest_request` + 1.
  bool next_line(std::string_view& line);
  /// Whether a request has come whole, or what is wrong with it.
  http_reader::state next_request(http_request& request);
  /// What is done with what comes.
  bool takes_more() const noexcept { return out_.empty() && !closes_; }

  void send(shared_text what) {
    if (!what->empty()) out_.push_back(std::move(what));
  }
  /// Sends on. False: the connection has broken.
  bool flush(time_point now);
  bool has_output() const noexcept { return !out_.empty(); }
  std::size_t unread() const noexcept { return out_.size(); }

  /// Ends the connection as soon as all has been sent.
  void close_after_output() noexcept { closes_ = true; }
  bool is_over() const noexcept { return out_.empty() && (closes_ || (ended_ && !may_have_request_)); }

  /// When it is dropped, unless something moves before.
  time_point gives_up_at() const noexcept;

  time_point moved_at() const noexcept { return moved_; }

  bool is_subscribed = false;
  bool has_shown_token = false;  // by HTTP
  std::uint32_t watched = 0;     // by epoll

 private:
  // More is not read before that is taken.
  static constexpr std::size_t most_input = http_reader::largest_head + 1024;

  net::owned_descriptor socket_;
  std::chrono::milliseconds patience_;
  std::string in_;
  std::string line_;
  std::deque<shared_text> out_;
  std::size_t sent_ = 0;  // of the first
  time_point moved_;
  std::unique_ptr<http_reader> http_;  // null: lines
  bool closes_ = false, ended_ = false, may_have_request_ = false, overlong_ = false;
};

}  // namespace weft::detail
