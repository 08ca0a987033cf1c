// Boost.Asio's timers through tmc-asio: a wait is forked, cancelled and joined, by a task on the thread of the timers' executor.
#include "workload.hpp"

#include <boost/asio/error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstddef>
#include <deque>
#include <tuple>
#include <utility>

#include <tmc/asio/aw_asio.hpp>
#include <tmc/asio/ex_asio.hpp>
#include <tmc/fork_group.hpp>
#include <tmc/spawn.hpp>
#include <tmc/sync.hpp>
#include <tmc/task.hpp>

namespace {

using boost::asio::steady_timer;
using ended = std::tuple<boost::system::error_code>;

bool is_cancelled(const ended& how) { return std::get<0>(how) == boost::asio::error::operation_aborted; }

tmc::task<std::size_t> arm_and_cancel(steady_timer& one) {
  const auto at = steady_timer::clock_type::now() + bench::timer_limit;
  std::size_t cancelled = 0;
  for (std::size_t i = 0; i != bench::timer_rounds; ++i) {
    one.expires_at(at);
    auto waiting = tmc::spawn(one.async_wait(tmc::aw_asio)).fork();
    one.cancel();
    cancelled += is_cancelled(co_await std::move(waiting));
  }
  co_return cancelled;
}

template <class Canceller>
tmc::task<std::size_t> arm(std::deque<steady_timer>& batch, Canceller& cancel) {
  const auto at = steady_timer::clock_type::now() + bench::timer_limit;
  std::size_t cancelled = 0;
  for (std::size_t i = 0; i != bench::timer_rounds; i += batch.size()) {
    auto waiting = tmc::fork_group<ended>(batch.size());
    for (steady_timer& one : batch) {
      one.expires_at(at);
      waiting.fork(one.async_wait(tmc::aw_asio));
    }
    cancel();
    for (const ended& how : co_await std::move(waiting)) cancelled += is_cancelled(how);
  }
  co_return cancelled;
}

}  // namespace

void bench::run(bench::state& state) {
  tmc::ex_asio on;
  on.init();
  std::deque<steady_timer> all;
  if (state.size() == by_another_thread) {
    for (std::size_t i = 0; i != timer_batch; ++i) all.emplace_back(on.ioc);
    canceller cancel{[&] {
      for (steady_timer& one : all) one.cancel();
    }};
    state.measure(timer_rounds, timer_rounds, [&] { return tmc::post_waitable(on, arm(all, cancel)).get(); });
  } else {
    for (std::size_t i = 0; i != timers_beside(state.size()); ++i)
      all.emplace_back(on.ioc, due_beside()).async_wait([](const boost::system::error_code&) {});
    steady_timer one{on.ioc};
    state.measure(timer_rounds, timer_rounds, [&] { return tmc::post_waitable(on, arm_and_cancel(one)).get(); });
  }
  on.teardown();
}
