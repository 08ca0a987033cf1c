// Connects to the one of several endpoints that answers first: "happy eyeballs" (RFC 8305).
//
// Each attempt is a fork of one scope. The scope's body starts the attempts one after the other, and waits in between for the
// delay or for an attempt to end; after the first connection it stops the others, which the scope joins.
#include <algorithm>
#include <exception>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include <weft/error.hpp>
#include <weft/event.hpp>
#include <weft/nothrow.hpp>
#include <weft/resolve.hpp>
#include <weft/scope.hpp>
#include <weft/select.hpp>
#include <weft/timed.hpp>

namespace weft {
namespace detail {
namespace {

using net::endpoint;
using net::stream;

// RFC 8305, 4: one of each family in turn, beginning with the first, as long as there are both.
std::vector<endpoint> interleaved(std::span<const endpoint> those) {
  std::vector<endpoint> all;
  all.reserve(those.size());
  const bool first = !those.empty() && those.front().is_v6();
  std::size_t next[2] = {0, 0};  // of the first family, and of the other one
  const auto take = [&](bool other) {
    std::size_t& at = next[other ? 1 : 0];
    while (at != those.size() && those[at].is_v6() != (first != other)) ++at;
    if (at != those.size()) all.push_back(those[at++]);
  };
  while (all.size() != those.size()) {
    take(false);
    take(true);
  }
  return all;
}

class happy_eyeballs {
 public:
  // `of` names the target in errors; if it is empty, they name the endpoints alone.
  happy_eyeballs(std::vector<endpoint> to, clock::duration delay, std::string of)
      : to_{std::move(to)}, delay_{delay}, of_{std::move(of)}, failures_(to_.size()) {}
  happy_eyeballs(const happy_eyeballs&) = delete;

  task<stream> run() {
    const auto body = [this](scope& attempts) { return try_all(attempts); };
    co_await with_scope(body);
    if (!won_) co_await fail_with(failure());
    co_return *std::move(won_);
  }

 private:
  struct progress {
    bool is_over, has_failed;  // since the last look()
  };
  // Under the lock, which orders what the attempts have written before this.
  progress look() {
    const std::lock_guard guard{lock_};
    const bool has_failed = failed_ != seen_;
    seen_ = failed_;
    return {won_.has_value() || failed_ == to_.size(), has_failed};
  }

  task<> try_all(scope& attempts) {
    for (std::size_t i = 0; i != to_.size(); ++i) {
      attempts.fork(try_one(i));
      const bool is_over = co_await is_over_before_next(i + 1 == to_.size());
      if (is_over) break;
    }
    attempts.request_stop({.reason = "another address has connected"});
  }

  // Waits until the next attempt must begin; after the last attempt, until one has connected or all have failed. True: no attempt
  // must begin any more.
  task<bool> is_over_before_next(bool is_last) {
    for (;;) {
      const progress now = look();
      if (now.is_over) co_return true;
      if (is_last) {
        co_await ended_.wait();
        continue;
      }
      if (now.has_failed) co_return false;
      auto either = select(on(ended_.wait()), after(delay_));
      const auto first = co_await std::move(either);
      if (first.index == 1) co_return false;
    }
  }

  task<> try_one(std::size_t index) {
    auto connecting = as_result(net::connect(to_[index]));
    auto how = co_await std::move(connecting);
    if (how.is_stopped()) co_return;
    {
      const std::lock_guard guard{lock_};
      if (how.has_value()) {
        if (!won_) won_.emplace(std::move(how).value());
      } else {
        failures_[index] = how.exception();
        ++failed_;
      }
    }
    ended_.set();
  }

  // The error of the first attempt, with a sentence about each.
  std::exception_ptr failure() const {
    const std::error_code code = code_of(failures_.front());
    if (!code) return failures_.front();  // no std::error_code: the attempt ran out of memory
    try {
      std::string each = of_;
      for (std::size_t i = 0; i != to_.size(); ++i) {
        each += each.empty() ? "" : i == 0 ? " by " : ", ";
        const std::error_code its = code_of(failures_[i]);
        each += to_[i].to_string() + " (" + (its ? its.message() : "not enough memory") + ")";
      }
      return std::make_exception_ptr(error{code, "connect", each});
    } catch (...) {  // no memory for its text
      return std::current_exception();
    }
  }

  const std::vector<endpoint> to_;
  const clock::duration delay_;
  const std::string of_;

  std::mutex lock_;  // guards the members below until the scope has ended
  std::vector<std::exception_ptr> failures_;
  std::size_t failed_ = 0, seen_ = 0;
  std::optional<stream> won_;
  auto_event ended_;  // set when an attempt has ended
};

task<stream> connect_to_first(std::vector<endpoint> to, clock::duration delay, std::string of) {
  co_await check_stop();
  if (to.empty())
    co_await fail_with(error{std::make_error_code(std::errc::invalid_argument), "connect", "to none of no endpoints"});
  happy_eyeballs race{interleaved(to), delay, std::move(of)};
  auto connecting = race.run();
  co_return co_await nothrow(std::move(connecting));
}

struct named_host {
  std::string host, service;
};
task<stream> connect_by_name(task<std::vector<endpoint>> lookup, clock::duration delay, named_host whose) {
  std::vector<endpoint> to = co_await nothrow(std::move(lookup));
  auto connecting = connect_to_first(std::move(to), delay, whose.host + ", service " + whose.service + ',');
  co_return co_await nothrow(std::move(connecting));
}

task<stream> within(clock::duration limit, task<stream> work) {
  auto limited = timeout(limit, std::move(work));
  co_return co_await std::move(limited);
}
task<stream> with_timeout(clock::duration limit, task<stream> work) {
  return limit == clock::duration::max() ? std::move(work) : within(limit, std::move(work));
}

void expect_to_make_sense(const net::connect_options& options) noexcept {
  WEFT_EXPECTS(options.delay >= clock::duration::zero(), "connect() was given a delay below zero");
  WEFT_EXPECTS(options.timeout >= clock::duration::zero(), "connect() was given a timeout below zero");
}

}  // namespace
}  // namespace detail

task<net::stream> net::connect(connect_options options, std::span<const endpoint> to) {
  detail::expect_to_make_sense(options);
  return detail::with_timeout(options.timeout,
                              detail::connect_to_first({to.begin(), to.end()}, options.delay, std::string{}));
}

task<net::stream> net::connect(connect_options options, std::string_view host, std::string_view service) {
  detail::expect_to_make_sense(options);
  return detail::with_timeout(options.timeout,
                              detail::connect_by_name(resolve(options.names, host, service), options.delay,
                                                      {std::string{host}, std::string{service}}));
}

}  // namespace weft
