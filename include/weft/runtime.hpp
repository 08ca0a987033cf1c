// The runtime: a pool whose idle workers wait for sockets. It is what a server runs in.
//
//     int main() { return w::run_main(serve()); }
//
// or, for more than one call or other options:
//
//     w::runtime rt{{.threads = 4}};
//     rt.run(serve());
//
// What is made inside of it (net.hpp) is watched by the runtime itself, by io_uring or by epoll. Outside of any, sockets work
// as well: a thread of the process waits for them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <weft/executor.hpp>
#include <weft/hop.hpp>
#include <weft/pool.hpp>
#include <weft/stop.hpp>
#include <weft/task.hpp>

namespace weft {

/// How a runtime learns that a socket is ready.
enum class io_backend : unsigned char {
  automatic,  ///< what WEFT_IO in the environment says (epoll, uring); else the best that the system allows
  epoll,      ///< one set for all workers
  uring,      ///< a ring a worker: Linux 6.1, where nothing forbids io_uring, and a weft that was built with liburing
};

/// `runtime rt{{.threads = 4}};`
struct runtime_options {
  unsigned threads = 0;  ///< how many; 0: available_processors()
  io_backend io = io_backend::automatic;
  const char* name = "weft";  ///< of its threads, as pool_options::name
  bool pin = false;           ///< each stays on one processor, as pool_options::pin
};

/// What a runtime has done for sockets so far. Figures of one moment each.
struct io_stats {
  std::size_t watched = 0;       ///< descriptors that are open
  std::uint64_t waits = 0;       ///< system calls that asked for changes
  std::uint64_t changes = 0;     ///< what these reported
  std::uint64_t interrupts = 0;  ///< of these waits, that were ended for what was posted
};

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
  runtime(const runtime&) = delete;
  ~runtime();

  /// Runs an awaitable on it from its beginning, and blocks the calling thread until that has ended.
  ///
  /// Cancel    when `stop` is stopped, so is the task.
  /// Fails     throws what the task threw, or `stopped` if it ended stopped. Called inside a task it ends the program with a
  ///           sentence: co_await start_on() there.
  template <awaitable Awaitable>
  await_result<Awaitable> run(Awaitable&& awaitable, stop_token stop = {}) {
    return sync_wait(start_on(executor(), std::forward<Awaitable>(awaitable)), stop);
  }

  /// A runtime is an executor wherever one is taken.
  operator weft::executor&() const noexcept { return executor(); }  // NOLINT: stands for it
  weft::executor& executor() const noexcept { return workers().executor(); }

  /// Its workers, to be counted or limited.
  const pool& workers() const noexcept;

  io_backend backend() const noexcept;
  io_stats stats() const noexcept;
  /// Says in sentences how it waits for sockets, and why so.
  std::string explain() const;

 private:
  struct parts;
  std::unique_ptr<parts> parts_;
};

/// Runs an awaitable in a runtime of its own.
template <awaitable Awaitable>
await_result<Awaitable> run(Awaitable&& awaitable, stop_token stop = {}) {
  runtime rt;
  return rt.run(std::forward<Awaitable>(awaitable), stop);
}

namespace detail {
/// Writes what is being handled to stderr; a handler of all exceptions calls it. The status of a program that failed.
int report_failure() noexcept;
}  // namespace detail

/// The same for main(): 0; or 1, after it has written to stderr how the task failed or that it was stopped.
template <awaitable Awaitable>
int run_main(Awaitable&& awaitable) {
  try {
    static_cast<void>(run(std::forward<Awaitable>(awaitable)));
    return 0;
  } catch (...) {
    return detail::report_failure();
  }
}

}  // namespace weft
