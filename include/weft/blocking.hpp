// Calling what blocks: a file, a driver, a library that knows no coroutines. It runs on a thread of a pool that is made for
// that, and the task waits for it as for anything else.
//
//     std::string text = co_await w::blocking(read_file, path);
//
// The pool has no thread until it is used, makes one where a call finds none free, up to a limit, and lets go of those that
// have had nothing to do for a while. A call that finds all at work waits its turn in its task's frame: so the line takes
// no memory of its own, whoever calls is held up, and a stop takes the call out of the line again.
//
// A call that has begun can't be stopped: a stop waits for it, unless the caller has said that it may be abandoned. Then the
// call keeps its thread, and the pool has another one in its place, up to a limit: so calls that hang, on a server that has
// gone, hold up neither whoever was stopped nor the other calls.
//
// Rejected: (a) an executor that tasks hop to: they would go on there with what does not block. (b) A thread a call
// (new_thread_executor): a hundred thousand calls want a hundred thousand threads. (c) A limit of how many wait, beyond which a
// call fails: each already waits in its caller's frame, so a limit of callers, a semaphore or scope::room, is that limit.
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

/// The threads that blocking calls have, and how many calls wait for one.
struct blocking_options {
  unsigned threads = 64;                              ///< at most
  unsigned keep = 0;                                  ///< as many stay, once they are there
  detail::time_span idle = std::chrono::seconds{10};  ///< after which a thread that has nothing to do ends
  const char* name = "weft-block";                    ///< of its threads; 15 characters are kept
  unsigned max_abandoned =
      16;  ///< calls that may be abandoned at once, each with a thread beyond `threads`; then a stop waits
};

/// What a blocking_pool is doing at the moment.
struct blocking_stats {
  unsigned threads;     ///< how many it has
  unsigned busy;        ///< of these, at a call
  std::size_t waiting;  ///< calls in line
  unsigned abandoned;   ///< of those that are busy, at a call that nobody waits for any more
};
/// Of the process's own; all 0 before it was used. Any thread.
blocking_stats process_blocking_stats() noexcept;

/// Says of a call that a stop need not wait for it; see the second form of blocking().
struct abandon_on_stop_t {
  explicit abandon_on_stop_t() = default;
};
/// `blocking(abandon_on_stop, …)`.
inline constexpr abandon_on_stop_t abandon_on_stop{};

/// Awaits `function(args...)`, which may block, on a thread of the process's blocking_pool, of up to 64. What is given is
/// moved into the frame.
///
/// Suspends  always; resumes on its own executor.
/// Cancel    takes it out of the line, and it is not called. Once it runs, it is waited for, and what it gives is not lost.
/// Fails     throws what the function throws; a weft::error where there is no thread and the system gives none.
/// Lifetime  what it refers to outlives it. When the process ends, threads that have nothing to do are joined first; one
///           that is at a call then goes with the process.
/// Cost      two hand-overs between threads: some microseconds.
template <class F, class... Args>
  requires std::is_invocable_v<std::decay_t<F>, std::decay_t<Args>...>
WEFT_COROUTINE_TAKES_OVER task<detail::blocking_result<F, Args...>> blocking(F&& function, Args&&... args) {
  WEFT_EXPECTS_NO_DOOMED_TEMPORARY(F);
  return detail::run_blocking<detail::blocking_result<F, Args...>, std::decay_t<F>, std::decay_t<Args>...>(
      &detail::process_blocking_core(), std::forward<F>(function), std::forward<Args>(args)...);
}

/// The same of a call that a stop abandons once it has begun: the await ends stopped at once, and the call goes on to its own end
/// with all that it uses. So the function captures nothing, and the arguments own what they have, or it does not compile.
///
///     co_await w::blocking(w::abandon_on_stop, fetch_from_slow_server, std::move(name));
///
/// Cancel    before the call has begun as above. Then it is abandoned, unless `max_abandoned` are: it is waited for then.
/// Fails     as above. What an abandoned call throws is a lost error, see error.hpp; what it returns is destroyed on its thread.
/// Lifetime  an abandoned call of a blocking_pool is waited for by that one's destructor, without a limit, as its code and its
///           thread belong to the program; one of the process's own pool goes with the process.
/// Cost      as above, and an allocation.
template <class F, class... Args>
  requires std::is_invocable_v<std::decay_t<F>, std::decay_t<Args>...>
WEFT_COROUTINE_TAKES_OVER task<detail::blocking_result<F, Args...>> blocking(abandon_on_stop_t, F&& function,
                                                                             Args&&... args) {
  return detail::run_abandonable<detail::blocking_result<F, Args...>, std::decay_t<F>, std::decay_t<Args>...>(
      &detail::process_blocking_core(), std::forward<F>(function), std::forward<Args>(args)...);
}

/// A pool of one's own for calls that block: for a database that allows eight at once, say.
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
