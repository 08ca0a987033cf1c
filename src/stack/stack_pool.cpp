// Taking stacks and giving them back, limits and figures. How their memory is given back to the system is in stack_aging.cpp.
//
// A pool takes address space in regions and cuts slots of one size from each. A slot, from below:
//
//     guard | what may be used ... frames | the coroutine's own lines, its function | stack_header | colour
//
// Equal stacks at equal distances would put their hot lines into the same few cache sets, and their pages into the same few
// sets of the TLB: 1000 stacks 64 KiB apart took 38 ns a pair of switches. So the tops of neighbours are shifted by 0 to 22
// times 128 bytes (cache colouring), which leaves a page for what a small coroutine touches, and a slot is an odd number of
// pages. 23 colours, and not 24: the sets of a cache span a number of pages that is a power of two, with which 23 has no factor
// in common. In a second-level cache of 2048 sets, the same page and colour come together in every 736th slot; with 24 colours,
// in every 96th. A region's colours go on where those of the previous one ended.
//
// A guard is memory that faults. On Linux 6.13 and later it is a range of the mapping that needs no entry in the process's list
// of mappings (MADV_GUARD_INSTALL); before, each guard splits a mapping (mprotect), and the system allows some 65,000 of those.
// Which of them works is tried once, by a fault and not by a return code: there are systems that return 0 and let the write
// through. A guard is as large as most frames, so that one of those can't skip it.
//
// A system call for one page takes several times what a page costs in a call for many. So stacks are guarded, given their first
// page, and let go of in batches: a region that has handed out n of them readies n more. A high-water mark takes such a call,
// too: it is taken when a stack changes its user, not each time that a stack is given back.
//
// Rejected: (a) guards on huge pages: a guard splits the huge page, so nothing is gained. So `huge_pages` needs `guard = none`,
// and such stacks have a canary, checked when they are given back. (b) Segmented stacks: a call at the end of a segment
// allocates the next one, again and again in a loop (the hot-split problem).
#include <weft/stack_pool.hpp>

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <new>
#include <span>
#include <utility>
#include <weft/detail/context/context.hpp>
#include <weft/error.hpp>

#include "base/asan.hpp"
#include "base/unloading.hpp"
#include "context/shadow_stack.hpp"
#include "stack/stack_memory.hpp"
#include "stack/stack_overflow.hpp"
#include "stack/stack_region.hpp"
#include "stack/stack_valgrind.hpp"

#if __has_include(<valgrind/memcheck.h>)
#include <valgrind/memcheck.h>
#endif

extern "C" {  // NOLINTBEGIN(readability-identifier-naming): the sanitizers' names
[[gnu::weak]] void __tsan_destroy_fiber(void* fiber);
}  // NOLINTEND(readability-identifier-naming)

