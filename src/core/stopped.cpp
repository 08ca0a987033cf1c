// What an exception of class `stopped` keeps.
#include <weft/error.hpp>
#include <weft/items.hpp>
#include <weft/stop.hpp>

#include <new>
#include <span>

#include "base/ref_count.hpp"

namespace weft {

// edge gone  as in ref_count.hpp; the causes don't change
struct detail::kept_causes {
  mutable ref_count holders{1};
  const items<stop_cause> all;
};

stopped::stopped(std::span<const stop_cause> causes) noexcept {
  if (causes.empty()) return;
  try {
    causes_ = new detail::kept_causes{.all = causes};
  } catch (const std::bad_alloc&) {  // a stop is no failure, and does not become one
  }
}

stopped::stopped(const stopped& other) noexcept : causes_{other.causes_} {
  if (causes_ != nullptr) causes_->holders.add();
}

void stopped::let_go() noexcept {
  if (causes_->holders.let_go()) delete causes_;
}

std::span<const stop_cause> stopped::causes() const noexcept {
  return causes_ != nullptr ? std::span{causes_->all.begin(), causes_->all.size()} : std::span<const stop_cause>{};
}

void detail::throw_stopped(stop_token asked) {
  const stop_cause* const why = asked.cause();
  throw stopped{why != nullptr ? std::span{why, 1} : std::span<const stop_cause>{}};
}

}  // namespace weft
