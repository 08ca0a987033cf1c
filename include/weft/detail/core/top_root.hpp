// Roots that nothing stands above. They are in a list, where a walk over all that lives begins (core/walk.hpp).
#pragma once

#include <atomic>
#include <coroutine>
#include <span>
#include <weft/detail/base/inbox.hpp>
#include <weft/detail/core/root.hpp>
#include <weft/env.hpp>
#include <weft/error.hpp>
#include <weft/executor.hpp>
#include <weft/stop.hpp>

namespace weft::detail {

/// What a root is, as far as whoever makes it knows.
enum class root_kind { task, thread, shared, fork, body, child };

/// A root without a parent. In a list until its destruction: from its construction, or, of a shared task, from its start.
class top_root : public root {
 public:
  /// As root(). Cost: a lock, and once more at its end.
  top_root(root_kind kind, const weft::env* environment, end_function done) noexcept;
  top_root(const top_root&) = delete;

  void adopt(std::coroutine_handle<> outermost, promise_base& promise) noexcept {
    function_.store(reinterpret_cast<const void*>(static_cast<const frame*>(outermost.address())->resume),
                    std::memory_order_relaxed);  // a figure
    root::adopt(outermost, promise);
  }

  /// Tells it to stop, since its token was, and records why.
  void stop_by(stop_token told) noexcept;

 protected:
  ~top_root();
  /// Enters it into the list.
  void list() noexcept;

 private:
  friend struct debug_tops;
  friend struct top_roots;
  void unlist() noexcept;

  // Both under the lock of the list.
  top_root* next_ = nullptr;
  top_root** link_ = nullptr;  // null: it is not there
  std::atomic<const void*> function_{nullptr};
  const root_kind kind_;
};

/// A root that a thread waits for, in an env with that thread's token.
class awaited_root : public top_root {
 protected:
  /// Throws `stopped`, with its causes; with these, where it was not told to stop.
  [[noreturn]] void throw_stopped_by(std::span<const stop_cause> part) const;
  awaited_root(root_kind kind, weft::executor* where, stop_token stop, end_function done) noexcept
      : top_root{kind, &own_env_, done}, own_env_{.executor = where, .stop = stop} {}
  ~awaited_root() = default;

  weft::env own_env_;
};

/// A root for a plain thread, which runs it and sleeps while it waits. It is the executor of its root: the task
/// resumes on the thread that called.
class blocking_root final : public awaited_root, executor {
 public:
  explicit blocking_root(stop_token stop = {}) noexcept;
  ~blocking_root() = default;

  /// Runs what was adopted to its end. False: it ended stopped.
  bool run() noexcept;

  /// Throws `stopped`, with its causes. At once after that.
  [[noreturn]] void throw_stopped() const;

  /// The executor of `self`, for work that may outlive it: null instead of a blocking_root, which may end before.
  static executor* lasting_executor(const root& self) noexcept;

 private:
  void post(job& work) noexcept override;
  job* take_all() noexcept;
  static void ended(root& self, bool stopped) noexcept;

  sleeping_inbox<job> posted_;  // its edge: what the poster wrote  ->  the job
  bool over_ = false;
  bool stopped_ = false;
};

}  // namespace weft::detail
