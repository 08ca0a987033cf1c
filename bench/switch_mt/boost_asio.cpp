// It has no yield: each posts itself to the pool that it is on.
#include "workload.hpp"

#include "../harness/harness.hpp"

#include <atomic>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace asio = boost::asio;

static asio::awaitable<void> yields() {
  for (std::size_t i = 0; i != bench::switch_rounds; ++i) co_await asio::post(asio::use_awaitable);
}

void bench::run(bench::state& state) {
  asio::thread_pool pool{threads_of(state.size())};
  const std::size_t coroutines = coroutines_of(state.size()), switches = coroutines * switch_rounds;
  std::atomic<std::size_t> ended{0};  // here, since the last one may still notify
  state.measure(switches, switches, [&] {
    ended.store(0, std::memory_order_relaxed);
    for (std::size_t i = 0; i != coroutines; ++i)
      asio::co_spawn(pool, yields(), [&](const std::exception_ptr&) {
        if (ended.fetch_add(1, std::memory_order_acq_rel) + 1 == coroutines) ended.notify_one();
      });
    for (std::size_t now; (now = ended.load(std::memory_order_acquire)) != coroutines;) ended.wait(now);
    return ended.load() * switch_rounds;
  });
}
