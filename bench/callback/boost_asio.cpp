// async_initiate is Asio's own bridge. The handler outlives the initiating function, so it has to be put on the heap.
// See chain/boost_asio.cpp for the choice of context and executor.
#include "workload.hpp"

#include "../harness/harness.hpp"

#include <boost/asio/async_result.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <exception>
#include <memory>
#include <type_traits>
#include <utility>

namespace asio = boost::asio;

namespace {

using executor = asio::io_context::executor_type;

template <class T>
using task = asio::awaitable<T, executor>;

task<std::uint64_t> await_increment(std::uint64_t value) {
  return asio::async_initiate<const asio::use_awaitable_t<executor>, void(std::uint64_t)>(
      [value](auto&& handler) {
        using handler_type = std::decay_t<decltype(handler)>;
        auto owned = std::make_unique<handler_type>(std::forward<decltype(handler)>(handler));
        bench::bench_increment(
            value,
            [](void* context, std::uint64_t result) {
              const std::unique_ptr<handler_type> handler{static_cast<handler_type*>(context)};
              (*handler)(result);
            },
            owned.release());
      },
      asio::use_awaitable_t<executor>{});
}

}  // namespace

void bench::run(bench::state& state) {
  asio::io_context context{BOOST_ASIO_CONCURRENCY_HINT_UNSAFE};
  state.measure(callback_awaits, callback_awaits, [&] {
    std::uint64_t count = 0;
    asio::co_spawn(context, count_by_callback<task>(&await_increment),
                   [&](const std::exception_ptr& failure, std::uint64_t value) {
                     if (failure) std::rethrow_exception(failure);
                     count = value;
                   });
    context.restart();
    context.run();
    return count;
  });
}
