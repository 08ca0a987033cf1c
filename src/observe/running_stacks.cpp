#include "observe/running_stacks.hpp"

#include <unistd.h>
#include <unwind.h>

#include <algorithm>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>
#include <weft/detail/context/context.hpp>

#include "core/peek.hpp"
#include "core/worker.hpp"
#include "observe/root_walk.hpp"
#include "observe/thread_probe.hpp"

namespace weft::detail {
namespace {

struct probing {
  probing() noexcept { begin_probing(); }
  probing(const probing&) = delete;
  ~probing() { end_probing(); }
};

thread_calls calls_of(const worker& its, int thread) noexcept {
  thread_calls calls;
  if (thread == ::gettid()) {
    list_async_calls(its, calls);
  } else if (const thread_state state = state_of(thread); state.is_known) {
    if (state.system_call >= 0)
      list_async_calls(its, calls);
    else
      list_calls_of(thread, calls);
  }
  return calls;
}

// Innermost first: the plain functions, up to that of the innermost coroutine; then the coroutines of the root. If that coroutine
// runs on the stack of a fiber, which awaits it, the fiber's functions come where that does. Gives how many.
std::size_t put_together(const thread_calls& calls, std::span<const void*> into) noexcept {
  std::size_t count = 0, plain = 0;
  const auto add = [&](const void* code) {
    if (count != into.size()) into[count++] = code;
  };
  const auto is_coroutine = [&](const void* code) {
    const void* const function = ::_Unwind_FindEnclosingFunction(const_cast<void*>(code));
    const auto end = calls.async.begin() + calls.in_root;
    return function != nullptr && std::find(calls.async.begin(), end, function) != end;
  };
  const code_range outermost = outermost_code();
  const auto* const end =
      std::find_if(calls.native.begin(), calls.native.begin() + calls.native_count,
                   [&](const void* code) { return outermost.begin <= code && code <= outermost.end; });
  const auto own = static_cast<std::size_t>(end - calls.native.begin());
  for (; plain != own && !is_coroutine(calls.native[plain]); ++plain) add(calls.native[plain]);
  const bool is_on_fiber = own != calls.native_count;
  for (std::size_t i = 0; i <= calls.in_root; ++i) {
    if (i == calls.in_fiber && is_on_fiber)
      for (; plain != own; ++plain)
        if (!is_coroutine(calls.native[plain])) add(calls.native[plain]);
    if (i != calls.in_root) add(calls.async[i]);
  }
  return count;
}

}  // namespace

void add_running_stacks(root_walk& to, std::size_t most_frames) {
  std::unordered_map<const void*, seen_root*> running;
  for (seen_root& one : to.roots)
    if (!one.waits) running.emplace(one.at, &one);
  std::vector<const void*> room(std::min<std::size_t>(most_frames, 2 * thread_calls{}.native.size()));
  std::vector<std::pair<seen_root*, items<async_frame>>> found;
  {
    const probing meanwhile;
    for (const seen_worker& one : to.workers) {
      const auto runs = running.find(one.current);
      if (one.current == nullptr || runs == running.end()) continue;
      const thread_calls calls = calls_of(*one.at, one.thread);
      if (!calls.is_there || calls.root != reinterpret_cast<std::uintptr_t>(one.current)) continue;
      const std::size_t count = put_together(calls, room);
      items<async_frame> stack{count};
      for (std::size_t i = 0; i != count; ++i) stack[i] = async_frame{room[i]};
      runs->second->is_fiber |= calls.in_fiber <= calls.in_root;
      found.emplace_back(runs->second, std::move(stack));
    }
  }
  if (found.empty()) return;
  const auto again = root_walk::make({.stacks = false, .only = {}});
  again->run();
  std::unordered_map<task_id, bool> lives;
  for (const seen_root& one : again->roots) lives.emplace(one.id, true);
  for (auto& [one, stack] : found)
    if (lives.contains(one->id)) one->stack = std::move(stack);
}

std::size_t calls_of_running(const root& of, std::span<const void*> into) noexcept {
  for (const worker* one = newest_worker(); one != nullptr; one = one->made_before)
    if (const int thread = one->thread_number.load(std::memory_order_relaxed);  // a figure
        thread != 0 && peek(one->current) == &of) {
      const probing meanwhile;
      const thread_calls calls = calls_of(*one, thread);
      return calls.is_there && calls.root == reinterpret_cast<std::uintptr_t>(&of) ? put_together(calls, into) : 0;
    }
  return 0;
}

}  // namespace weft::detail
