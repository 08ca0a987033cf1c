#include "observer/client.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "observer/request.hpp"

namespace weft::detail {

bool observer_client::receive(time_point now) {
  while (!ended_ && in_.size() < most_input) {
    char some[4096];
    const auto size = ::recv(number(), some, std::min(sizeof some, most_input - in_.size()), MSG_DONTWAIT);
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) return errno == EAGAIN || errno == EWOULDBLOCK;
    if (size == 0) {
      ended_ = true;
      break;
    }
    // Only a request's first byte restarts the time limit: so a client that sends a byte a second is dropped, too.
    if (in_.empty() && !(http_ && http_->is_inside())) moved_ = now;
    in_.append(some, static_cast<std::size_t>(size));
    may_have_request_ = true;
  }
  return true;
}

bool observer_client::next_line(std::string_view& line) {
  for (;;) {
    const std::size_t end = in_.find('\n');
    const bool has_end = end != std::string::npos;
    if (!has_end && in_.size() <= longest_request && !(ended_ && !in_.empty())) {
      may_have_request_ = false;
      return false;
    }
    const bool is_rest = overlong_;
    overlong_ = !has_end && !ended_;  // the bytes up to the next line end belong to this line
    const std::size_t size = has_end ? end : in_.size();
    if (!is_rest) line_.assign(in_, 0, std::min(size, longest_request + 1));
    in_.erase(0, has_end ? end + 1 : size);
    if (is_rest) continue;
    line = line_;
    return true;
  }
}

http_reader::state observer_client::next_request(http_request& request) {
  std::size_t taken = 0;
  const http_reader::state found = in_.empty() ? http_reader::state::goes_on : http_->read(in_, taken);
  in_.erase(0, taken);
  if (found == http_reader::state::complete) request = http_->take();
  if (found == http_reader::state::goes_on) may_have_request_ = false;
  return found;
}

bool observer_client::flush(time_point now) {
  while (!out_.empty()) {
    const std::string& first = *out_.front();
    const auto size = ::send(number(), first.data() + sent_, first.size() - sent_, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) return errno == EAGAIN || errno == EWOULDBLOCK;
    moved_ = now;
    sent_ += static_cast<std::size_t>(size);
    if (sent_ != first.size()) continue;
    out_.pop_front();
    sent_ = 0;
  }
  return true;
}

observer_client::time_point observer_client::gives_up_at() const noexcept {
  if (!out_.empty() || !in_.empty() || overlong_ || closes_ || (http_ && http_->is_inside())) return moved_ + patience_;
  return http_ ? moved_ + std::max<std::chrono::milliseconds>(idle_http, patience_) : time_point::max();
}

}  // namespace weft::detail
