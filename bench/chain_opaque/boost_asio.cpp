// See chain/boost_asio.cpp for the choice of context and executor.
#include "workload.hpp"

#include "../harness/harness.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <exception>

namespace asio = boost::asio;

template <class T>
using task = asio::awaitable<T, asio::io_context::executor_type>;

#ifdef BENCH_HALF
template struct bench::chain_half<task, BENCH_HALF>;
#else
void bench::run(bench::state& state) {
  asio::io_context context{BOOST_ASIO_CONCURRENCY_HINT_UNSAFE};
  state.measure(chain_levels, chain_result, [&] {
    int result = 0;
    asio::co_spawn(context, level<task, chain_levels>::call(), [&](const std::exception_ptr& failure, int value) {
      if (failure) std::rethrow_exception(failure);
      result = value;
    });
    context.restart();
    context.run();
    return result;
  });
}
#endif
