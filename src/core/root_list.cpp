// The lists of roots that nothing stands above.
#include <iterator>
#include <mutex>
#include <utility>
#include <weft/detail/base/lock.hpp>
#include <weft/detail/core/walk.hpp>

#include "base/debug_note.hpp"

namespace weft::detail {
namespace {

struct alignas(64) root_list {
  tiny_lock lock;
  top_root* first = nullptr;   // under the lock, as the next
  top_root** place = nullptr;  // of a walk: what points to the next one that it looks at
};
constinit root_list lists[16];

root_list& list_of(const void* one) noexcept {
  return lists[(reinterpret_cast<std::uintptr_t>(one) * 0x9e3779b97f4a7c15) >> 60];
}

}  // namespace

// For who looks from outside of the process.
struct debug_tops {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Winvalid-offsetof"  // of classes with bases: supported by both compilers
  static constexpr debug_field fields[] = {
      {"tops", &lists},
      {"tops.count", std::size(lists)},
      {"tops.bytes", sizeof(root_list)},
      {"tops.first", offsetof(root_list, first)},
      {"top_root.next", offsetof(top_root, next_)},
      {"top_root.function", offsetof(top_root, function_)},
      {"top_root.kind", offsetof(top_root, kind_)},
  };
#pragma GCC diagnostic pop
};
extern "C" [[gnu::visibility("hidden"), gnu::used]] constinit const debug_table weft_debug_tops{debug_tops::fields};
WEFT_DEBUG_NOTE("weft_debug_tops");

void top_root::list() noexcept {
  root_list& mine = list_of(this);
  const std::lock_guard guard{mine.lock};
  next_ = mine.first;
  link_ = &mine.first;
  if (next_ != nullptr) next_->link_ = &next_;
  mine.first = this;
}

void top_root::unlist() noexcept {
  root_list& mine = list_of(this);
  const std::lock_guard guard{mine.lock};
  if (link_ == nullptr) return;  // a shared task that never ran
  if (mine.place == &next_) mine.place = link_;
  *link_ = next_;
  if (next_ != nullptr) next_->link_ = link_;
}

// Those that are entered meanwhile go to the front, where the walk has been.
bool top_roots::next(place& at, child_batch& into) noexcept {
  for (; at.list != std::size(lists); ++at.list, at.has_begun = false) {
    root_list& list = lists[at.list];
    const std::lock_guard guard{list.lock};
    if (!std::exchange(at.has_begun, true)) list.place = &list.first;
    while (*list.place != nullptr && !into.is_full()) {
      top_root& one = **list.place;
      into.add(one, one.function_.load(std::memory_order_relaxed), one.kind_);  // a figure
      list.place = &one.next_;
    }
    if (*list.place != nullptr) return true;
    list.place = nullptr;
  }
  return false;
}

void top_roots::leave(place& at) noexcept {
  if (at.list == std::size(lists)) return;
  const std::lock_guard guard{lists[at.list].lock};
  lists[at.list].place = nullptr;
}

void top_roots::before_fork() noexcept {
  for (root_list& one : lists) one.lock.lock();
}
void top_roots::after_fork() noexcept {
  for (root_list& one : lists) one.lock.unlock();
}

}  // namespace weft::detail
