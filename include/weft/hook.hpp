// Hooks: in a fiber that has them, the blocking calls of code that knows nothing of weft suspend the fiber, not its thread.
//
//     int answer(const char* question);  // of a library in C, which connects, writes, polls and reads
//
//     w::task<int> ask(w::executor& worker, const char* question) {
//       co_return co_await w::start_on(worker, w::hooked(answer, question));
//     }
//
// A target of its own, weft::hook: it defines functions of the C library's names in front of that library's (read, poll,
// connect, ...), and calls those. Outside of a fiber that has hooks each is a test of one thread-local and a jump.
//
// No descriptor is changed: none becomes non-blocking, so the program, its children and others that share the file see it as
// they do without weft. A hooked call is tried in a way that does not block, and where that finds nothing, the fiber waits until
// the descriptor is ready, as for sockets of weft's own. src/hook/waiting.hpp says how, the book what is not reached.
//
// Rejected: (a) to make every descriptor non-blocking behind the program's back, and to hide that from it: the flag belongs to
// the open file, which children and other processes share. (b) A wrapper that LD_PRELOAD loads: which programs are hooked would
// be decided by who starts them. (c) A stop that unwinds through frames of C: these free nothing then.
#pragma once

#include <cstddef>
#include <type_traits>
#include <utility>
#include <weft/coroutine.hpp>
#include <weft/detail/base/invoke.hpp>
#include <weft/detail/fiber/fiber_core.hpp>
#include <weft/task.hpp>

namespace weft {

/// Which calls wait in weft. `hooked({.names = false}, f)`
struct hook_options {
  bool sleep = true;  ///< sleep, usleep, nanosleep, clock_nanosleep
  bool sockets =
      true;  ///< connect, accept, and reads and writes of all that may lack data or room: sockets, pipes, terminals
  bool poll = true;    ///< poll, ppoll, select, pselect, epoll_wait, epoll_pwait
  bool names = true;   ///< getaddrinfo, which goes to the process's pool for blocking calls
  bool files = false;  ///< reads and writes of regular files, which go there, too; else they block as ever
  /// For hooked(): what C code needs, which does not count on small stacks.
  stack_options stack = {.size = std::size_t{256} << 10};
};

namespace detail {
class io_service;

/// What a fiber has while its calls are hooked.
struct hook_state {
  hook_options kinds;
  hook_state* outer = nullptr;
  unsigned locks = 0;              // of pthread, which it holds
  bool is_over = false;            // in a child of fork(), which has no workers
  io_service* waits_by = nullptr;  // where watches of its numbers may have stayed
};
}  // namespace detail

/// Has the calls of the running fiber hooked, to the end of the block; within it another one changes which.
///
///     const w::hooks on;
///     const int answer = ask_the_library();
///
/// Cancel    a stop ends a call that waits with -1 and ECANCELED (getaddrinfo with EAI_SYSTEM and that), and so do those that
///           may wait later: no frame is unwound. weft::await throws `stopped` as ever.
/// Threads   the fiber stays on its thread: foreign code keeps the addresses of thread-locals, such as errno's. On a pool, or
///           without an executor, it ends the program with a sentence: run it on one worker, as rt.workers().worker(0) or that
///           of a worker_group. While the fiber holds a mutex, a lock or a spin lock of pthread's or C11's that it has locked
///           with hooks on, calls block the thread. One that it held before is not known: unlock it before.
/// Misuse    outside of a fiber it ends the program with a sentence.
/// Lifetime  on the fiber's own stack.
class hooks {
 public:
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

/// Runs a plain function in a fiber whose blocking calls are hooked, and gives what it gives. It and its arguments are moved
/// into the frame.
///
/// Suspends  while the function waits in a hooked call; resumes on its own executor, which is the fiber's, too.
/// Cancel    the calls of the function fail with ECANCELED; how it ends then is its own affair.
/// Fails     throws what the function throws. Where there is no stack, the call throws, as scope::go() does.
/// Threads   as `hooks`.
/// Cost      a fiber, with a stack of 256 KiB, of which the pages that it touches take memory.
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
