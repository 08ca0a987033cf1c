// Boost.Asio and tasks: its operations are awaited in a task, and its handlers run on an executor of weft's.
//
//     std::size_t n = co_await socket.async_read_some(asio::buffer(bytes), w::use_task);
//     int answer = co_await asio::co_spawn(loop, computes(), w::use_task);  // an asio::awaitable
//
//     w::boost_asio::execution_context on_pool{workers};
//     asio::post(on_pool.get_executor(), [] { puts("on weft's pool"); });
//
// Needs Boost 1.81 or later, which weft.hpp does not include. For Asio without Boost: <weft/standalone_asio.hpp>.
//
// use_task: the operation becomes a lazy task of what it completes with, without the error: of void(error_code, size_t) a
// task<size_t>, of several values a task of a std::tuple.
//
// Suspends  until the operation completes; the task resumes on its own executor, and one without an executor inside Asio's
//           handler.
// Cancel    a stop of the task is a cancellation of the operation (cancellation_type::all), sent through a strand of its executor;
//           the task waits for what comes. An operation that ends with operation_aborted then, ends the task stopped. One that
//           can't be cancelled goes on, and so does the task.
// Fails     of an error_code with a std::system_error of that code; of a std::exception_ptr with that. Where the handler is
//           destroyed without a call, as with its io_context, the task ends stopped.
// Lifetime  as with Asio's own tokens: the object outlives the operation. What the operation is called with is kept in the task.
// Cost      a frame, and one allocation for what a cancellation needs.
#pragma once

#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/execution.hpp>
#include <boost/asio/execution_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/strand.hpp>
#include <boost/system/error_code.hpp>
#include <boost/system/system_error.hpp>

#define WEFT_ASIO ::boost::asio
#define WEFT_ASIO_SYSTEM ::boost::system
#define WEFT_ASIO_ADAPTER boost_asio
#include <weft/detail/interop/asio_adapter.hpp>
#undef WEFT_ASIO
#undef WEFT_ASIO_SYSTEM
#undef WEFT_ASIO_ADAPTER

template <class Signature>
class boost::asio::async_result<weft::use_task_t, Signature> : public weft::boost_asio::task_of_operation<Signature> {};
