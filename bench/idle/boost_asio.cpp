#include "workload.hpp"

#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>

void bench::run(bench::state& state) {
  boost::asio::thread_pool pool{threads_of(state.size())};
  wake_ups(state, [&](std::atomic<bool>& ran) {
    boost::asio::post(pool, [&ran] { ran.store(true, std::memory_order_release); });
  });
}
