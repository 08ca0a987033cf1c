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

void bench::run(bench::state& state) {
  asio::io_context context{BOOST_ASIO_CONCURRENCY_HINT_UNSAFE};
  const std::uint64_t depth = state.size();
  state.measure(depth, sum_result(depth), [&] {
    std::uint64_t sum = 0;
    asio::co_spawn(context, sum_to<task>(depth), [&](const std::exception_ptr& failure, std::uint64_t value) {
      if (failure) std::rethrow_exception(failure);
      sum = value;
    });
    context.restart();
    context.run();
    return sum;
  });
}
