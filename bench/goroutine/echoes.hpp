// What the tasks and the fibers of weft have in common in `goroutine`.
#pragma once

#include "workload.hpp"

#include <deque>
#include <future>
#include <weft/channel.hpp>
#include <weft/combine.hpp>
#include <weft/pool.hpp>
#include <weft/scope.hpp>

namespace bench {

using channel = weft::channel<std::size_t>;

struct channels {
  channel in{1}, out{1};
};

/// `fork_echo(scope, channels)` forks one that echoes.
template <void (*ForkEcho)(weft::scope&, channels&)>
class echoes {
 public:
  explicit echoes(std::size_t count) : all_(count) {}

  void start() {
    std::promise<void> started;
    weft::start(workers_.executor(), run(started),
                [this](weft::result<void> how) { ended_.set_value(how.has_value()); });
    started.get_future().get();
  }

  std::size_t sweep() { return weft::sync_wait(weft::start_on(workers_.executor(), serve())); }

  void close() {
    for (auto& one : all_) one.in.close();
    if (!ended_.get_future().get()) throw wrong_result{"an echo failed"};
  }

 private:
  weft::task<> run(std::promise<void>& started) {
    auto body = [&](weft::scope& s) -> weft::task<> {
      for (auto& one : all_) ForkEcho(s, one);
      started.set_value();
      co_return;
    };
    co_await weft::with_scope(body);
  }

  weft::task<std::size_t> serve() {
    std::size_t sum = 0, number = 0;
    for (auto& one : all_) {
      co_await one.in.send(number++);
      const auto back = co_await one.out.receive();
      sum += back.value();
    }
    co_return sum;
  }

  std::deque<channels> all_;
  std::promise<bool> ended_;
  weft::pool workers_{{.threads = 1}};
};

}  // namespace bench
