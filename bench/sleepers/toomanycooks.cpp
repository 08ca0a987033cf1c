// With Boost.Asio's timers, through tmc-asio, all on the executor's one thread. A task that waits for one ends when it is
// cancelled.
#include "workload.hpp"

#include <boost/asio/steady_timer.hpp>
#include <cstddef>
#include <deque>
#include <utility>

#include <tmc/asio/aw_asio.hpp>
#include <tmc/asio/ex_asio.hpp>
#include <tmc/aw_yield.hpp>
#include <tmc/fork_group.hpp>
#include <tmc/sync.hpp>
#include <tmc/task.hpp>

namespace {

using boost::asio::steady_timer;

tmc::task<void> sleeper(steady_timer& timer, std::size_t& begun, std::size_t& ended) {
  ++begun;
  co_await timer.async_wait(tmc::aw_asio);
  ++ended;
}

tmc::task<std::size_t> all(tmc::ex_asio& on, std::size_t count) {
  std::deque<steady_timer> timers;
  std::size_t begun = 0, ended = 0;
  auto sleepers = tmc::fork_group();
  for (std::size_t i = 0; i != count; ++i)
    sleepers.fork(sleeper(timers.emplace_back(on.ioc, bench::asleep), begun, ended));
  while (begun != count) co_await tmc::reschedule();
  for (steady_timer& one : timers) one.cancel();
  co_await std::move(sleepers);
  co_return ended;
}

}  // namespace

void bench::run(bench::state& state) {
  tmc::ex_asio on;
  on.init();
  state.measure(state.size(), state.size(), [&] { return tmc::post_waitable(on, all(on, state.size())).get(); });
  on.teardown();
}
