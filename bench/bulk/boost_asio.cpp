// Functions, not coroutines: its awaitables need an io_context. They count, since a pool is joined only once.
#include "workload.hpp"

#include "../harness/harness.hpp"

#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>

void bench::run(bench::state& state) {
  boost::asio::thread_pool pool{threads_of(state.size())};
  counted all;
  marks marked;
  const auto spawn = [&] {
    for (std::size_t i = 0; i != bulk_tasks; ++i)
      boost::asio::post(pool, [&, i] {
        marked.set(i);
        all.ended();
      });
  };
  state.measure(bulk_tasks, bulk_tasks, [&] {
    if (is_from_inside(state.size()))
      boost::asio::post(pool, spawn);
    else
      spawn();
    all.wait();
    return marked.take();
  });
}
