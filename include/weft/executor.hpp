// Executors: where work runs. An executor takes jobs; a job is an intrusive link and a function, so posting one allocates
// nothing. All that weft schedules (a root) is such a job. A program can make an executor of its own event loop (a game's, a
// GUI's, another library's pool): it defines one function, post().
#pragma once

#include <pthread.h>

#include <atomic>
#include <cstddef>
#include <type_traits>
#include <weft/detail/base/config.hpp>
#include <weft/detail/base/inbox.hpp>

namespace weft {

namespace detail {
class pumping;
class io_service;
}  // namespace detail

/// What an executor runs, once for each post(). From post() until it runs, it must stay alive and be in no other queue.
struct job {
  job* next = nullptr;                   // for the queue that the job is in
  void (*run)(job&) noexcept = nullptr;  // may free the job
};

/// A place where jobs run.
///
/// Threads   post() may be called from any thread, also from within a job.
/// Lifetime  an executor outlives all work that was started on it.
class executor {
 public:
  /// Takes a job, and runs it once: later, or before it returns. It must not fail, so it has what it needs from the start.
  virtual void post(job& work) noexcept = 0;

  /// The same, but behind all jobs that are queued: for a job that yields to others. An executor that runs jobs in the order of
  /// posting needs no other function than post().
  virtual void post_behind(job& work) noexcept { post(work); }

  /// Whether it may run several jobs at the same time, on several threads.
  virtual bool runs_in_parallel() const noexcept { return false; }

  /// The I/O service that watches the descriptors which tasks on this executor open, such as that of a runtime; null: the
  /// process's common one.
  virtual detail::io_service* io() const noexcept { return nullptr; }

 protected:
  executor() = default;
  executor(const executor&) = default;
  executor& operator=(const executor&) = default;
  ~executor() = default;
};

namespace detail {

/// A class that is no executor, but converts to a reference to the one that it has, as a pool does.
template <class T>
concept stands_for_executor = !std::is_convertible_v<T*, const executor*> && std::is_convertible_v<T&, executor&>;

/// A pointer to an executor in options, or null: made of null, of an executor's address, or of the address of an object that
/// has one.
class executor_pointer {
 public:
  constexpr executor_pointer(std::nullptr_t = nullptr) noexcept {}   // NOLINT: stands for it
  constexpr executor_pointer(executor* one) noexcept : one_{one} {}  // NOLINT: stands for it
  template <stands_for_executor T>
  executor_pointer(T* owner) noexcept : one_{owner != nullptr ? &static_cast<executor&>(*owner) : nullptr} {}  // NOLINT

  operator executor*() const noexcept { return one_; }  // NOLINT: stands for it
  executor* operator->() const noexcept { return one_; }

  /// Whether it points to the executor of this pool or the like.
  template <stands_for_executor T>
  friend bool operator==(const executor_pointer& one, T* owner) noexcept {
    return one.one_ == executor_pointer{owner}.one_;
  }

 private:
  executor* one_ = nullptr;
};

}  // namespace detail

/// Runs each job within post(), on the thread that posts it. A job that is posted while another one runs there, runs right
/// after that one, so that a chain of wake-ups does not nest. Threads: any. Cost: a call.
class inline_executor final : public executor {
 public:
  void post(job& work) noexcept override;
};

/// Runs jobs only within run_one() and run_all(), in the order of posting: for game loops and tests.
///
/// Threads   post() from any; the others from one thread at a time.
/// Lifetime  destroyed with jobs inside, it ends the program, since their tasks would wait for ever. Its last job may destroy
///           it.
/// Cost      no allocation: jobs are linked.
class manual_executor final : public executor {
 public:
  manual_executor() = default;
  manual_executor(const manual_executor&) = delete;
  ~manual_executor();

  void post(job& work) noexcept override;

  /// Runs the oldest job. Gives false where there is none. Does not block.
  bool run_one() noexcept;

  /// Runs all jobs, also those that are posted meanwhile. Returns how many it has run.
  std::size_t run_all() noexcept;

  /// Whether there is no job. May have changed when it returns, if other threads post.
  bool empty() const noexcept;

 private:
  bool refill() noexcept;

  detail::inbox<job> posted_;  // its edge: what the poster wrote  ->  the job
  job* ready_ = nullptr;       // oldest first; used by the thread that runs jobs alone
  detail::pumping* pumped_by_ = nullptr;
};

/// Runs each job on a new thread. For a few long-running pieces of work, not for many short ones.
///
/// Threads   any.
/// Lifetime  its destructor joins all of these threads, so it must not run on one of them (asserted).
/// Fails     where the system gives no thread, the job runs within post(), on the caller's thread.
/// Cost      a thread for each job.
class new_thread_executor final : public executor {
 public:
  new_thread_executor() = default;
  new_thread_executor(const new_thread_executor&) = delete;
  ~new_thread_executor();

  void post(job& work) noexcept override;
  bool runs_in_parallel() const noexcept override { return true; }

 private:
  void one_less() noexcept;

  // Jobs that have not ended. Up by the poster, down by the thread as its last act on this object.
  //   edge ended  all that the job did  ->  the destructor's return
  std::atomic<std::size_t> running_{0};
  // The thread whose job ended last; 0, which the C libraries give to none: there was none. Each joins the one before
  // it, so that a thousand that have ended hold no more than one stack, and the destructor joins the last.
  std::atomic<pthread_t> ended_{};
};

}  // namespace weft
