// What a scope is given beside its body: limits, memory, a policy for failures. Part of scope.hpp.
#pragma once

#include <cstddef>
#include <source_location>
#include <weft/clock.hpp>
#include <weft/detail/base/duration.hpp>
#include <weft/detail/base/forward.hpp>
#include <weft/env.hpp>
#include <weft/error_policy.hpp>
#include <weft/overdue.hpp>
#include <weft/per_worker.hpp>
#include <weft/stop.hpp>

namespace weft {

/// What a scope is given. Written in this order: `{.memory = &arena, .on_error = w::collect_all_errors}`.
struct scope_options {
  std::pmr::memory_resource* memory = nullptr;  ///< where all frames below come from; null: from where they do outside
  detail::executor_pointer executor = nullptr;  ///< `&pool`, say: where body and forks run; null: as the task outside
  stop_token stop{};                            ///< whose stop stops it, beside that of the task outside
  detail::time_mark deadline = std::chrono::steady_clock::time_point::max();  ///< stops it then
  error_policy on_error = fail_fast;                        ///< what a fork that fails does to the others
  std::size_t max_children = static_cast<std::size_t>(-1);  ///< how many may run at once; see scope::fork_when_room
  bool memory_is_shared = false;                            ///< whether several executors may use `memory` at once
  error_list* errors = nullptr;  ///< gets all failures, also those after the one that is thrown
  /// How long it may take to end once it was told to stop; then who ignores that is told to `on_overdue`, once.
  detail::time_span stop_within = std::chrono::steady_clock::duration::max();
  overdue_handler on_overdue{};                                  ///< prints to stderr, unless something else is given
  std::source_location where = std::source_location::current();  ///< for why_stopped()
};

}  // namespace weft