namespace weft {
namespace detail {
namespace {

// Clears what sanitizers remember of the frames that were on a stack.
void forget_frames(stack_header& one) noexcept {
  unpoison(one.bottom, one.usable());
  if (one.fiber != nullptr && __tsan_destroy_fiber != nullptr) __tsan_destroy_fiber(std::exchange(one.fiber, nullptr));
}

}  // namespace

stack_header& stack_in(void* memory, std::size_t bytes) noexcept {
  const auto from = (reinterpret_cast<std::uintptr_t>(memory) + 15) & ~std::uintptr_t{15};
  const auto end = (reinterpret_cast<std::uintptr_t>(memory) + bytes) & ~(std::uintptr_t{alignof(stack_header)} - 1);
  WEFT_EXPECTS(memory != nullptr && bytes >= least_stack_size,
               "a stack in memory of one's own needs weft::least_stack_size bytes at least (8 KiB; 16 KiB on AArch64): "
               "an exception that passes through takes most of that");
  auto& one = *::new (reinterpret_cast<void*>(end - sizeof(stack_header))) stack_header{};
  one.bottom = reinterpret_cast<std::byte*>(from);
  one.known_to_valgrind = tell_valgrind(one.bottom, reinterpret_cast<std::byte*>(end));
  set_canary(one);
  return one;
}

void give_back_stack(stack_header& one) noexcept {
  forget_frames(one);
  if (!one.guarded && !canary_lives(one)) [[unlikely]]
    fail_overflow(one, one.usable(), naming::demangled);
  if (one.region != nullptr)
    one.region->pool().give_back(one);
  else
    untell_valgrind(one.known_to_valgrind);
}

}  // namespace detail

// ---- stack_pool -----------------------------------------------------------------------------------------------------

using detail::page_bytes;
using detail::stack_header;
using detail::stack_region;

namespace {

stack_guard guard_for(const stack_pool_options& options) {
  if (options.huge_pages && options.guard != stack_guard::none)
    throw error{std::make_error_code(std::errc::invalid_argument), "stack_pool",
                "huge pages and guards: a guard splits the page; say guard = stack_guard::none, too"};
  constexpr std::size_t most = std::size_t{1} << 40;  // beyond, sums of sizes might wrap round
  if (options.guard != stack_guard::none && (options.guard_size == 0 || options.guard_size > most))
    throw error{std::make_error_code(std::errc::invalid_argument), "stack_pool",
                options.guard_size == 0 ? "guards of no size guard nothing: say guard = stack_guard::none instead"
                                        : "no guard may be larger than 1 TiB"};
  if (options.guard == stack_guard::automatic) return detail::best_guard();
  if (!detail::guard_works(options.guard))
    throw error{std::make_error_code(std::errc::not_supported), "stack_pool",
                options.guard == stack_guard::madvise ? "this kernel has no MADV_GUARD_INSTALL (Linux 6.13)"
                                                      : "mprotect guards nothing here"};
  return options.guard;
}

unsigned class_of(std::size_t size) noexcept {
  return static_cast<unsigned>(std::bit_width((std::max<std::size_t>(size, 1) - 1) >> 12));
}

// 16 MiB of stacks, but not fewer than one and not more than 256.
std::size_t slots_in_region(std::size_t usable) noexcept {
  return std::clamp<std::size_t>((std::size_t{16} << 20) / usable, 1, 256);
}

}  // namespace

// The measured use of stacks, by user.
struct stack_pool::all_uses {
  struct use {
    detail::stack_user who;
    std::size_t high_water = 0, measured = 0;
  };
  std::vector<use> each;
};

stack_pool::stack_pool(const stack_pool_options& options) : options_{options}, guard_{guard_for(options)} {
  detail::refuse_shadow_stacks();
  if (options.guard == stack_guard::automatic && guard_ != stack_guard::madvise) state_limits();
}

// Prints the limits once, before the program reaches them.
void stack_pool::state_limits() const noexcept {
  static const bool once = [this] {
    try {
      std::fprintf(stderr, "weft: %s\n", limits().sentence.c_str());
    } catch (const std::bad_alloc&) {  // limits() tells them when there is memory again
    }
    return true;
  }();
  static_cast<void>(once);
}

stack_pool::~stack_pool() {
  WEFT_EXPECTS(in_use_ == 0, "a stack_pool was destroyed while something runs on its stacks");
  for (stack_region* first : regions_)
    while (first != nullptr) std::exchange(first, first->next_of_class)->end(options_.memory);
}

namespace { constinit stack_pool* pool_of_process = nullptr; }

// Made by the first call. Statics may own coroutines, so it is destroyed only where the library is unloaded.
stack_pool& stack_pool::process_wide(const stack_pool_options* asked) {
  alignas(stack_pool) static std::byte storage[sizeof(stack_pool)];
  static auto* const pool = [&asked] {
    auto* made = ::new (storage) stack_pool{asked != nullptr ? *asked : stack_pool_options{}};
    detail::note_that_something_stays();
    pool_of_process = made;
    asked = nullptr;
    return made;
  }();
  WEFT_EXPECTS(asked == nullptr,
               "stack_pool::configure_process_wide was called when the process had that pool: call it once, before the "
               "first fiber or coroutine");
  return *pool;
}

// Destroys the pool of the process when the library is unloaded. What runs on its stacks can't go on, since its code is
// unloaded. Memory of the program's own is not given back: its resource may be a static that is destroyed already.
[[gnu::destructor(detail::unloads_stacks)]] void detail::end_stacks() noexcept {
  if (!is_unloaded()) return;
  if (pool_of_process != nullptr && pool_of_process->options_.memory == nullptr) {
    pool_of_process->in_use_ = 0;
    pool_of_process->~stack_pool();
  }
  stack_region::forget_all();
}

stack_pool& stack_pool::process_wide() noexcept { return process_wide(nullptr); }

stack_pool& stack_pool::configure_process_wide(const stack_pool_options& options) { return process_wide(&options); }

stack_header& stack_pool::take(std::size_t size, const detail::stack_user& user) {
  const unsigned of = class_of(size);
  if (of >= classes) throw std::bad_alloc{};
  stack_header* one = nullptr;
  {
    std::unique_lock held{lock_};
    if (in_use_ >= options_.max_stacks) [[unlikely]] {
      held.unlock();
      throw error{std::make_error_code(std::errc::not_enough_memory), "stack_pool",
                  "has as many stacks in use as it may (max_stacks, " + std::to_string(options_.max_stacks) + ")"};
    }
    ++in_use_, ++taken_;
    size_class& here = classes_[of];
    one = here.idle;
    if (one != nullptr) [[likely]] {
      here.idle = one->next;
      here.least = std::min(here.least, --here.idle_count);
    }
  }
  try {
    if (one == nullptr) one = &take_cold(of);
  } catch (...) {  // uncounts it, and rethrows
    std::lock_guard held{lock_};
    --in_use_, --taken_;
    throw;
  }
  if (one->fresh && one->user.type != nullptr && one->user != user) measure(*one);
  one->user = user;
  return *one;
}

[[gnu::noinline]] stack_header& stack_pool::take_cold(unsigned of) {
  std::lock_guard held{growing_};
  stack_region*& roomy = roomy_[of];
  if (roomy == nullptr) {
    const std::size_t usable = page_bytes << of;
    roomy =
        &stack_region::make(*this, options_, guard_, static_cast<std::uint16_t>(of), usable, slots_in_region(usable));
    roomy->next_of_class = std::exchange(regions_[of], roomy);
  }
  stack_header& one = roomy->take();
  if (roomy->is_full()) roomy = std::exchange(roomy->next_with_room, nullptr);
  if (!one.guarded) detail::set_canary(one);
  return one;
}

void stack_pool::give_back(stack_header& one) noexcept {
  if (options_.measure_all) measure(one);
  size_class& here = classes_[one.size_class];
  bool look = false;
  {
    std::lock_guard held{lock_};
    one.next = here.idle;
    here.idle = &one;
    --in_use_;
    look = ++here.idle_count > options_.min_idle && here.idle_count % 64 == 0;
  }
  if (look) age();
}

// ---- limits, figures ------------------------------------------------------------------------------------------------

stack_limits stack_pool::limits() const {
  constexpr std::size_t default_slot = std::size_t{128} << 10;
  const std::size_t address_space = (std::size_t{1} << 46) / default_slot;
  switch (guard_) {
    case stack_guard::madvise:
      return {guard_, std::min(options_.max_stacks, address_space),
              "stacks are guarded by MADV_GUARD_INSTALL; memory is the only limit"};
    case stack_guard::mprotect: {
      const std::size_t mappings = detail::most_mappings() / 2;
      return {guard_, std::min(options_.max_stacks, mappings),
              "stacks are guarded by mprotect, two mappings each: " + std::to_string(mappings) +
                  " at the most (vm.max_map_count; Linux 6.13 needs none)"};
    }
    default: {
      std::string sentence =
          options_.guard == stack_guard::none
              ? "stacks are not guarded, as was asked for: one that runs over is found when it has ended"
              : "stacks can't be guarded on this system: one that runs over is found when it has ended";
      if (options_.huge_pages && !detail::has_huge_pages())
        sentence += "; huge pages were asked for, and the system gives this process none";
      return {guard_, std::min(options_.max_stacks, address_space), std::move(sentence)};
    }
  }
}

stack_pool_stats stack_pool::stats() const noexcept {
  stack_pool_stats seen{};
  std::lock_guard growing{growing_};
  for (unsigned of = 0; of != classes; ++of)
    for (const stack_region* one = regions_[of]; one != nullptr; one = one->next_of_class) {
      seen.made += one->cut();
      seen.cold += one->cold();
      seen.address_space += one->bytes();
    }
  std::lock_guard held{lock_};
  seen.in_use = in_use_;
  seen.taken = taken_;
  for (const size_class& one : classes_) seen.idle += one.idle_count;
  return seen;
}

// Records the use of a stack whose pages were zero. With `measure_all`, makes them zero for the next use. Takes growing_.
[[gnu::noinline]] void stack_pool::measure(stack_header& one) const noexcept {
  std::lock_guard held{growing_};
  measure_held(one);
}

void stack_pool::measure_held(stack_header& one) const noexcept {
  const detail::stack_user who = std::exchange(one.user, {});  // measured once
  if (who.type == nullptr) return;
  const bool known = one.fresh;
  one.fresh = false;
  std::byte* const from = one.guarded ? one.bottom : one.bottom + detail::canary_bytes;
#if defined(VALGRIND_MAKE_MEM_DEFINED)  // to valgrind, memory of frames that are gone is not to be read
  static_cast<void>(VALGRIND_MAKE_MEM_DEFINED(from, one.top() - from));
#endif
  const std::size_t used = static_cast<std::size_t>(one.top() - detail::lowest_written(from, one.top()));
  if (options_.measure_all && options_.memory == nullptr) {
    const auto page = reinterpret_cast<std::uintptr_t>(one.top()) & ~(page_bytes - 1);
    ::madvise(one.bottom, page - reinterpret_cast<std::uintptr_t>(one.bottom), MADV_DONTNEED);
    if (!one.guarded) detail::set_canary(one);
    std::memset(reinterpret_cast<void*>(page), 0, reinterpret_cast<std::uintptr_t>(one.top()) - page);
    one.fresh = true;
  }
  if (!known) return;
  using use = all_uses::use;
  use* at = nullptr;
  try {
    if (uses_ == nullptr) uses_ = std::make_unique<all_uses>();
    const auto known_one = std::ranges::find(uses_->each, who, &use::who);
    at = known_one != uses_->each.end() ? &*known_one : &uses_->each.emplace_back(use{.who = who});
  } catch (const std::bad_alloc&) {  // then this use is not recorded
    return;
  }
  at->high_water = std::max(at->high_water, used);
  ++at->measured;
}

// Measures all idle stacks of a size class, which nobody can take meanwhile.
void stack_pool::measure_idle(size_class& here) const noexcept {
  stack_header* all;
  {
    std::lock_guard held{lock_};
    all = std::exchange(here.idle, nullptr);
    here.idle_count = here.least = 0;
  }
  if (all == nullptr) return;
  std::size_t count = 1;
  stack_header* last = all;
  for (;; last = last->next, ++count) {
    if (last->fresh) measure_held(*last);
    if (last->next == nullptr) break;
  }
  std::lock_guard held{lock_};
  last->next = std::exchange(here.idle, all);
  here.idle_count += count;
}

items<stack_use> stack_pool::marks() const {
  std::vector<stack_use> all;
  std::lock_guard growing{growing_};
  for (size_class& here : classes_) measure_idle(here);
  if (uses_ == nullptr) return {};
  for (const all_uses::use& one : uses_->each)
    all.push_back({.function = detail::name_of(one.who),
                   .high_water = one.high_water,
                   .measured = one.measured,
                   .suggested = std::bit_ceil(std::max(2 * one.high_water, page_bytes))});
  std::ranges::sort(all, std::ranges::greater{}, &stack_use::high_water);
  return {all.data(), all.data() + all.size()};
}

}  // namespace weft
