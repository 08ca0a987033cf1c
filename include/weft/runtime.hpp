// The runtime: a pool whose idle workers wait for sockets. It is what a server runs in.
//
//     int main() { return w::run_main(serve()); }
//
// or, for more than one call:
//
//     w::runtime rt{{.threads = 4}};
//     rt.run(serve());
//
// What is made inside of it (net.hpp) is watched by the runtime itself, by io_uring or by epoll. Outside of any, sockets work
// as well: a thread of the process waits for them.
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

/// `runtime rt{{.threads = 4}};`
struct runtime_options {
  unsigned threads = 0;  ///< how many; 0: available_processors()
  io_backend io = io_backend::automatic;
  const char* name = "weft";   ///< of its threads, as pool_options::name
  bool pin = false;            ///< each stays on one processor, as pool_options::pin
  unsigned spare_workers = 0;  ///< as pool_options::spare_workers
  bool guest = false;          ///< no threads: it runs where another library's loop calls run_ready()
};

namespace detail {
struct caller_works {};  // for run(), below
}  // namespace detail

/// Workers that share their tasks, and wait for sockets when they have nothing to do.
///
/// Threads   any, but for construction and destruction.
/// Lifetime  outlives all that was started on it, as a pool does, and all streams, listeners and other descriptors that were
///           made in it: else it ends the program with a sentence.
/// Fails     the constructor throws error where the system gives no thread or no epoll set, and where its options or WEFT_IO
///           ask for what there is not; and std::bad_alloc.
/// Cost      that of a pool; on epoll two descriptors, and 2 KiB a worker; on io_uring two descriptors and some 40 KiB a
///           worker, which count against RLIMIT_MEMLOCK.
class runtime {
 public:
  explicit runtime(runtime_options options = {});
  /// Of `threads` workers the last one is the thread that calls run(), while it does: for one call, by one thread.
  runtime(runtime_options options, detail::caller_works);
  runtime(const runtime&) = delete;
  ~runtime();

  /// Runs an awaitable on it from its beginning, and blocks the calling thread until that has ended. It does not run on the
  /// calling thread; the function run() below is for that.
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

  /// A runtime is an executor wherever one is taken.
  operator weft::executor&() const noexcept { return executor(); }  // NOLINT: stands for it
  weft::executor& executor() const noexcept;

  /// Its workers, to be counted or limited. Of a guest, which has none, it ends the program with a sentence.
  const pool& workers() const noexcept;

  // ---- a guest in another library's loop
  //
  //     w::runtime rt{{.guest = true}};
  //     w::start(rt, session(), [](w::result<void>) {});
  //     toolkit.watch_readable(rt.descriptor(), [&] { rt.run_ready(100); });
  //
  // One thread runs it, the first that does. It waits by epoll. Timers are the process's own, and post to it as other threads
  // may.

  bool is_guest() const noexcept;  ///< whether another loop runs it
  /// Readable when there is something to run. Stays its own, and is the same for its whole life.
  int descriptor() const noexcept;
  /// Runs up to `budget` jobs that are ready, which may be fewer tasks, and does not wait. Gives how many; where some are left,
  /// the descriptor is readable.
  ///
  /// Misuse  on a second thread, or by one of its tasks, it ends the program with a sentence.
  std::size_t run_ready(std::size_t budget = 64);

  io_backend backend() const noexcept;  ///< by which it waits for sockets
  io_stats stats() const noexcept;      ///< since it was made
  /// Says in sentences how it waits for sockets, and why so.
  std::string explain() const;

 private:
  struct parts;
  void run_until(const bool& over) noexcept;
  std::unique_ptr<parts> parts_;
};

namespace detail {
/// While it lives, its thread, which works in a runtime, has SIGPIPE blocked as a runtime's own threads have, so that what a
/// task does on either is the same.
class as_worker {
 public:
  as_worker() noexcept;
  as_worker(const as_worker&) = delete;
  ~as_worker();

 private:
  bool was_blocked_, was_pending_;
};

/// Writes what is being handled to stderr; a handler of all exceptions calls it. The status of a program that failed.
int report_failure() noexcept;
}  // namespace detail

/// Runs an awaitable in a runtime of its own, of which the calling thread is a worker meanwhile: with `{.threads = 1}` the only
/// one, so that all tasks run on it. `pin` and `name` are for the threads that are made: the calling one keeps its processors
/// and its name.
///
/// Signals   the calling thread goes on to take those that are sent to the process, so a handler may interrupt a task that runs
///           there. SIGPIPE is blocked on it meanwhile, as it is on all workers.
template <detail::awaitable_argument Awaitable>
await_result<Awaitable> run(Awaitable&& awaitable, runtime_options options, stop_token stop = {}) {
  const detail::as_worker works;
  runtime rt{options, detail::caller_works{}};
  return rt.run(std::forward<Awaitable>(awaitable), stop);
}
template <detail::awaitable_argument Awaitable>
await_result<Awaitable> run(Awaitable&& awaitable, stop_token stop = {}) {
  return run(std::forward<Awaitable>(awaitable), runtime_options{}, stop);
}
template <int = 0>
void run(detail::refused<>, runtime_options, stop_token = {});
template <int = 0>
void run(detail::refused<>, stop_token = {});

/// The same for main(): 0; or 1, after it has written to stderr how the task failed or that it was stopped.
template <detail::awaitable_argument Awaitable>
int run_main(Awaitable&& awaitable, runtime_options options = {}) {
  try {
    static_cast<void>(run(std::forward<Awaitable>(awaitable), options));
    return 0;
  } catch (...) {
    return detail::report_failure();
  }
}
template <int = 0>
void run_main(detail::refused<>, runtime_options = {});

}  // namespace weft
