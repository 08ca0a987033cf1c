// Boost.Asio: tasks await its operations, and its handlers run on weft's executors.
//
//     std::size_t n = co_await socket.async_read_some(asio::buffer(bytes), w::use_task);
//     int answer = co_await asio::co_spawn(loop, computes(), w::use_task);  // an asio::awaitable
//
//     w::boost_asio::execution_context on_pool{workers};
//     asio::post(on_pool.get_executor(), [] { puts("on weft's pool"); });
//
// Needs Boost 1.81 or later, which weft.hpp does not include. For Asio without Boost: <weft/standalone_asio.hpp>.
//
// use_task, a completion token: the operation becomes a lazy task that gives what it completes with, without the error. For
// void(error_code, size_t) that is a task<size_t>, for several values a task of a std::tuple.
//
// Suspends  until the operation completes. The task resumes on its own executor; one without an executor, inside Asio's
//           handler.
// Cancel    a stop of the task cancels the operation (cancellation_type::all) through a strand of the operation's executor;
//           then the task waits for the operation to complete. If that ends with operation_aborted, the task ends stopped. An
//           operation that can't be cancelled goes on, and so does the task.
// Fails     for an error_code, throws a std::system_error of that code; for a std::exception_ptr, that exception. If the
//           handler is destroyed without having been called, as with its io_context, the task ends stopped.
// Lifetime  as with Asio's own tokens: the I/O object outlives the operation. The arguments of the operation are kept in the
//           task.
// Cost      a frame, and one allocation for the cancellation.
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
