// Calls that block their thread: a driver, or a library without coroutines. They run on threads of a blocking pool, and a task
// awaits them.
//
//     std::string text = co_await w::blocking(read_file, path);
//
// The pool starts without threads. It makes one when a call finds none idle, up to a limit, and ends those that were idle for a
// while. When all are busy, a call waits in a queue whose nodes lie in the frames of the callers: it needs no memory, slows its
// callers down, and a stop removes a call from it.
//
// A call that has begun can't be stopped: a stop waits for its end, unless the caller has allowed that it be abandoned. An
// abandoned call keeps its thread, and the pool may make another one instead, up to a limit. So calls that hang, as on a server
// that is gone, delay neither a task that was stopped nor other calls.
//
// Rejected: (a) an executor that tasks hop to: they would do more there than the blocking call. (b) A thread for each call
// (new_thread_executor): a hundred thousand calls need a hundred thousand threads. (c) A limit for the queue, beyond which
// calls fail: since waiting calls lie in their callers' frames, a limit of callers (a semaphore, scope::room) does the same.
#pragma once

#include <cstddef>
#include <exception>
#include <type_traits>
#include <utility>
#include <weft/detail/base/duration.hpp>
#include <weft/detail/base/forward.hpp>
#include <weft/detail/base/invoke.hpp>
#include <weft/detail/base/standard.hpp>
#include <weft/detail/pool/blocking_call.hpp>
#include <weft/task.hpp>

namespace weft {

/// The options of a blocking_pool.
struct blocking_options {
  unsigned threads = 64;                              ///< the most threads
  unsigned keep = 0;                                  ///< how many threads do not end when they are idle
  detail::time_span idle = std::chrono::seconds{10};  ///< how long another thread is idle before it ends
  const char* name = "weft-block";                    ///< names its threads; the system keeps 15 characters
  /// How many calls may be abandoned at once, each with a thread beyond `threads`. After that a stop waits.
  unsigned max_abandoned = 16;
};

/// What a blocking_pool is doing at the moment.
struct blocking_stats {
  unsigned threads;     ///< how many threads it has
  unsigned busy;        ///< how many of these run a call
  std::size_t waiting;  ///< calls in the queue
  unsigned abandoned;   ///< how many of the busy threads run an abandoned call
};
/// The same for the process's own pool; all 0 before its first call. Any thread.
blocking_stats process_blocking_stats() noexcept;

/// Allows a stop to abandon a call: see the second form of blocking().
struct abandon_on_stop_t {
  explicit abandon_on_stop_t() = default;
};
/// `blocking(abandon_on_stop, …)`.
inline constexpr abandon_on_stop_t abandon_on_stop{};

/// Runs `function(args...)`, which may block, on a thread of the process's blocking pool, which has up to 64. Function and
/// arguments are moved into the frame. Gives what the function returns.
///
/// Suspends  always; resumes on its own executor.
/// Cancel    removes a call that waits for a thread: the function is not called. A call that has begun runs to its end, and its
///           result is not lost.
/// Fails     throws what the function throws; error where the pool has no thread and the system gives none.
/// Lifetime  what the arguments refer to outlives the call. At the end of the process idle threads are joined, and threads that
///           run a call end with the process.
/// Cost      two changes of thread: some microseconds.
template <class F, class... Args>
  requires std::is_invocable_v<std::decay_t<F>, std::decay_t<Args>...>
WEFT_COROUTINE_TAKES_OVER task<detail::blocking_result<F, Args...>> blocking(F&& function, Args&&... args) {
  WEFT_EXPECTS_NO_DOOMED_TEMPORARY(F);
  return detail::run_blocking<detail::blocking_result<F, Args...>, std::decay_t<F>, std::decay_t<Args>...>(
      &detail::process_blocking_core(), std::forward<F>(function), std::forward<Args>(args)...);
}

/// The same, but a stop abandons a call that has begun: the await ends stopped at once, and the call runs on to its end.
/// Therefore the function must capture nothing, and the arguments must own what they have, or it does not compile.
///
///     co_await w::blocking(w::abandon_on_stop, fetch_from_slow_server, std::move(name));
///
/// Cancel    before the call has begun, as above. Afterwards it abandons the call, unless `max_abandoned` calls are abandoned
///           already: then it waits for its end.
/// Fails     as above. What an abandoned call throws is a lost error, see error.hpp; what it returns is destroyed on its
///           thread.
/// Lifetime  the destructor of a blocking_pool waits for its abandoned calls, however long they take. Those of the process's
///           own pool end with the process.
/// Cost      as above, and an allocation.
template <class F, class... Args>
  requires std::is_invocable_v<std::decay_t<F>, std::decay_t<Args>...>
WEFT_COROUTINE_TAKES_OVER task<detail::blocking_result<F, Args...>> blocking(abandon_on_stop_t, F&& function,
                                                                             Args&&... args) {
  return detail::run_abandonable<detail::blocking_result<F, Args...>, std::decay_t<F>, std::decay_t<Args>...>(
      &detail::process_blocking_core(), std::forward<F>(function), std::forward<Args>(args)...);
}

/// Another pool for blocking calls: for a database that allows eight calls at once, say.
///
/// Threads   run() and stats() from any.
/// Lifetime  outlives the tasks that await its calls. Its destructor lets what is in line run, and joins its threads, so it
///           must not run on one: not in a call, nor in a task without an executor, which goes on there (asserted).
/// Fails     the constructor throws std::bad_alloc. In a child that was forked, a call ends the program with a sentence.
class blocking_pool {
 public:
  /// Threads are made when calls need them; none allowed ends the program.
  explicit blocking_pool(blocking_options options = {});
  blocking_pool(const blocking_pool&) = delete;
  blocking_pool& operator=(const blocking_pool&) = delete;
  ~blocking_pool();

  /// As blocking(), here.
  template <class F, class... Args>
    requires std::is_invocable_v<std::decay_t<F>, std::decay_t<Args>...>
  WEFT_COROUTINE_TAKES_OVER task<detail::blocking_result<F, Args...>> run(F&& function, Args&&... args) {
    WEFT_EXPECTS_NO_DOOMED_TEMPORARY(F);
    return detail::run_blocking<detail::blocking_result<F, Args...>, std::decay_t<F>, std::decay_t<Args>...>(
        core_, std::forward<F>(function), std::forward<Args>(args)...);
  }

  template <class F, class... Args>
    requires std::is_invocable_v<std::decay_t<F>, std::decay_t<Args>...>
  WEFT_COROUTINE_TAKES_OVER task<detail::blocking_result<F, Args...>> run(abandon_on_stop_t, F&& function,
                                                                          Args&&... args) {
    return detail::run_abandonable<detail::blocking_result<F, Args...>, std::decay_t<F>, std::decay_t<Args>...>(
        core_, std::forward<F>(function), std::forward<Args>(args)...);
  }

  blocking_stats stats() const noexcept;  ///< of one moment

 private:
  detail::blocking_core* core_;
};

}  // namespace weft
