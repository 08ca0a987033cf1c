// Calling what blocks: a file, a driver, a library that knows no coroutines. It runs on a thread of a pool that is made for
// that, and the task waits for it as for anything else.
//
//     std::string text = co_await w::blocking(read_file, path);
//
// The pool has no thread until it is used, makes one where a call finds none free, up to a limit, and lets go of those that
// have had nothing to do for a while. A call that finds all at work waits its turn in its task's frame: so the line takes
// no memory of its own, whoever calls is held up, and a stop takes the call out of the line again.
//
// Rejected: (a) an executor that tasks hop to: they would go on there with what does not block. (b) A thread a call
// (new_thread_executor): a hundred thousand calls want a hundred thousand threads.
#pragma once

#include <cstddef>
#include <exception>
#include <type_traits>
#include <utility>
#include <weft/detail/base/duration.hpp>
#include <weft/detail/base/forward.hpp>
#include <weft/detail/base/invoke.hpp>
#include <weft/detail/base/standard.hpp>
#include <weft/detail/core/waiter.hpp>
#include <weft/task.hpp>

namespace weft {

struct blocking_options {
  unsigned threads = 64;                              ///< at most
  unsigned keep = 0;                                  ///< as many stay, once they are there
  detail::time_span idle = std::chrono::seconds{10};  ///< after which a thread that has nothing to do ends
  const char* name = "weft-block";                    ///< of its threads; 15 characters are kept
};

/// What a blocking_pool is doing at the moment.
struct blocking_stats {
  unsigned threads;     ///< how many it has
  unsigned busy;        ///< of these, at a call
  std::size_t waiting;  ///< calls in line
};

namespace detail {

class blocking_core;

/// A call on its way. Lives in the frame that waits for it.
class blocking_call : public waiter {
 public:
  blocking_call(blocking_core& of, void (*call)(blocking_call&) noexcept) noexcept
      : waiter{type}, of_{&of}, call_{call} {}
  blocking_call(const blocking_call&) = delete;

  bool suspend(root& self);
  void run() noexcept { call_(*this); }
  /// Instead of run(): there is no thread for it.
  void refuse() noexcept { refused_ = true; }
  void expect_thread() const {
    if (refused_) [[unlikely]]
      throw_no_thread();
  }
  [[noreturn]] static void throw_no_thread();

 protected:
  ~blocking_call() = default;

 private:
  static on_stop leave(waiter& self) noexcept;
  static constexpr wait_type type{.leave = leave, .name = "blocking call"};

  blocking_core* of_;
  void (*call_)(blocking_call&) noexcept;
  bool refused_ = false;
};

template <class T, class F>
class blocking_call_of final : public blocking_call {
 public:
  blocking_call_of(blocking_core& of, F& f) noexcept : blocking_call{of, call}, f_{&f} {}

  T take() { return ended_.take(); }

 private:
  static void call(blocking_call& self) noexcept {
    auto& mine = static_cast<blocking_call_of&>(self);
    try {
      if constexpr (std::is_void_v<T>) {
        (*mine.f_)();
        mine.ended_.set_value(nothing{});
      } else {
        mine.ended_.set_value((*mine.f_)());
      }
    } catch (...) {
      mine.ended_.set_exception(std::current_exception());
    }
  }

  F* f_;
  outcome<T> ended_;
};

struct blocking_wait : knows_roots {
  blocking_call* one;
  explicit blocking_wait(blocking_call& call) noexcept : one{&call} {}
  bool await_ready() const noexcept { return false; }
  template <class Promise>
  bool await_suspend(std::coroutine_handle<Promise> caller) const {
    return one->suspend(suspending(caller));  // the task may run elsewhere, or be gone, after this line
  }
  void await_resume() const { one->expect_thread(); }
};

template <class T, class F, class... Args>
task<T> run_blocking(blocking_core* where, F f, Args... args) {
  auto all = [&]() -> T { return detail::invoke(std::move(f), std::move(args)...); };
  blocking_call_of<T, decltype(all)> call{*where, all};
  co_await blocking_wait{call};
  co_return call.take();
}

/// The process's own, made at its first use.
blocking_core& process_blocking_core();

template <class F, class... Args>
using blocking_result = kept_result<std::decay_t<F>, std::decay_t<Args>...>;

}  // namespace detail

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

/// A pool of one's own for calls that block: for a database that allows eight at once, say.
///
/// Threads   run() and stats() from any.
/// Lifetime  outlives the tasks that await its calls. Its destructor lets what is in line run, and joins its threads, so it
///           must not run on one: not in a call, nor in a task without an executor, which goes on there (asserted).
/// Fails     the constructor throws std::bad_alloc. In a child that was forked, a call ends the program with a sentence.
class blocking_pool {
 public:
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

  blocking_stats stats() const noexcept;

 private:
  detail::blocking_core* core_;
};

}  // namespace weft
