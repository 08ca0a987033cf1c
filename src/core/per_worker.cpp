// Rejected: (a) a lock around the resource: each frame would take it. (b) Blocks go back to the worker that they came from:
// each would have to hold its owner, which at an alignment of 32 costs 32 bytes.
#include <weft/per_worker.hpp>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <mutex>
#include <new>
#include <utility>

#include "base/asan.hpp"
#include "core/worker.hpp"

namespace weft {
namespace detail {

class per_worker_memory final : public std::pmr::memory_resource {
 public:
  explicit per_worker_memory(std::pmr::memory_resource* upstream) noexcept : upstream_{upstream} {}
  ~per_worker_memory() override {
    for (chunk* one = chunks_; one != nullptr;) {
      chunk* const next = one->next;
      unpoison(one, chunk_bytes);
      upstream_->deallocate(one, chunk_bytes, granule);
      one = next;
    }
    for (const auto& one : caches_)
      if (cache* const of = one.load(std::memory_order_relaxed); of != nullptr)  // no thread uses it any more
        upstream_->deallocate(of, sizeof(cache), alignof(cache));
  }

 private:
  static constexpr std::size_t granule = 32;
  static constexpr std::size_t small = 1024;
  static constexpr std::size_t classes = small / granule + 1;
  static constexpr std::size_t chunk_bytes = std::size_t{16} << 10;
  static constexpr std::size_t keep =
      64;  // blocks of a size that a worker has for itself; it takes and gives half as many
  static constexpr std::size_t slots = 256;
  static constexpr std::size_t most_caches = 200;

  struct block {
    block* next;
    void* behind() noexcept { return this + 1; }  // poisoned while it is free
    static std::size_t bytes_behind(std::size_t size) noexcept { return size * granule - sizeof(block); }
  };
  struct alignas(granule) chunk {
    chunk* next;
  };
  struct list {
    block* first = nullptr;
    std::size_t count = 0;

    void push(block* one) noexcept {
      one->next = first;
      first = one;
      ++count;
    }
    block* pop() noexcept {
      block* const one = first;
      if (one != nullptr) first = one->next, --count;
      return one;
    }
  };

  // The blocks that a worker keeps. Its own, but for `owner`, which does not change.
  struct cache {
    explicit cache(const worker* of) noexcept : owner{of} {}
    const worker* owner;
    std::array<list, classes> lists;
    std::byte* bump = nullptr;
    std::byte* end = nullptr;
  };

  static std::size_t class_of(std::size_t bytes) noexcept { return bytes == 0 ? 1 : (bytes + granule - 1) / granule; }
  static bool is_small(std::size_t bytes, std::size_t alignment) noexcept {
    return bytes <= small && alignment <= granule;
  }

  // The cache of the calling thread's worker; null: there are too many workers. Throws std::bad_alloc.
  cache* mine() {
    const worker* const here = &this_worker();
    std::size_t at = reinterpret_cast<std::uintptr_t>(here) / 64 % slots;
    for (;; at = (at + 1) % slots) {
      cache* const found =
          caches_[at].load(std::memory_order_acquire);  // <- made (no model: the owner of a cache made it)
      if (found == nullptr) break;
      if (found->owner == here) return found;
    }
    const std::lock_guard guard{lock_};
    if (count_ == most_caches) return nullptr;
    while (caches_[at].load(std::memory_order_relaxed) != nullptr) at = (at + 1) % slots;  // written under the lock
    auto* const made = ::new (upstream_->allocate(sizeof(cache), alignof(cache))) cache{here};
    ++count_;
    caches_[at].store(made, std::memory_order_release);  // -> made (no model: as above)
    return made;
  }

  void* do_allocate(std::size_t bytes, std::size_t alignment) override {
    if (!is_small(bytes, alignment)) {
      const std::lock_guard guard{lock_};
      return upstream_->allocate(bytes, alignment);
    }
    const std::size_t size = class_of(bytes);
    if (cache* const from = mine(); from != nullptr) {
      if (void* const one = take(*from, size)) return one;
      const std::lock_guard guard{lock_};
      refill(*from, size);
      return take(*from, size);
    }
    const std::lock_guard guard{lock_};
    if (void* const one = take(latecomers_, size)) return one;
    refill(latecomers_, size);
    return take(latecomers_, size);
  }

  // A block of the cache; null: it has none of this size.
  static void* take(cache& from, std::size_t size) noexcept {
    if (block* one = from.lists[size].pop()) {
      unpoison(one->behind(), block::bytes_behind(size));
      return one;
    }
    if (static_cast<std::size_t>(from.end - from.bump) < size * granule) return nullptr;
    return std::exchange(from.bump, from.bump + size * granule);
  }

  // Under the lock: blocks of this size that others freed, else a chunk. Throws what the resource throws.
  void refill(cache& one, std::size_t size) {
    list& others = shared_[size];
    if (others.first != nullptr) {
      for (std::size_t i = 0; i != keep / 2 && others.first != nullptr; ++i) one.lists[size].push(others.pop());
      return;
    }
    chunks_ = ::new (upstream_->allocate(chunk_bytes, granule)) chunk{chunks_};
    one.bump = reinterpret_cast<std::byte*>(chunks_ + 1);
    one.end = reinterpret_cast<std::byte*>(chunks_) + chunk_bytes;
  }

  void do_deallocate(void* memory, std::size_t bytes, std::size_t alignment) override {
    if (!is_small(bytes, alignment)) {
      const std::lock_guard guard{lock_};
      return upstream_->deallocate(memory, bytes, alignment);
    }
    auto* const freed = ::new (memory) block{nullptr};
    const std::size_t size = class_of(bytes);
    poison(freed->behind(), block::bytes_behind(size));
    cache* to = nullptr;
    try {
      to = mine();
    } catch (const std::bad_alloc&) {  // then it stays in the shared list
      to = nullptr;
    }
    if (to == nullptr) {
      const std::lock_guard guard{lock_};
      return shared_[size].push(freed);
    }
    list& own = to->lists[size];
    own.push(freed);
    if (own.count <= keep) return;
    const std::lock_guard guard{lock_};
    for (std::size_t i = 0; i != keep / 2; ++i) shared_[size].push(own.pop());
  }

  bool do_is_equal(const memory_resource& other) const noexcept override { return this == &other; }

  std::pmr::memory_resource* upstream_;
  // By the address of their worker. Written once, under the lock.
  //   edge made  the cache  ->  a thread that finds it, and reads its owner
  std::array<std::atomic<cache*>, slots> caches_{};
  std::mutex lock_;                   // guards the resource, and all that follows
  std::array<list, classes> shared_;  // blocks that caches had too many of
  cache latecomers_{nullptr};         // shared by threads without a cache
  chunk* chunks_ = nullptr;
  std::size_t count_ = 0;
};

bool is_per_worker(const std::pmr::memory_resource* resource) noexcept {
  return dynamic_cast<const per_worker_memory*>(resource) != nullptr;
}

}  // namespace detail

per_worker::per_worker(std::pmr::memory_resource* resource) : memory_{new detail::per_worker_memory{resource}} {}
per_worker::~per_worker() { delete memory_; }
per_worker::operator std::pmr::memory_resource*() noexcept { return memory_; }

}  // namespace weft
