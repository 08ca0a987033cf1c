// The environment: what work inherits from the work that started it. It has the executor, the stop token, the deadline, the
// memory, the clock, and values of the program's own. None of these is passed as an argument: `current_env()` gives the
// environment of the running task, and a `local` gives the value that is bound there.
//
//     w::local<int> request_id{0};
//     co_await w::with_local(request_id, 7, serve);  // in serve, and all that it calls: request_id.get() == 7
//     if (w::current_env().deadline < soon) co_return;
//
// An env never changes, and lives in the frame that made it. Scopes and with_* make a new one from that of the task around
// them; see scope.hpp. A child of when_all has that of its parent, a fork that of its scope. A shared_task, and work begun by
// start(), may outlive what started them, so they have their own.
//
// Rejected: a thread-local env: see docs/design/0001-root-and-env.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>
#include <weft/detail/base/forward.hpp>
#include <weft/detail/core/binding.hpp>
#include <weft/executor.hpp>
#include <weft/stop.hpp>

namespace weft {

class clock;

namespace detail { class frame_source; }

/// What work inherits from the work that started it. A with_* function, or an option of a scope, changes members for the work
/// below.
struct env {
  /// Where the work resumes, such as `&pool`; null: on the thread that completes what it waited for.
  detail::executor_pointer executor = nullptr;
  stop_token stop{};  ///< a stop of it also stops the work
  std::chrono::steady_clock::time_point deadline = std::chrono::steady_clock::time_point::max();  ///< max: none
  std::pmr::memory_resource* memory = nullptr;  ///< where frames come from; null: weft's own frame memory
  const detail::binding* locals = nullptr;      ///< made by with_local
  weft::clock* clock = nullptr;                 ///< what it sleeps by; null: the process's real one
  bool memory_is_shared = false;                ///< whether several executors may use `memory` at once
  detail::frame_source* frames = nullptr;       ///< counts the frames from `memory`; made by scopes and with_*
};

/// The environment of the task that runs on this thread; outside of tasks, an empty one.
/// Lifetime  until that task ends or changes its environment. Threads: any. Cost: a call with two loads.
const env& current_env() noexcept;

/// A value that work inherits: a request's id, a tenant, a log. It is declared once, at namespace scope, and bound by
/// with_local() for a callable and all work below that, on whatever thread.
///
///     w::local<int> request_id{0};
///     co_await w::with_local(request_id, 7, serve);  // in serve, and what it awaits: request_id.get() == 7
///
/// Lifetime  a bound value lives in the frame of with_local(), so a reference to it is valid until that ends.
/// Threads   any: a bound value does not change.
/// Cost      get(): a call and a few steps, independent of how deep with_local() nests.
template <class T>
class local {
  static_assert(std::is_object_v<T> && !std::is_const_v<T>, "a local holds a value: local<T>");

 public:
  local() = default;
  /// `otherwise`: the default, for where nothing is bound.
  explicit local(T otherwise) : otherwise_(std::move(otherwise)) {}
  local(const local&) = delete;
  local& operator=(const local&) = delete;

  /// The value that is bound for the running task or fiber; else the default.
  const T& get() const noexcept {
    const void* bound = detail::find_binding(this);
    return bound != nullptr ? *static_cast<const T*>(bound) : otherwise_;
  }
  const T& operator*() const noexcept { return get(); }
  const T* operator->() const noexcept { return &get(); }

  /// Whether a with_local around the running task has bound it.
  bool is_bound() const noexcept { return detail::find_binding(this) != nullptr; }

 private:
  T otherwise_{};
};

}  // namespace weft
