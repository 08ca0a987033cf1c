// Asio without Boost: tasks await its operations, and its handlers run on weft's executors.
//
//     std::size_t n = co_await socket.async_read_some(asio::buffer(bytes), w::use_task);
//     int answer = co_await asio::co_spawn(loop, computes(), w::use_task);  // an asio::awaitable
//
//     w::standalone_asio::execution_context on_pool{workers};
//     asio::post(on_pool.get_executor(), [] { puts("on weft's pool"); });
//
// Needs Asio 1.22 or later, which weft.hpp does not include. <weft/boost_asio.hpp> says what use_task does.
#pragma once

#include <asio/associated_cancellation_slot.hpp>
#include <asio/associated_executor.hpp>
#include <asio/async_result.hpp>
#include <asio/cancellation_signal.hpp>
#include <asio/error.hpp>
#include <asio/execution.hpp>
#include <asio/execution_context.hpp>
#include <asio/post.hpp>
#include <asio/strand.hpp>
#include <system_error>

#define WEFT_ASIO ::asio
#define WEFT_ASIO_SYSTEM std
#define WEFT_ASIO_ADAPTER standalone_asio
#include <weft/detail/interop/asio_adapter.hpp>
#undef WEFT_ASIO
#undef WEFT_ASIO_SYSTEM
#undef WEFT_ASIO_ADAPTER

template <class Signature>
class asio::async_result<weft::use_task_t, Signature> : public weft::standalone_asio::task_of_operation<Signature> {};
