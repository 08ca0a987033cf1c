// An io_context that is told that only one thread will run it, and awaitables that know its executor by type.
#include "workload.hpp"

#include "../harness/harness.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <exception>

namespace asio = boost::asio;

namespace {

template <class T>
using task = asio::awaitable<T, asio::io_context::executor_type>;

}  // namespace

void bench::run(bench::state& state) {
  asio::io_context context{BOOST_ASIO_CONCURRENCY_HINT_UNSAFE};
  state.measure(chain_levels, chain_result, [&] {
    int result = 0;
    asio::co_spawn(context, lazy_fn<task, chain_levels>(), [&](const std::exception_ptr& failure, int value) {
      if (failure) std::rethrow_exception(failure);
      result = value;
    });
    context.restart();
    context.run();
    return result;
  });
}
