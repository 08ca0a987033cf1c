// A function, not a coroutine: its awaitables need an io_context.
#include "workload.hpp"

#include "../harness/harness.hpp"

#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>

void bench::run(bench::state& state) {
  boost::asio::thread_pool pool{state.size()};
  state.measure(posts, posts, [&] {
    posted all;
    return all.by_producers([&](posted& of) { boost::asio::post(pool, [&of] { of.ran(); }); });
  });
}
