// A client of the observer, on either socket: the bytes received from it, and the answers that it has not read yet.
//
// It has one request at a time: while an answer is not sent, nothing more is read, so memory is bounded by one answer for each
// client. A client that does not read is dropped after a while, and so is one that begins a request and does not end it.
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

/// An answer, perhaps shared by several clients.
using shared_text = std::shared_ptr<const std::string>;
inline shared_text as_shared(std::string text) { return std::make_shared<const std::string>(std::move(text)); }

class observer_client {
 public:
  using time_point = std::chrono::steady_clock::time_point;

  /// After how long without a request an HTTP connection is closed.
  static constexpr std::chrono::seconds idle_http{60};

  observer_client(net::owned_descriptor socket, bool is_http, time_point now, std::chrono::milliseconds patience)
      : socket_{std::move(socket)},
        patience_{patience},
        moved_{now},
        http_{is_http ? std::make_unique<http_reader>() : nullptr} {}

  int number() const noexcept { return socket_.number(); }
  bool is_http() const noexcept { return http_ != nullptr; }

  /// Receives what there is, up to a bound, without blocking. False: the connection is broken.
  bool receive(time_point now);
  /// Whether a whole line has come. `line` is then that, without its end, and valid until the next call. A longer line than
  /// `longest_request` is cut to `longest_request` + 1 bytes.
  bool next_line(std::string_view& line);
  /// Whether a whole HTTP request has come, or what is wrong with it.
  http_reader::state next_request(http_request& request);
  /// Whether the next request may be read: all answers were sent, and the connection is not to be closed.
  bool takes_more() const noexcept { return out_.empty() && !closes_; }

  void send(shared_text what) {
    if (!what->empty()) out_.push_back(std::move(what));
  }
  /// Sends as much as the socket takes. False: the connection is broken.
  bool flush(time_point now);
  bool has_output() const noexcept { return !out_.empty(); }
  std::size_t unread() const noexcept { return out_.size(); }

  /// Has the connection closed once all answers were sent.
  void close_after_output() noexcept { closes_ = true; }
  bool is_over() const noexcept { return out_.empty() && (closes_ || (ended_ && !may_have_request_)); }

  /// When the client is dropped, unless it makes progress before.
  time_point gives_up_at() const noexcept;

  time_point moved_at() const noexcept { return moved_; }

  bool is_subscribed = false;
  bool has_shown_token = false;  // in an HTTP request
  std::uint32_t watched = 0;     // the events that epoll watches

 private:
  // No more than this is received before a request is taken out of it.
  static constexpr std::size_t most_input = http_reader::largest_head + 1024;

  net::owned_descriptor socket_;
  std::chrono::milliseconds patience_;
  std::string in_;
  std::string line_;
  std::deque<shared_text> out_;
  std::size_t sent_ = 0;  // bytes of the first answer
  time_point moved_;
  std::unique_ptr<http_reader> http_;  // null: the client sends lines
  bool closes_ = false, ended_ = false, may_have_request_ = false, overlong_ = false;
};

}  // namespace weft::detail
