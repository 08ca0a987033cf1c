// A function: a coroutine would need a result that nobody waits for.
#include "workload.hpp"

#include "../harness/harness.hpp"

#include <concurrencpp/concurrencpp.h>
#include <memory>

void bench::run(bench::state& state) {
  const auto pool =
      std::make_shared<concurrencpp::thread_pool_executor>("post", state.size(), std::chrono::seconds{60});
  state.measure(posts, posts, [&] {
    posted all;
    return all.by_producers([&](posted& of) { pool->post([&of] { of.ran(); }); });
  });
  pool->shutdown();
}
