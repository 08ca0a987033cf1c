// Notes why a root ends stopped; see weft/detail/core/cause_list.hpp. By the thread that destroys its frames.
#pragma once

#include <span>
#include <weft/detail/core/cause_list.hpp>
#include <weft/detail/core/root.hpp>
#include <weft/stop.hpp>

#include "core/worker.hpp"

namespace weft::detail {

/// The frames of `self` begin to be destroyed, since the wait `in` has ended stopped; null: it was told to stop, or ends by
/// itself.
void note_end(root& self, const waiter* in) noexcept;
/// The same, for these causes. Or they go on being destroyed, where a boundary has held that up: for what was noted before.
void note_end(root& self, std::span<const stop_cause> causes) noexcept;

/// What was noted for the root that ends now; empty: nothing, as of one that was told itself.
inline std::span<const stop_cause> causes_of_end(const root& self) noexcept { return this_worker().ends.of_root(self); }

/// The first of these for whoever awaits it; without a reason: there is none.
inline stop_cause cause_of_end(const root& self) noexcept {
  const auto all = causes_of_end(self);
  return all.empty() ? stop_cause{nullptr, {}} : all.front();
}

}  // namespace weft::detail
