// A parallel group of spawned awaitables: what Asio offers for joining a range.
#include "workload.hpp"

#include "../harness/harness.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/experimental/parallel_group.hpp>
#include <boost/asio/io_context.hpp>
#include <exception>
#include <numeric>
#include <utility>
#include <vector>

namespace asio = boost::asio;

namespace {

template <class T>
using task = asio::awaitable<T, asio::io_context::executor_type>;

auto spawn(asio::io_context& context, task<int> chain) {
  return asio::co_spawn(context, std::move(chain), asio::deferred);
}

}  // namespace

void bench::run(bench::state& state) {
  asio::io_context context{BOOST_ASIO_CONCURRENCY_HINT_UNSAFE};
  state.measure(1, collect_all_result, [&] {
    std::vector<decltype(spawn(context, {}))> operations;
    for (auto& chain : make_chains<task>()) operations.push_back(spawn(context, std::move(chain)));

    long sum = 0;
    asio::experimental::make_parallel_group(std::move(operations))
        .async_wait(asio::experimental::wait_for_all{},
                    [&](const auto& /*order*/, const std::vector<std::exception_ptr>& failures,
                        const std::vector<int>& results) {
                      for (const auto& failure : failures)
                        if (failure) std::rethrow_exception(failure);
                      sum = std::accumulate(results.begin(), results.end(), 0L);
                    });
    context.restart();
    context.run();
    return sum;
  });
}
