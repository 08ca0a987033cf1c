// Where work runs. An executor takes jobs; a job is an intrusive link and a function, so posting allocates nothing.
// Everything that weft schedules (a root) is such a job, and everything that a user may bring (a game loop, a GUI, a
// foreign pool) is an executor of one function.
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

/// What an executor runs, once a post. It must stay alive and in no other queue until it runs.
struct job {
  job* next = nullptr;                   // for whoever holds the job in a queue
  void (*run)(job&) noexcept = nullptr;  // may free the job
};

/// A place where jobs run.
///
/// Threads   post() may be called from any thread, also from within a job.
/// Lifetime  an executor outlives all work that was started on it.
class executor {
 public:
  /// Takes a job and runs it once, later or at once. Never throws: what it needs, it has from the start.
  virtual void post(job& work) noexcept = 0;

  /// The same behind all that waits: for a job that lets others run. Where post() keeps the order, that is post().
  virtual void post_behind(job& work) noexcept { post(work); }

  /// Whether it may run two jobs at once.
  virtual bool runs_in_parallel() const noexcept { return false; }

  /// What watches the descriptors that tasks on it make, as a runtime's does; null: what the process has for all.
  virtual detail::io_service* io() const noexcept { return nullptr; }

 protected:
  executor() = default;
  executor(const executor&) = default;
  executor& operator=(const executor&) = default;
  ~executor() = default;
};

namespace detail {

/// What is no executor, but has one and stands for it, as a pool does.
template <class T>
concept stands_for_executor = !std::is_convertible_v<T*, const executor*> && std::is_convertible_v<T&, executor&>;

/// Names an executor in options, or none: is made of null, of the address of an executor, or of that of what stands for one.
class executor_pointer {
 public:
  constexpr executor_pointer(std::nullptr_t = nullptr) noexcept {}   // NOLINT: stands for it
  constexpr executor_pointer(executor* one) noexcept : one_{one} {}  // NOLINT: stands for it
  template <stands_for_executor T>
  executor_pointer(T* owner) noexcept : one_{owner != nullptr ? &static_cast<executor&>(*owner) : nullptr} {}  // NOLINT

  operator executor*() const noexcept { return one_; }  // NOLINT: stands for it
  executor* operator->() const noexcept { return one_; }

  /// Whether it names that of a pool.
  template <stands_for_executor T>
  friend bool operator==(const executor_pointer& one, T* owner) noexcept {
    return one.one_ == executor_pointer{owner}.one_;
  }

 private:
  executor* one_ = nullptr;
};

}  // namespace detail

/// Runs a job at once, on the thread that posts it; a job posted from within such a run, right after it, so that a
/// chain of wake-ups does not nest. Threads: any. Cost: a call.
class inline_executor final : public executor {
 public:
  void post(job& work) noexcept override;
};

/// Runs jobs only when asked to: for game loops and for tests. In order of posting.
///
/// Threads   post() from any; the others from one thread at a time.
/// Lifetime  destroyed with jobs inside, it ends the program: their tasks would wait for ever. The last job may destroy it.
class manual_executor final : public executor {
 public:
  manual_executor() = default;
  manual_executor(const manual_executor&) = delete;
  ~manual_executor();

  void post(job& work) noexcept override;

  /// Runs the oldest job. False: there was none.
  bool run_one() noexcept;

  /// Runs jobs, also those that come meanwhile, until none is left. Returns how many.
  std::size_t run_all() noexcept;

  /// Whether there is nothing to run. A hint where other threads post.
  bool empty() const noexcept;

 private:
  bool refill() noexcept;

  detail::inbox<job> posted_;  // its edge: what the poster wrote  ->  the job
  job* ready_ = nullptr;       // oldest first; the pump's own
  detail::pumping* pumped_by_ = nullptr;
};

/// Runs each job on a thread of its own. For a few long-running pieces of work, not for many short ones.
///
/// Threads   any.
/// Lifetime  its destructor joins all of them, so it must not run on one (asserted).
/// Fails     where the system gives no thread, the job runs on the poster's.
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
