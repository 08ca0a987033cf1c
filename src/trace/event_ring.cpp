#include "trace/event_ring.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <ctime>

#include "base/debug_note.hpp"
#include "base/stamp.hpp"

namespace weft::detail {
namespace {

constexpr std::size_t usual_bytes = std::size_t{1} << 20, most_bytes = std::size_t{1} << 30;

//   edge made  a ring and what it says of itself  ->  who goes through the list. No model: a list that only grows.
constinit atomic<event_ring*> newest{nullptr};
constinit std::atomic<std::size_t> bytes_of_rings{usual_bytes};  // relaxed: a figure

constinit stamp_pair first_pair;
[[gnu::constructor(102)]] void note_first_pair() noexcept {
  first_pair = stamp_pair::now();
}  // behind the choice of stamps

std::size_t header_bytes() noexcept { return (sizeof(event_ring) + 63) & ~std::size_t{63}; }

}  // namespace

// For who looks from outside of the process. Events lie in a ring as they do in a file: see recorded_event.
struct debug_rings {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Winvalid-offsetof"  // of a class with private members: supported by both compilers
  static constexpr debug_field fields[] = {
      {"rings", &newest},
      {"rings.bytes", &bytes_of_rings},  // 0: no more are made
      {"ring.made_before", offsetof(event_ring, made_before)},
      {"ring.thread", offsetof(event_ring, thread)},
      {"ring.made", offsetof(event_ring, made)},
      {"ring.events", offsetof(event_ring, words_)},
      {"ring.mask", offsetof(event_ring, mask_)},
      {"ring.next", offsetof(event_ring, next_)},
      {"event.bytes", sizeof(recorded_event)},
      {"stamps.first", &first_pair},
      {"stamp_pair.bytes", sizeof(stamp_pair)},
      {"stamp_pair.stamp", offsetof(stamp_pair, stamp)},
      {"stamp_pair.steady", offsetof(stamp_pair, steady)},
      {"stamp_pair.real", offsetof(stamp_pair, real)},
#if defined(__x86_64__)
      {"stamps.are_ticks", &stamps_are_ticks},
#endif
  };
#pragma GCC diagnostic pop
};
extern "C" [[gnu::visibility("hidden"), gnu::used]] constinit const debug_table weft_debug_rings{debug_rings::fields};
WEFT_DEBUG_NOTE("weft_debug_rings");

// The thread may be held up between two of the three: then once more.
stamp_pair stamp_pair::now() noexcept {
  stamp_pair closest;
  std::uint64_t apart = std::uint64_t(-1);  // of `closest`, in nanoseconds
  for (int tries = 0; tries != 8 && apart > 2'000; ++tries) {
    timespec wall;
    const std::uint64_t before = steady_nanoseconds();
    const std::uint64_t stamp = stamp_now();
    ::clock_gettime(CLOCK_REALTIME, &wall);
    const std::uint64_t took = steady_nanoseconds() - before;
    if (took >= apart) continue;
    apart = took;
    closest = {
        .stamp = stamp,
        .steady = before + took / 2,
        .real = static_cast<std::uint64_t>(wall.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(wall.tv_nsec)};
  }
  return closest;
}

const stamp_pair& first_stamp() noexcept { return first_pair; }

stamp_scale stamp_scale::now() noexcept {
  const stamp_pair last = stamp_pair::now();
  const std::uint64_t ticks = last.stamp - first_pair.stamp;
  return {ticks != 0 ? static_cast<double>(last.steady - first_pair.steady) / static_cast<double>(ticks) : 1.0};
}

void set_ring_bytes(std::size_t bytes) noexcept {
  const std::size_t least = event_ring::fewest * sizeof(recorded_event);
  bytes_of_rings.store(bytes == 0 ? 0 : std::bit_floor(std::clamp(bytes, least, most_bytes)),
                       std::memory_order_relaxed);  // as declared
}

event_ring* make_ring() noexcept {
  const std::size_t bytes = bytes_of_rings.load(std::memory_order_relaxed);  // as declared
  if (bytes == 0) return nullptr;
  // Pages that are never written to take no memory.
  void* const room = ::mmap(nullptr, header_bytes() + bytes, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (room == MAP_FAILED) return nullptr;
  auto* const memory =
      reinterpret_cast<atomic<std::uint64_t>*>(static_cast<std::byte*>(room) + header_bytes());  // all zero
  auto* const ring = ::new (room) event_ring{memory, bytes / sizeof(recorded_event)};
  ring->made = stamp_pair::now();
  ring->begin_as_this_thread();
  event_ring* before = newest.load(std::memory_order_relaxed);  // a guess: the exchange decides
  do ring->made_before = before;
  while (!newest.compare_exchange_weak(before, ring, std::memory_order_release,  // -> made (no model: as declared)
                                       std::memory_order_relaxed));  // tried again
  return ring;
}

void event_ring::begin_as_this_thread() noexcept {
  const auto number = static_cast<std::uint32_t>(::gettid());
  const std::uint32_t before = thread.load(std::memory_order_relaxed);  // as declared
  thread.store(number, std::memory_order_relaxed);                      // as declared
  write(stamp_now(), event_kind::thread, 0, number, before, 0);
}

event_ring* newest_ring() noexcept {
  return newest.load(std::memory_order_acquire);  // <- made (no model: as declared)
}

void end_rings() noexcept {
  event_ring* one = newest.exchange(nullptr, std::memory_order_acquire);  // <- made (no model: as declared)
  while (one != nullptr) {
    event_ring* const before = one->made_before;
    ::munmap(one, header_bytes() + one->places() * sizeof(recorded_event));
    one = before;
  }
}

}  // namespace weft::detail
