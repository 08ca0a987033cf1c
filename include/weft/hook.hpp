// Hooks: in a fiber that has them on, blocking calls of code that does not know weft suspend the fiber, and not its thread.
//
//     int answer(const char* question);  // a C library's function: it connects, writes, polls and reads
//
//     w::task<int> ask(w::executor& worker, const char* question) {
//       co_return co_await w::start_on(worker, w::hooked(answer, question));
//     }
//
// Hooks work by symbol interposition: the library weft::hook defines read, poll, connect and others under the C library's names,
// and calls the C library's own functions. Outside of a fiber with hooks, a call costs one test of a thread-local and one jump.
//
// Hooks do not make descriptors non-blocking, so the program, its children and other processes that share an open file see it as
// they do without weft. (Only connect() sets O_NONBLOCK, for one system call.) A hooked call is first tried in a way that does
// not block. Where the try finds nothing, the fiber waits until the descriptor is ready, as for weft's own sockets.
// src/hook/waiting.hpp says how a call waits. What hook_options does not name blocks the thread as ever: stdio, getnameinfo, fsync,
// flock and lockf, sem_wait, pthread_barrier_wait, mq_receive, tcdrain and close with SO_LINGER, for example. docs/book/hooks.md
// names more.
//
// Rejected: (a) to make every descriptor non-blocking, and to hide that from the program: the flag belongs to the open file,
// which children and other processes share. (b) A library that is loaded by LD_PRELOAD: then whoever starts a program would
// decide whether it is hooked. (c) A stop that unwinds C frames: C has no destructors, so nothing would be freed.
#pragma once

#include <cstddef>
#include <type_traits>
#include <utility>
#include <weft/coroutine.hpp>
#include <weft/detail/base/invoke.hpp>
#include <weft/detail/fiber/fiber_core.hpp>
#include <weft/task.hpp>

namespace weft {

/// Which kinds of calls are hooked: `hooked({.names = false}, f)`.
struct hook_options {
  bool sleep = true;    ///< sleep, usleep, nanosleep, clock_nanosleep
  bool sockets = true;  ///< connect, accept; reads and writes of sockets, pipes, terminals, events and timers
  bool poll = true;     ///< poll, ppoll, select, pselect, epoll_wait, epoll_pwait
  bool names = true;    ///< getaddrinfo, which runs on the process's pool for blocking calls
  bool files = false;   ///< reads and writes of regular files, on the same pool; off: they block the thread
  /// The stack of the fiber that hooked() makes. C code expects a large one.
  stack_options stack = {.size = std::size_t{256} << 10};
};

namespace detail {
class io_service;

/// State of one `hooks` object. The running fiber points to that of the innermost one.
struct hook_state {
  hook_options kinds;
  hook_state* outer = nullptr;
  unsigned locks = 0;                // pthread locks that the fiber holds
  bool is_over = false;              // this is a forked child, which has no workers: calls are plain ones
  io_service* watched_by = nullptr;  // the service that may keep watching sockets which this fiber waited for
};
}  // namespace detail

/// Hooks the calls of the running fiber to the end of the block. A nested one replaces the options to the end of its own block.
///
///     const w::hooks on;
///     const int answer = ask_the_library();
///
/// Cancel    a stop makes the waiting call return -1 with errno ECANCELED (getaddrinfo returns EAI_SYSTEM with that errno), and
///           so does every later call that may wait. No frame is unwound. weft::await still throws `stopped`.
/// Threads   the fiber stays on its thread: foreign code keeps the addresses of thread-locals, such as errno's. So the fiber
///           must run on one worker, as rt.workers().worker(0) or that of a worker_group. While it holds a pthread or C11
///           mutex, rwlock or spin lock that it has locked with hooks on, hooked calls block the thread. A lock that it took
///           before is not counted: unlock it first.
/// Misuse    outside of a fiber, on a pool and without an executor, the constructor ends the program with a sentence.
/// Lifetime  a local variable on the fiber's own stack.
class hooks {
 public:
  /// `options`: which calls are hooked.
  explicit hooks(const hook_options& options = {}) noexcept;
  hooks(const hooks&) = delete;
  ~hooks();

 private:
  detail::hook_state state_;
  detail::fiber& fiber_;
};

namespace detail {
template <class F>
struct hooked_function {
  hook_options options;
  F function;
  template <class... Args>
  decltype(auto) operator()(Args&&... args) && {
    const hooks on{options};
    return detail::invoke(std::move(function), std::forward<Args>(args)...);
  }
};
}  // namespace detail

/// Runs a plain function in a fiber whose blocking calls are hooked, and returns the function's result. The function and its
/// arguments are moved into the frame.
///
/// Suspends  while the function waits in a hooked call; resumes on the awaiting task's executor, which is the fiber's, too.
/// Cancel    the function's hooked calls fail with ECANCELED. The function decides how it ends then.
/// Fails     throws what the function throws. The call of hooked() itself throws if no stack can be had, as scope::go() does.
/// Threads   as `hooks`.
/// Cost      a fiber with a stack of 256 KiB, of which only the pages that are touched take memory.
template <class F, class... Args>
  requires std::is_invocable_v<std::decay_t<F>, std::decay_t<Args>...>
WEFT_COROUTINE_TAKES_OVER auto hooked(const hook_options& options, F&& f, Args&&... args) {
  using function = std::decay_t<F>;
  detail::reserved_stack stack{options.stack, detail::user_of<function>(f)};  // before `f` is moved
  return detail::run_in_fiber<detail::hooked_function<function>, std::decay_t<Args>...>(
      std::move(stack), detail::hooked_function<function>{options, std::forward<F>(f)}, std::forward<Args>(args)...);
}
template <class F, class... Args>
  requires std::is_invocable_v<std::decay_t<F>, std::decay_t<Args>...>
WEFT_COROUTINE_TAKES_OVER auto hooked(F&& f, Args&&... args) {
  return hooked(hook_options{}, std::forward<F>(f), std::forward<Args>(args)...);
}

}  // namespace weft
