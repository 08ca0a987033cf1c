#include "pool/processor_set.hpp"

#include <sched.h>

namespace weft::detail {
namespace {

constinit thread_local const processor_set* before_pin = nullptr;  // null: this thread is not pinned

}  // namespace

processor_set processor_set::here() noexcept {
  processor_set one;
  one.is_known_ = ::sched_getaffinity(0, sizeof one.bits_, reinterpret_cast<cpu_set_t*>(one.bits_.data())) == 0;
  return one;
}

void processor_set::hold_here() const noexcept {
  if (is_known_) ::sched_setaffinity(0, sizeof bits_, reinterpret_cast<const cpu_set_t*>(bits_.data()));
}

void is_pinned_here(const processor_set& before) noexcept { before_pin = &before; }

as_unpinned::as_unpinned() noexcept : is_pinned_{before_pin != nullptr} {
  if (!is_pinned_) return;
  pinned_ = processor_set::here();
  before_pin->hold_here();
}

}  // namespace weft::detail
