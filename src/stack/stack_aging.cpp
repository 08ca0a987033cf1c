// Gives back the memory of idle stacks: of those that were not used for some time, or of all, by trim().
#include <weft/stack_pool.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <ctime>
#include <mutex>
#include <span>
#include <utility>

#include "stack/stack_memory.hpp"
#include "stack/stack_region.hpp"

namespace weft {

using detail::stack_header;
using detail::stack_region;

namespace {

long milliseconds_now() noexcept {
  timespec now;
  ::clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  return now.tv_sec * 1000 + now.tv_nsec / 1'000'000;
}

}  // namespace

// Gives back the memory of as many stacks of each size class as were idle all the time since the last call, less `min_idle`.
void stack_pool::age() noexcept {
  const long now = milliseconds_now();
  std::size_t unused[classes];
  {
    std::lock_guard held{lock_};
    if (std::chrono::milliseconds{now - last_aged_} < options_.idle_for) return;
    last_aged_ = now;
    for (unsigned of = 0; of != classes; ++of) unused[of] = std::exchange(classes_[of].least, classes_[of].idle_count);
  }
  for (unsigned of = 0; of != classes; ++of)
    if (unused[of] > options_.min_idle) cool(of, unused[of] - options_.min_idle);
}

std::size_t stack_pool::trim() noexcept {
  std::size_t all = 0;
  for (unsigned of = 0; of != classes; ++of) all += cool(of, static_cast<std::size_t>(-1));
  return all;
}

// Gives back the memory of at most `most` stacks of a size class, those that have been idle for the longest. Returns how many.
// Memory that comes from a resource is kept.
std::size_t stack_pool::cool(unsigned of, std::size_t most) noexcept {
  if (options_.memory != nullptr) return 0;
  std::lock_guard growing{growing_};
  stack_header* going;
  std::size_t count;
  {
    std::lock_guard held{lock_};
    size_class& here = classes_[of];
    count = std::min(most, here.idle_count);
    stack_header** oldest = &here.idle;
    for (std::size_t i = count; i != here.idle_count; ++i) oldest = &(*oldest)->next;
    going = std::exchange(*oldest, nullptr);
    here.idle_count -= count;
    here.least = std::min(here.least, here.idle_count);
  }
  constexpr std::size_t most_at_once = 64;
  std::array<iovec, most_at_once> memories;
  std::size_t so_many = 0;
  while (going != nullptr) {
    stack_header& one = *std::exchange(going, going->next);
    if (one.fresh) measure_held(one);
    stack_region& region = *one.region;
    if (region.cool(one)) region.next_with_room = std::exchange(roomy_[of], &region);
    memories[so_many++] = region.memory_of(one);
    if (so_many == most_at_once || going == nullptr) {
      detail::let_go(std::span{memories}.first(std::exchange(so_many, 0)));
    }
  }
  if (most == static_cast<std::size_t>(-1))
    for (stack_region* one = roomy_[of]; one != nullptr; one = one->next_with_room) one->let_go_of_ready();
  return count;
}

}  // namespace weft
