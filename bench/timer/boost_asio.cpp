// A wait that was cancelled ends by its handler, which the loop calls.
#include "workload.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <memory>
#include <vector>

namespace {

using boost::asio::io_context;
using boost::asio::steady_timer;

class rounds {
 public:
  explicit rounds(io_context& loop) : one_{loop} {}

  void next() {
    one_.expires_at(at_);
    one_.async_wait([this](const boost::system::error_code& how) {
      cancelled_ += how == boost::asio::error::operation_aborted;
      if (cancelled_ != bench::timer_rounds) next();
    });
    one_.cancel();
  }
  std::size_t cancelled() const { return cancelled_; }

 private:
  const steady_timer::time_point at_ = steady_timer::clock_type::now() + bench::timer_limit;
  steady_timer one_;
  std::size_t cancelled_ = 0;
};

}  // namespace

void bench::run(bench::state& state) {
  if (state.size() == by_another_thread) {
    io_context loop;  // of several threads, so it locks
    std::vector<steady_timer> batch;
    for (std::size_t i = 0; i != timer_batch; ++i) batch.emplace_back(loop);
    canceller cancel{[&] {
      for (steady_timer& one : batch) one.cancel();
    }};
    state.measure(timer_rounds, timer_rounds, [&] {
      const auto at = steady_timer::clock_type::now() + timer_limit;
      std::size_t cancelled = 0;
      for (std::size_t i = 0; i != timer_rounds; i += timer_batch) {
        for (steady_timer& one : batch) {
          one.expires_at(at);
          one.async_wait(
              [&](const boost::system::error_code& how) { cancelled += how == boost::asio::error::operation_aborted; });
        }
        cancel();
        loop.restart();
        loop.poll();
      }
      return cancelled;
    });
    return;
  }
  io_context loop{1};
  std::vector<std::unique_ptr<steady_timer>> beside;
  for (std::size_t i = 0; i != timers_beside(state.size()); ++i) {
    beside.push_back(std::make_unique<steady_timer>(loop, due_beside()));
    beside.back()->async_wait([](const boost::system::error_code&) {});
  }
  state.measure(timer_rounds, timer_rounds, [&] {
    rounds all{loop};
    loop.restart();
    all.next();
    while (all.cancelled() != timer_rounds) loop.run_one();
    return all.cancelled();
  });
}
