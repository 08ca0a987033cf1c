// Traced requests: what is recorded of one request and of all that it forks, and what it has used.
//
//     auto page = co_await w::with_trace({.name = "GET /cart"}, serve, request);
//
// Of what runs below, the flight recorder (recorder.hpp) has each fork, each turn on a thread, and each wake-up, and
// current_ledger() says what all of it has used so far. What is not traced pays nothing for that.
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

/// Which requests with_trace records, and under what name.
struct trace_options {
  const char* name =
      nullptr;  ///< of the request, in the recording: a string literal, or text that outlives the program's rings
  unsigned one_in = 1;  ///< traces one of so many calls, of the whole program; 0: none
};

/// What a traced request has used so far: its root and all that was started below it, also what has ended.
struct ledger {
  struct wait {
    const char* kind = "";  ///< as waits_on() names it: "mutex", "channel, to receive"
    std::uint64_t times = 0;
    std::chrono::nanoseconds time{};
  };
  static constexpr std::size_t most_kinds = 24;

  std::uint64_t turns = 0;  ///< how often a part of it began to run on a thread
  std::chrono::nanoseconds
      running{};                      ///< how long all turns took, up to the last time that each part was about to wait
  std::chrono::nanoseconds queued{};  ///< from when parts could go on until a thread ran them
  std::chrono::nanoseconds waiting{};  ///< of all parts that have waited, for whatever
  std::uint64_t frames = 0;            ///< allocations of coroutine frames and of what forks need
  std::uint64_t frame_bytes = 0;
  std::uint64_t io_operations = 0;  ///< reads and writes of sockets and files that have moved bytes, or found the end
  std::uint64_t io_bytes = 0;
  std::array<wait, most_kinds> kinds{};
  std::size_t kind_count = 0;

  /// The waiting time by what it was for. Sums of times that overlap, where several parts wait at once.
  std::span<const wait> waits() const noexcept { return {kinds.data(), kind_count}; }
};

/// The ledger of the traced request that the running task is a part of; all zero outside of any.
///
/// Threads  as any function of a task. Figures of one moment each: other parts may run meanwhile.
/// Cost     some hundred nanoseconds.
ledger current_ledger() noexcept;

namespace this_task {
/// Whether what runs is a part of a traced request.
bool is_traced() noexcept;
}  // namespace this_task

namespace detail {

/// The request that the running root is traced for, until the end of the block that has this.
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

/// Awaits `callable(args...)`, which is traced, and all that is started below it in scopes. Inside of a traced request it only
/// awaits: the outer request has all of it.
///
/// Not traced  what is started to go on by itself: start(), detach(), a shared_task; and forks of scopes around it.
/// Lifetime    as with_memory: what was forked below has ended when this ends.
/// Cost        untraced, that of an await. Traced, an allocation for each thread that takes part; each switch some 30 ns, of
///             which a time stamp takes 10; each wake-up and each fork a time stamp more.
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
