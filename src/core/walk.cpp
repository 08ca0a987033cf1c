#include <weft/detail/core/walk.hpp>

#include <algorithm>
#include <mutex>
#include <ostream>
#include <utility>
#include <vector>

#include "base/unloading.hpp"
#include "core/peek.hpp"

namespace weft {
namespace detail {

constinit std::mutex walks_lock;

// ---- batches --------------------------------------------------------------------------------------------------------------

void child_batch::add(root& one, const void* function, root_kind kind) noexcept {
  child& added = all_[count_++];
  added.one = &one;
  added.id = task_ids::of(one);
  added.function = function;
  added.kind = kind;
  added.stop_requested = one.was_told_to_stop();
  if (!added.wait.emplace(one)) {
    added.wait.reset();
    if (held_wait::is_being_stopped(one)) is_complete = false;
  }
}

void child_batch::add_untouched(root& one, root_kind kind) noexcept {
  child& added = all_[count_++];
  added.one = &one;
  added.id = task_ids::of_untouched(one);
  added.function = nullptr;
  added.kind = kind;
  added.stop_requested = false;
  added.wait.reset();
}

// ---- ids ------------------------------------------------------------------------------------------------------------------

namespace {

// A table with open addressing, whose size is a power of two and at most half of which is taken.
struct entry {
  std::uintptr_t address = 0;
  std::uint64_t generation = 0;
};

std::size_t slot_of(std::uintptr_t address) noexcept {
  return static_cast<std::size_t>((address * 0x9e3779b97f4a7c15) >> 20);
}

constinit std::mutex ids_lock;  // of all that follows
constinit std::vector<entry>* ids = nullptr;
constinit std::size_t ids_count = 0;
constinit std::uint64_t newest_generation = 0;

entry& find_in(std::vector<entry>& table, std::uintptr_t address) noexcept {
  const std::size_t mask = table.size() - 1;
  std::size_t at = slot_of(address) & mask;
  while (table[at].address != 0 && table[at].address != address) at = (at + 1) & mask;
  return table[at];
}

// Stays when the process ends: a task may ask for an id then.
std::vector<entry>& table() {
  if (ids == nullptr) {
    ids = new std::vector<entry>(64);
    note_that_something_stays();
  }
  return *ids;
}
[[gnu::destructor(unloads_workers)]] void forget_ids() noexcept {
  if (is_unloaded()) delete std::exchange(ids, nullptr);
}

std::size_t room_for(std::size_t count) noexcept {
  std::size_t size = 64;
  while (size < 2 * count) size *= 2;
  return size;
}

}  // namespace

void task_ids::reserve(std::size_t more) {
  const std::lock_guard guard{ids_lock};
  reserve_held(more);
}

void task_ids::reserve_held(std::size_t more) {
  std::vector<entry>& now = table();
  if (2 * (ids_count + more) <= now.size()) return;
  std::vector<entry> larger(room_for(ids_count + more));
  for (const entry& one : now)
    if (one.address != 0) find_in(larger, one.address) = one;
  now.swap(larger);
}

task_id task_ids::of(root& one) noexcept {
  const std::lock_guard guard{ids_lock};
  return of_held(one);
}

task_id task_ids::of_held(root& one) noexcept {
  return entered(one, one.is_fork ? note_id_of_fork(one)
                                  : one.has_id.exchange(true, std::memory_order_relaxed));  // under the lock
}

task_id task_ids::of_untouched(root& one) noexcept {
  const std::lock_guard guard{ids_lock};
  const bool is_known = peek(reinterpret_cast<const bool&>(one.has_id));
  poke(reinterpret_cast<bool&>(one.has_id), true);
  return entered(one, is_known);
}

// Under the lock.
task_id task_ids::entered(const root& one, bool is_known) noexcept {
  const auto address = reinterpret_cast<std::uintptr_t>(static_cast<const sleeper*>(&one));
  entry& its = find_in(*ids, address);
  if (its.address == 0) {
    its.address = address;
    ++ids_count;
    its.generation = ++newest_generation;
  } else if (!is_known) {
    its.generation = ++newest_generation;
  }
  return task_id{its.address, its.generation};
}

std::uint64_t task_ids::next_generation() noexcept {
  const std::lock_guard guard{ids_lock};
  return newest_generation + 1;
}

std::size_t task_ids::size() noexcept {
  const std::lock_guard guard{ids_lock};
  return ids_count;
}

void task_ids::keep_only(const task_id* alive, std::size_t count, std::uint64_t oldest) {
  const std::lock_guard guard{ids_lock};
  std::vector<entry> kept;
  for (const entry& one : table())
    if (one.address != 0 &&
        (one.generation >= oldest || std::binary_search(alive, alive + count, task_id{one.address, one.generation})))
      kept.push_back(one);
  std::vector<entry> smaller(room_for(kept.size()));
  for (const entry& one : kept) find_in(smaller, one.address) = one;
  ids_count = kept.size();
  ids->swap(smaller);
}

void task_ids::before_fork() noexcept { ids_lock.lock(); }
void task_ids::after_fork() noexcept { ids_lock.unlock(); }

// What a walk has reserved stays so: this takes none of that.
task_id id_of(root& one) {
  const std::lock_guard guard{ids_lock};
  task_ids::reserve_held(1 + child_batch::most);
  return task_ids::of_held(one);
}

}  // namespace detail

std::ostream& operator<<(std::ostream& out, task_id id) {
  return out << reinterpret_cast<const void*>(id.address()) << '.' << id.generation();
}

task_id this_task::id() {
  detail::root* const self = detail::current_root();
  return self != nullptr ? detail::id_of(*self) : task_id{};
}

}  // namespace weft
