// A coroutine that posts itself to the other pool, and back.
#include "workload.hpp"

#include "../harness/harness.hpp"

#include <atomic>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace {

namespace asio = boost::asio;

asio::awaitable<void> hop(asio::thread_pool& one, asio::thread_pool& other) {
  for (std::size_t i = 0; i != bench::hop_rounds; ++i) {
    co_await asio::post(asio::bind_executor(other.get_executor(), asio::use_awaitable));
    co_await asio::post(asio::bind_executor(one.get_executor(), asio::use_awaitable));
  }
}

}  // namespace

void bench::run(bench::state& state) {
  asio::thread_pool one{1}, other{1};
  const std::size_t hops = hop_tasks * hop_rounds;
  std::atomic<std::size_t> ended{0};  // here, since the last one may still notify
  state.measure(hops, hops, [&] {
    ended.store(0, std::memory_order_relaxed);
    for (std::size_t i = 0; i != hop_tasks; ++i)
      asio::co_spawn(one, hop(one, other), [&](const std::exception_ptr&) {
        if (ended.fetch_add(1, std::memory_order_acq_rel) + 1 == hop_tasks) ended.notify_one();
      });
    for (std::size_t now; (now = ended.load(std::memory_order_acquire)) != hop_tasks;) ended.wait(now);
    return hop_tasks * hop_rounds;
  });
}
