// The runtime: a pool whose idle workers wait for sockets. Servers run in one.
//
//     int main() { return w::run_main(serve()); }
//
// or, for more than one call:
//
//     w::runtime rt{{.threads = 4}};
//     rt.run(serve());
//
// Sockets and other descriptors that are made in a runtime's tasks are watched by its workers, by io_uring or by epoll. Outside
// of any runtime they work as well: a thread of the process waits for them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <weft/executor.hpp>
#include <weft/hop.hpp>
#include <weft/io_backend.hpp>
#include <weft/pool.hpp>
#include <weft/stop.hpp>
#include <weft/task.hpp>

namespace weft {

/// The options of a runtime: `runtime rt{{.threads = 4}};`
struct runtime_options {
  unsigned threads = 0;  ///< how many workers; 0: available_processors()
  io_backend io = io_backend::automatic;
  const char* name = "weft";   ///< as pool_options::name
  bool pin = false;            ///< as pool_options::pin
  unsigned spare_workers = 0;  ///< as pool_options::spare_workers
  bool guest = false;          ///< has no threads, and runs where another library's event loop calls run_ready()
};

namespace detail {
struct caller_works {};  // for run(), below
}  // namespace detail

/// A work-stealing pool whose idle workers wait for sockets.
///
/// Threads   any thread may call all members, except during construction and destruction.
/// Lifetime  outlives all work that was started on it, and all streams, listeners and other descriptors that were made in it:
///           otherwise it ends the program with a sentence.
/// Fails     the constructor throws error where the system gives no thread or no epoll set, or where the options or WEFT_IO ask
///           for something that the system or this build of weft does not have; and std::bad_alloc.
/// Cost      that of a pool, and two descriptors. With epoll 2 KiB for each worker; with io_uring some 40 KiB, which count
///           against RLIMIT_MEMLOCK.
class runtime {
 public:
  explicit runtime(runtime_options options = {});
  /// For the function run(): the thread that calls the member run() is the last of `threads` workers meanwhile. One call, by
  /// one thread.
  runtime(runtime_options options, detail::caller_works);
  runtime(const runtime&) = delete;
  ~runtime();

  /// Runs an awaitable on the workers, from its beginning, and blocks the calling thread until it has ended. The function run()
  /// below also works on the calling thread.
  ///
  /// Cancel    when `stop` is stopped, so is the task.
  /// Fails     throws what the task threw, or `stopped` if it ended stopped. Called inside a task it ends the program with a
  ///           sentence: co_await start_on() there.
  template <detail::awaitable_argument Awaitable>
  await_result<Awaitable> run(Awaitable&& awaitable, stop_token stop = {}) {
    if (!is_guest()) return workers().run(std::forward<Awaitable>(awaitable), stop);
    using value_type = await_result<Awaitable>;
    bool over = false;
    std::optional<result<value_type>> ended;
    weft::start(
        executor(), std::forward<Awaitable>(awaitable),
        [&](result<value_type> how) {
          ended.emplace(std::move(how));
          over = true;
        },
        stop);
    run_until(over);
    if (ended->is_stopped()) detail::throw_stopped(stop);
    return (*std::move(ended)).value();
  }
  template <int = 0>
  void run(detail::refused<>, stop_token = {});
  template <int = 0>
  detail::void_is_no_awaitable run(...);

  /// Makes a runtime usable wherever an executor is taken.
  operator weft::executor&() const noexcept { return executor(); }  // NOLINT: stands for it
  weft::executor& executor() const noexcept;

  /// Its pool, for figures and limit_awake(). A guest has none: it ends the program with a sentence.
  const pool& workers() const noexcept;

  // ---- a guest in another library's loop
  //
  //     w::runtime rt{{.guest = true}};
  //     w::start(rt, session(), [](w::result<void>) {});
  //     toolkit.watch_readable(rt.descriptor(), [&] { rt.run_ready(100); });
  //
  // Only the first thread that calls run_ready() may call it. A guest waits by epoll. Timers fire on the process's thread for
  // them, and post to it, as any thread may.

