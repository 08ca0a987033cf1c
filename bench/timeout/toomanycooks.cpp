// tmc::select of a qu_spsc_bounded with room for one, and of Boost.Asio's timer through tmc-asio, on that executor's one thread.
// A receive that waits can't be taken back, so what cancels it is the end of the queue.
#include "workload.hpp"

#include <boost/asio/steady_timer.hpp>
#include <cstddef>
#include <tuple>
#include <utility>

#include <tmc/asio/aw_asio.hpp>
#include <tmc/asio/ex_asio.hpp>
#include <tmc/qu_spsc_bounded.hpp>
#include <tmc/select.hpp>
#include <tmc/spawn_tuple.hpp>
#include <tmc/sync.hpp>
#include <tmc/task.hpp>

namespace {

using queue = tmc::qu_spsc_bounded<std::size_t>;

tmc::task<std::size_t> echo(queue& there, queue& back) {
  while (auto number = co_await there.pull()) co_await back.push(number.value() + 1);
  co_return 0;
}

tmc::task<std::size_t> receive(queue& from) {
  auto number = co_await from.pull();
  co_return number.value();
}

tmc::task<std::size_t> call(boost::asio::steady_timer& timer, queue& there, queue& back, std::chrono::seconds limit) {
  std::size_t number = 0;
  for (std::size_t i = 0; i != bench::timeout_rounds; ++i) {
    co_await there.push(number);
    if (limit.count() != 0) {
      timer.expires_after(limit);
      const auto first = co_await tmc::select(tmc::cancellable(receive(back), [&] { back.close(); }),
                                              tmc::cancellable(timer.async_wait(tmc::aw_asio), timer));
      number = std::get<0>(first);
    } else {
      number = co_await receive(back);
    }
  }
  there.close();
  co_return number;
}

tmc::task<std::size_t> both(tmc::ex_asio& on, std::chrono::seconds limit) {
  queue there{1}, back{1};
  boost::asio::steady_timer timer{on.ioc};
  auto [nothing, number] = co_await tmc::spawn_tuple(echo(there, back), call(timer, there, back, limit));
  co_return number;
}

}  // namespace

void bench::run(bench::state& state) {
  tmc::ex_asio on;
  on.init();
  const std::chrono::seconds limit{state.size()};
  state.measure(timeout_rounds, timeout_rounds, [&] { return tmc::post_waitable(on, both(on, limit)).get(); });
  on.teardown();
}
