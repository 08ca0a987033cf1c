// Traced requests: records what one request, with all that it forks, has done, and counts what it has used.
//
//     auto page = co_await w::with_trace({.name = "GET /cart"}, serve, request);
//
// For all work below, the flight recorder (recorder.hpp) records each fork, each turn on a thread (the time for which a part
// runs without a switch) and each wake-up, and current_ledger() gives what that work has used so far. Work that is not traced
// does not pay for this.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>
#include <weft/detail/base/invoke.hpp>
#include <weft/detail/memory/frame_memory.hpp>
#include <weft/detail/scope/with.hpp>
#include <weft/task.hpp>

namespace weft {

/// What with_trace records.
struct trace_options {
  const char* name =
      nullptr;  ///< the request's name in the recording: a string literal, or text that outlives the program's rings
  unsigned one_in = 1;  ///< traces one call of so many, counted in the whole program; 0: none
};

/// What a traced request has used so far: its root, and all that was started below it, including what has ended. Counters and
/// times are sums over all parts.
struct ledger {
  struct wait {
    const char* kind = "";  ///< what was waited for, named as by waits_on(): "mutex", "channel, to receive"
    std::uint64_t times = 0;
    std::chrono::nanoseconds time{};
  };
  static constexpr std::size_t most_kinds = 24;

  std::uint64_t turns = 0;  ///< how often a part began to run on a thread
  std::chrono::nanoseconds
      running{};                      ///< how long all turns took, up to the last time that each part was about to wait
  std::chrono::nanoseconds queued{};  ///< from when a part could go on until a thread ran it
  std::chrono::nanoseconds waiting{};  ///< for whatever the parts have waited
  std::uint64_t frames = 0;            ///< allocations of coroutine frames and of what forks need
  std::uint64_t frame_bytes = 0;
  std::uint64_t io_operations = 0;  ///< reads and writes of sockets and files that have moved bytes, or found the end
  std::uint64_t io_bytes = 0;
  std::array<wait, most_kinds> kinds{};
  std::size_t kind_count = 0;

  /// The waiting time for each kind of wait. Where several parts waited at the same time, each counts.
  std::span<const wait> waits() const noexcept { return {kinds.data(), kind_count}; }
};

/// The ledger of the traced request that the running task is a part of; all zero outside of any.
///
/// Threads  any that runs a task. Each figure is read at a moment of its own: other parts may run meanwhile.
/// Cost     some hundred nanoseconds. Does not suspend, takes no lock.
ledger current_ledger() noexcept;

namespace this_task {
/// Whether the running task is a part of a traced request.
bool is_traced() noexcept;
}  // namespace this_task

namespace detail {

/// Traces the running root, for a request, until the end of the block.
class trace_scope {
 public:
  explicit trace_scope(const trace_options& options) noexcept;
  trace_scope(const trace_scope&) = delete;
  ~trace_scope();

 private:
  struct alignas(8) room {
    std::byte bytes[32];
  };
  request_trace& trace() noexcept;

  room trace_;
  std::optional<frame_source> frames_;
  std::optional<changed_env> changed_;  // empty: it is not traced, or is a part of an outer request
};

template <class R, class F, class... Args>
task<R> run_with_trace(trace_options options, F f, Args... args) {
  const trace_scope traced{options};
  co_return co_await std::move(f)(std::move(args)...);
}

}  // namespace detail

/// Awaits `callable(args...)`, and traces it and all that is started below it in scopes. Within a traced request it only
/// awaits: the work then belongs to the outer request.
///
/// Not traced  work that is started on its own: start(), detach(), a shared_task; and forks of scopes outside.
/// Lifetime    as with_memory: what was forked below has ended when this ends.
/// Cost        untraced, that of an await. Traced, an allocation for each thread that takes part; for each switch some 15 ns,
///             most of which a time stamp takes; for each wake-up and each fork another time stamp.
template <class F, class... Args>
  requires std::is_invocable_v<std::decay_t<F>, std::decay_t<Args>...>
WEFT_COROUTINE_TAKES_OVER auto with_trace(trace_options options, F&& callable, Args&&... args) {
  WEFT_EXPECTS_NO_DOOMED_TEMPORARY(F);
  return detail::run_with_trace<detail::with_result<F, Args...>, detail::callable<F>, std::decay_t<Args>...>(
      options, std::forward<F>(callable), std::forward<Args>(args)...);
}
template <class F, class... Args>
  requires std::is_invocable_v<std::decay_t<F>, std::decay_t<Args>...>
WEFT_COROUTINE_TAKES_OVER auto with_trace(F&& callable, Args&&... args) {
  WEFT_EXPECTS_NO_DOOMED_TEMPORARY(F);
  return detail::run_with_trace<detail::with_result<F, Args...>, detail::callable<F>, std::decay_t<Args>...>(
      trace_options{}, std::forward<F>(callable), std::forward<Args>(args)...);
}

}  // namespace weft
