#include "stack/stack_region.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <memory_resource>
#include <mutex>
#include <new>
#include <span>
#include <string>
#include <utility>
#include <weft/error.hpp>

#include "memory/slabs.hpp"
#include "stack/stack_valgrind.hpp"

namespace weft::detail {
namespace {

constinit std::mutex all_lock;                    // held to change the list
constinit stack_region* spare_regions = nullptr;  // records in the list that no pool uses; under all_lock
constinit std::size_t next_colour = 0;            // of the first stack of the next region; under all_lock
// edge region  the fields of a region  ->  a thread that finds it in the list
//              No model: the list is only pushed to. A reader looks for the region of its own stack, which it got under the
//              lock of a pool; the edge is for the other regions, which it passes over.
constinit std::atomic<stack_region*> all_regions{nullptr};

std::byte* map(std::size_t bytes, bool huge) {
  const std::size_t extra = huge ? huge_page : 0;
  void* mapped =
      ::mmap(nullptr, bytes + extra, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) throw std::bad_alloc{};
  auto* begin = static_cast<std::byte*>(mapped);
  if (!huge) {
    ::madvise(begin, bytes, MADV_NOHUGEPAGE);  // a huge page would make 16 stacks resident where one is used
    return begin;
  }
  auto* aligned =
      reinterpret_cast<std::byte*>((reinterpret_cast<std::uintptr_t>(begin) + huge_page - 1) & ~(huge_page - 1));
  if (aligned != begin) ::munmap(begin, static_cast<std::size_t>(aligned - begin));
  if (auto* end = aligned + bytes; end != begin + bytes + extra)
    ::munmap(end, static_cast<std::size_t>(begin + bytes + extra - end));
  ::madvise(aligned, bytes, MADV_HUGEPAGE);
  return aligned;
}

}  // namespace

stack_region::stack_region(std::size_t slots)
    : slots_{slots},
      cold_{std::make_unique<std::uint32_t[]>(slots)},
      known_to_valgrind_{std::make_unique<unsigned[]>(slots)} {}

stack_region& stack_region::make(stack_pool& pool, const stack_pool_options& options, stack_guard guard,
                                 std::uint16_t of, std::size_t usable, std::size_t slots) {
  std::lock_guard held{all_lock};
  stack_region** spare = &spare_regions;
  while (*spare != nullptr && (*spare)->slots_ != slots) spare = &(*spare)->next_of_class;
  stack_region* one = *spare;
  std::unique_ptr<stack_region> fresh;
  if (one == nullptr) {
    fresh.reset(new stack_region{slots});
    one = fresh.get();
  }
  const std::size_t guard_pages = guard == stack_guard::none ? 0 : (options.guard_size + page_bytes - 1) / page_bytes;
  const std::size_t pages = guard_pages + usable / page_bytes + 1;  // one for colour and header
  const bool odd = options.huge_pages || pages % 2 == 1;
  one->slot_bytes_ = (pages + (odd ? 0 : 1)) * page_bytes;
  one->guard_bytes_ = guard_pages * page_bytes;
  one->guard_ = guard;
  one->pool_ = &pool;
  one->size_class_ = of;
  one->coloured_ = options.coloured;
  one->first_colour_ = std::exchange(next_colour, (next_colour + slots) % colours);
  one->of_system_ = options.memory == nullptr;
  one->huge_pages_ = options.huge_pages;
  one->cut_ = one->guarded_ = one->cold_count_ = one->warmed_ = 0;
  one->populated_ = false;
  std::byte* const begin = options.memory != nullptr
                               ? static_cast<std::byte*>(options.memory->allocate(one->bytes(), page_bytes))
                               : map(one->bytes(), options.huge_pages);
  one->begin_.store(begin, std::memory_order_relaxed);  // the list, or its reader's own thread, orders it
  if (fresh) {
    one->next_in_all_ = all_regions.load(std::memory_order_relaxed);  // under the lock
    all_regions.store(fresh.release(), std::memory_order_release);    // -> region (no model: as declared)
  } else {
    *spare = one->next_of_class;
  }
  one->next_of_class = one->next_with_room = nullptr;
  return *one;
}

void stack_region::end(std::pmr::memory_resource* memory) noexcept {
  std::lock_guard held{all_lock};
  for (std::size_t slot = 0; slot != guarded_; ++slot) {
    untell_valgrind(known_to_valgrind_[slot]);
    if (memory != nullptr && guard_ != stack_guard::none) remove_guard(guard_, slot_begin(slot), guard_bytes_);
  }
  next_of_class = std::exchange(spare_regions, this);
  std::byte* const begin = begin_.exchange(nullptr, std::memory_order_relaxed);  // as declared
  if (memory != nullptr)
    memory->deallocate(begin, bytes(), page_bytes);
  else
    ::munmap(begin, bytes());
}

// A region of a pool that was not destroyed keeps its record.
void stack_region::forget_all() noexcept {
  std::lock_guard held{all_lock};
  stack_region* one = all_regions.exchange(nullptr, std::memory_order_relaxed);  // no other thread uses the library
  while (one != nullptr) {
    stack_region* const gone = std::exchange(one, one->next_in_all_);
    if (gone->begin() == nullptr) delete gone;
  }
  spare_regions = nullptr;
}

stack_region* stack_region::of(const void* address) noexcept {
  stack_region* one = all_regions.load(std::memory_order_acquire);  // <- region (no model: as declared)
  for (; one != nullptr; one = one->next_in_all_) {
    std::byte* const begin = one->begin();
    if (begin != nullptr && begin <= address && address < begin + one->bytes()) return one;
  }
  return nullptr;
}

stack_header& stack_region::header_of(std::size_t slot) noexcept {
  const std::size_t colour = coloured_ ? (first_colour_ + slot) % colours * colour_bytes : 0;
  return *reinterpret_cast<stack_header*>(slot_begin(slot) + slot_bytes_ - colour - sizeof(stack_header));
}

// How many slots to make ready at once: as many as this region and the previous one have given out. So a single coroutine pays
// for one slot, and a program with many does not begin with one slot again in each region.
std::size_t stack_region::ready_at_once() const noexcept {
  const std::size_t before = next_of_class != nullptr ? next_of_class->cut_ - next_of_class->cold_count_ : 0;
  return std::clamp<std::size_t>(cut_ - cold_count_ + before, 1, most_at_once);
}

iovec stack_region::first_page_of(std::size_t slot) noexcept {
  auto* const at = reinterpret_cast<std::byte*>(&header_of(slot));
  return {at - reinterpret_cast<std::uintptr_t>(at) % page_bytes, page_bytes};
}

void stack_region::guard_more() {
  const std::size_t count = std::min(ready_at_once(), slots_ - guarded_);
  batch ranges;
  for (std::size_t i = 0; i != count; ++i) ranges[i] = {slot_begin(guarded_ + i), guard_bytes_};
  const std::size_t done = guard_ == stack_guard::none ? count : install_guards(guard_, std::span{ranges}.first(count));
  if (done == 0)
    throw error{{errno, std::system_category()},
                "guard of a stack",
                guard_ == stack_guard::mprotect ? "the system allows " + std::to_string(most_mappings()) +
                                                      " mappings a process (vm.max_map_count), and each stack takes two"
                                                : "the system refuses it"};
  for (std::size_t i = 0; i != done; ++i) {
    std::byte* const begin = slot_begin(guarded_ + i);
    known_to_valgrind_[guarded_ + i] = tell_valgrind(begin + guard_bytes(), begin + slot_bytes_);
    ranges[i] = first_page_of(guarded_ + i);
  }
  guarded_ += done;
  populated_ = done > 1 && of_system_ && !huge_pages_;
  if (populated_) populate(std::span{ranges}.first(done));
}

void stack_region::warm() noexcept {
  warmed_ = std::min(ready_at_once(), cold_count_);
  batch ranges;
  for (std::size_t i = 0; i != warmed_; ++i) ranges[i] = first_page_of(cold_[cold_count_ - 1 - i]);
  if (warmed_ > 1 && !huge_pages_) populate(std::span{ranges}.first(warmed_));
}

stack_header& stack_region::take() {
  std::size_t slot = cut_;
  bool zeroed = of_system_;
  if (cold_count_ != 0) {
    if (warmed_ == 0) warm();
    --warmed_;
    slot = cold_[--cold_count_];
    zeroed = true;
  } else {
    if (cut_ == guarded_) guard_more();
    ++cut_;
  }
  return *::new (&header_of(slot)) stack_header{.next = nullptr,
                                                .bottom = slot_begin(slot) + guard_bytes(),
                                                .region = this,
                                                .user = {},
                                                .name = nullptr,
                                                .fiber = nullptr,
                                                .size_class = size_class_,
                                                .fresh = zeroed,
                                                .guarded = guard_ != stack_guard::none,
                                                .known_to_valgrind = 0};
}

bool stack_region::cool(const stack_header& one) noexcept {
  const bool was_full = is_full();
  let_go_of_ready();
  cold_[cold_count_++] = static_cast<std::uint32_t>(slot_of(&one));
  return was_full;
}

iovec stack_region::memory_of(const stack_header& one) const noexcept {
  return {one.bottom, slot_bytes_ - guard_bytes()};
}

void stack_region::let_go_of_ready() noexcept {
  batch ranges;
  std::size_t count = 0;
  while (warmed_ != 0) ranges[count++] = first_page_of(cold_[cold_count_ - warmed_--]);
  let_go(std::span{ranges}.first(count));
  if (!std::exchange(populated_, false)) return;
  for (std::size_t slot = cut_; slot != guarded_; ++slot) ranges[slot - cut_] = first_page_of(slot);
  let_go(std::span{ranges}.first(guarded_ - cut_));
}

}  // namespace weft::detail
