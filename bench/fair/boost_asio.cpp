#include "workload.hpp"

#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>

namespace {

void again(boost::asio::thread_pool& pool, const std::atomic<bool>& over) {
  if (over.load(std::memory_order_relaxed)) return;
  boost::asio::post(pool, [&] { again(pool, over); });
}

}  // namespace

void bench::run(bench::state& state) {
  std::atomic<bool> over{false};
  boost::asio::thread_pool pool{state.size()};
  for (std::size_t i = 0; i != yielding_tasks; ++i) boost::asio::post(pool, [&] { again(pool, over); });
  short_ones(state, over, [&](std::atomic<bool>& ran) {
    boost::asio::post(pool, [&ran] { ran.store(true, std::memory_order_release); });
  });
  over = true;
  pool.join();
}
