#include "pool/pool_list.hpp"

#include <pthread.h>

#include <mutex>

#include "pool/process_forks.hpp"

namespace weft::detail {
namespace {

constinit std::mutex pools_lock;
constinit pool_place* newest_pool = nullptr;

// A forked child gets the list whole, and unlocked.
bool keep_pools_lock_over_forks() noexcept {
  const auto let_go = [] { pools_lock.unlock(); };
  return ::pthread_atfork([] { pools_lock.lock(); }, let_go, let_go) == 0;
}

}  // namespace

void enter_pool(pool_place& place, pool_core& one) noexcept {
  [[maybe_unused]] static const bool keeps = keep_pools_lock_over_forks();
  const std::lock_guard held{pools_lock};
  place = {.of = &one,
           .forks_before = forks_of_process.load(std::memory_order_relaxed),  // as declared
           .next = newest_pool,
           .before = nullptr};
  if (newest_pool != nullptr) newest_pool->before = &place;
  newest_pool = &place;
}

void leave_pool(pool_place& place) noexcept {
  const std::lock_guard held{pools_lock};
  if (place.of == nullptr) return;
  (place.before != nullptr ? place.before->next : newest_pool) = place.next;
  if (place.next != nullptr) place.next->before = place.before;
  place = {};
}

void visit_pools(void (*visit)(pool_core& one, void* with), void* with) {
  const std::lock_guard held{pools_lock};
  const std::uint32_t forks = forks_of_process.load(std::memory_order_relaxed);  // as declared
  for (const pool_place* one = newest_pool; one != nullptr; one = one->next)
    if (one->forks_before == forks) visit(*one->of, with);
}

}  // namespace weft::detail