  bool is_guest() const noexcept;  ///< whether another loop runs it
  /// A descriptor that is readable when there is something to run. It belongs to the runtime, and never changes.
  int descriptor() const noexcept;
  /// Runs up to `budget` jobs that are ready, and does not block. Gives how many it has run. If some are left, the descriptor
  /// is readable.
  ///
  /// Misuse  called on a second thread, or by one of its tasks, it ends the program with a sentence.
  std::size_t run_ready(std::size_t budget = 64);

  io_backend backend() const noexcept;  ///< how it waits for sockets
  io_stats stats() const noexcept;      ///< what it has done for sockets since it was made
  /// Explains in sentences how it waits for sockets, and why.
  std::string explain() const;

 private:
  struct parts;
  void run_until(const bool& over) noexcept;
  std::unique_ptr<parts> parts_;
};

namespace detail {
/// While it lives, its thread, which works in a runtime, has SIGPIPE blocked, as a runtime's own threads have: a task behaves
/// the same on either.
class as_worker {
 public:
  as_worker() noexcept;
  as_worker(const as_worker&) = delete;
  ~as_worker();

 private:
  bool was_blocked_, was_pending_;
};

/// Writes the exception that is being handled to stderr, and gives the exit status of a program that has failed.
int report_failure() noexcept;
}  // namespace detail

/// Runs an awaitable in a runtime of its own, of which the calling thread is a worker meanwhile. With `{.threads = 1}` it is
/// the only one, so all tasks run on it. `pin` and `name` apply to the threads that are made: the calling one keeps its
/// processors and its name.
///
///     w::run({.threads = 4}, serve());
///
/// Cancel    when `stop` is stopped, so is the task.
/// Fails     throws what the task threw, or `stopped` if it ended stopped; and what the constructor of a runtime throws. Called
///           inside a task it ends the program with a sentence.
/// Signals   the calling thread still receives signals that are sent to the process, so a handler may interrupt a task there.
///           SIGPIPE is blocked on it meanwhile, as on all workers.
template <detail::awaitable_argument Awaitable>
await_result<Awaitable> run(runtime_options options, Awaitable&& awaitable, stop_token stop = {}) {
  const detail::as_worker works;
  runtime rt{options, detail::caller_works{}};
  return rt.run(std::forward<Awaitable>(awaitable), stop);
}
template <detail::awaitable_argument Awaitable>
await_result<Awaitable> run(Awaitable&& awaitable, stop_token stop = {}) {
  return run(runtime_options{}, std::forward<Awaitable>(awaitable), stop);
}
/// The same, with the options behind the awaitable.
template <detail::awaitable_argument Awaitable>
await_result<Awaitable> run(Awaitable&& awaitable, runtime_options options, stop_token stop = {}) {
  return run(options, std::forward<Awaitable>(awaitable), stop);
}
template <int = 0>
void run(runtime_options, detail::refused<>, stop_token = {});
template <int = 0>
void run(detail::refused<>, runtime_options, stop_token = {});
template <int = 0>
void run(detail::refused<>, stop_token = {});
template <int = 0>
detail::void_is_no_awaitable run(runtime_options, ...);
template <int = 0>
detail::void_is_no_awaitable run(...);

/// The same for main(): gives 0, or 1 after it has written to stderr how the task has failed or that it was stopped.
template <detail::awaitable_argument Awaitable>
int run_main(runtime_options options, Awaitable&& awaitable) {
  try {
    static_cast<void>(run(options, std::forward<Awaitable>(awaitable)));
    return 0;
  } catch (...) {
    return detail::report_failure();
  }
}
/// The same, with the options behind the awaitable, or without any.
template <detail::awaitable_argument Awaitable>
int run_main(Awaitable&& awaitable, runtime_options options = {}) {
  return run_main(options, std::forward<Awaitable>(awaitable));
}
template <int = 0>
void run_main(runtime_options, detail::refused<>);
template <int = 0>
void run_main(detail::refused<>, runtime_options = {});
template <int = 0>
detail::void_is_no_awaitable run_main(runtime_options, ...);
template <int = 0>
detail::void_is_no_awaitable run_main(...);

}  // namespace weft
