// The options of a scope: limits, memory, a policy for failures. Part of scope.hpp.
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

/// The options of with_scope(), written in this order: `{.memory = &arena, .on_error = w::collect_all_errors}`.
struct scope_options {
  std::pmr::memory_resource* memory = nullptr;  ///< for all frames in the scope; null: as for the task that awaits it
  detail::executor_pointer executor = nullptr;  ///< for body and forks, such as `&pool`; null: as the awaiting task
  stop_token stop{};                            ///< also stops the scope, as does a stop of the awaiting task
  detail::time_mark deadline = std::chrono::steady_clock::time_point::max();  ///< when the scope is stopped
  error_policy on_error = fail_fast;                                          ///< what happens when a fork fails
  std::size_t max_children = static_cast<std::size_t>(-1);  ///< the most forks at once; see scope::fork_when_room
  bool memory_is_shared = false;                            ///< whether several executors may use `memory` at once
  error_list* errors = nullptr;  ///< receives all failures, also those after the one that is thrown
  /// How long the scope may take to end once it was told to stop. After that, `on_overdue` is told once which children still
  /// run.
  detail::time_span stop_within = std::chrono::steady_clock::duration::max();
  overdue_handler on_overdue{};                                  ///< by default prints to stderr
  std::source_location where = std::source_location::current();  ///< the line that why_stopped() names
};

}  // namespace weft
