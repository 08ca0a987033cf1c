// The sweep of allocations, and the operator new that it needs. A file of its own, so that a program which sweeps no
// allocations keeps its operator new.
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <new>
#include <string>
#include <thread>
#include <weft/observe.hpp>
#include <weft/test.hpp>

#include "test/announce.hpp"
#include "test/world.hpp"

namespace weft::test::detail {
namespace {

// The blocks that the present run has allocated, by address: a table with open addressing. Any thread may free a block.
// Relaxed: an address is entered before its block goes to the thread that frees it, and nobody uses a freed block.
constexpr std::size_t slots = std::size_t{1} << 15;
constexpr std::uintptr_t tombstone = 1;
constinit std::atomic<std::uintptr_t> blocks[slots];
std::atomic<bool> recording{false};
std::atomic<std::size_t> live_blocks{0};
constinit std::atomic<bool> replaced{false};  // the program uses the operator new below

std::size_t begin_of(std::uintptr_t address) noexcept { return (address >> 4) * 0x9e3779b97f4a7c15U >> 49; }

void record(void* block) noexcept {
  const auto address = reinterpret_cast<std::uintptr_t>(block);
  std::size_t at = begin_of(address);
  for (std::size_t tries = 0; tries != slots; ++tries, at = (at + 1) % slots) {
    std::uintptr_t found = blocks[at].load(std::memory_order_relaxed);
    if (found <= tombstone && blocks[at].compare_exchange_strong(found, address, std::memory_order_relaxed)) {
      live_blocks.fetch_add(1, std::memory_order_relaxed);
      return;
    }
  }
}

void forget(void* block) noexcept {
  const auto address = reinterpret_cast<std::uintptr_t>(block);
  std::size_t at = begin_of(address);
  for (std::size_t tries = 0; tries != slots; ++tries, at = (at + 1) % slots) {
    const std::uintptr_t found = blocks[at].load(std::memory_order_relaxed);
    if (found == 0) return;
    if (found != address) continue;
    blocks[at].store(tombstone, std::memory_order_relaxed);
    live_blocks.fetch_sub(1, std::memory_order_relaxed);
    return;
  }
}

void forget_all() noexcept {
  for (auto& one : blocks) one.store(0, std::memory_order_relaxed);  // no run is under way
  live_blocks.store(0, std::memory_order_relaxed);
}

void* allocate(std::size_t size, std::size_t alignment) {
  replaced.store(true, std::memory_order_relaxed);
  auto& faults = faults_of_thread();
  if (faults.next()) throw std::bad_alloc{};
  if (size == 0) size = 1;
  void* block = alignment <= alignof(std::max_align_t)
                    ? std::malloc(size)
                    : std::aligned_alloc(alignment, (size + alignment - 1) & ~(alignment - 1));
  if (block == nullptr) throw std::bad_alloc{};
  if (faults.armed && recording.load(std::memory_order_relaxed)) record(block);
  return block;
}

void* allocate_or_null(std::size_t size, std::size_t alignment) noexcept {
  try {
    return allocate(size, alignment);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

void release(void* block) noexcept {
  if (recording.load(std::memory_order_relaxed)) forget(block);
  std::free(block);
}

class allocation_sweep {
 public:
  allocation_sweep(std::string_view name, subject& what, const sweep_options& options)
      : name_{name}, what_{what}, options_{options} {
    trace_ = std::getenv("WEFT_SWEEP_TRACE") != nullptr;
    recording.store(true, std::memory_order_relaxed);
  }
  allocation_sweep(const allocation_sweep&) = delete;
  ~allocation_sweep() { recording.store(false, std::memory_order_relaxed); }

  std::size_t all() {
    run(0);  // makes what is allocated once and kept
    kept_ = run(0);
    std::size_t at = 1;
    while (run(at), failed_) ++at;
    std::printf("weft: allocation sweep of %s: %zu allocations%s\n", name_.c_str(), at - 1,
                replaced.load(std::memory_order_relaxed) ? "" : " of frames; the program has its own operator new");
    std::fflush(stdout);
    return at - 1;
  }

 private:
  // Runs the scenario; allocation number `at` fails, none if it is 0. Returns how many blocks are left.
  std::size_t run(std::size_t at) {
    const std::string place = name_ + ": allocation " + std::to_string(at) + " fails";
    if (trace_) std::fprintf(stderr, "weft: sweep of %s\n", place.c_str());
    const announced told{place};
    forget_all();
    const auto fails = [&](const std::string& how) {
      const std::string when = at == 0 ? "without a failing allocation" : "allocation " + std::to_string(at) + " fails";
      return failure{"allocation_sweep(" + name_ + "), " + when + ":\n" + how};
    };
    auto here = std::make_unique<world>(world_options{.seed = options_.seed,
                                                      .io = options_.io,
                                                      .patience = options_.patience,
                                                      .stop_when_idle = options_.stop_when_idle,
                                                      .count_allocations = true,
                                                      .fail_allocation = at});
    bool ended = false, made = true;
    std::exception_ptr thrown, broken;
    try {
      ended = here->run(what_);
    } catch (...) {  // the scenario could not be made
      made = false;
      thrown = std::current_exception();
    }
    failed_ = at != 0 && faults_of_thread().count >= at;
    if (made && !ended) {
      const std::string waits = here->what_waits();
      world::abandon(std::move(here), what_);
      throw fails("it hangs: nothing can run and no timer is armed\n" + waits);
    }
    if (made) {
      try {
        const bool judged = what_.check();
        if (!judged) thrown = what_.thrown();
      } catch (const std::exception& e) {
        broken = std::make_exception_ptr(fails(std::string{"its check fails: "} + e.what()));
      } catch (...) {
        std::fprintf(stderr, "%s\n", fails("its check fails").what());
        broken = std::current_exception();
      }
    }
    if (!broken && thrown) broken = unless_bad_alloc(thrown, fails);
    thrown = nullptr;
    end_run(std::move(here), what_, broken, fails);
    const std::size_t left = at == 0 ? live_blocks.load(std::memory_order_relaxed) : blocks_left();
    if (at != 0 && left > kept_)
      throw fails("it leaves " + std::to_string(left - kept_) + " more blocks of operator new than a good run does");
    return left;
  }

  // A thread that ends may have more of them for a while than are kept.
  std::size_t blocks_left() const noexcept {
    const auto begin = std::chrono::steady_clock::now();
    for (;;) {
      const std::size_t left = live_blocks.load(std::memory_order_relaxed);
      if (left <= kept_ || std::chrono::steady_clock::now() - begin > options_.patience) return left;
      std::this_thread::sleep_for(std::chrono::milliseconds{1});
    }
  }

  template <class Fails>
  std::exception_ptr unless_bad_alloc(const std::exception_ptr& thrown, const Fails& fails) {
    try {
      std::rethrow_exception(thrown);
    } catch (const std::bad_alloc&) {
      if (failed_) return nullptr;
      return std::make_exception_ptr(fails("it throws std::bad_alloc, but no allocation has failed"));
    } catch (const std::exception& e) {
      return std::make_exception_ptr(fails(std::string{"it throws something other than std::bad_alloc: "} + e.what()));
    } catch (...) {
      std::fprintf(stderr, "%s\n", fails("it throws").what());
      return std::current_exception();
    }
  }

  const std::string name_;
  subject& what_;
  const sweep_options options_;
  bool trace_ = false;
  bool failed_ = false;
  std::size_t kept_ = 0;
};

}  // namespace

std::size_t sweep_allocations(std::string_view name, subject& what, const sweep_options& options) {
  return allocation_sweep{name, what, options}.all();
}

}  // namespace weft::test::detail

namespace weft::test {

no_memory::no_memory() noexcept
    : was_armed_{detail::faults_of_thread().armed}, did_all_fail_{detail::faults_of_thread().all_fail} {
  detail::faults_of_thread().armed = detail::faults_of_thread().all_fail = true;
}
no_memory::~no_memory() {
  detail::faults_of_thread().armed = was_armed_;
  detail::faults_of_thread().all_fail = did_all_fail_;
}

}  // namespace weft::test

// ---- operator new -------------------------------------------------------------------------------------------------------

// Weak, so that a program may have its own, as it does with the thread sanitizer. Not weak with the address sanitizer, whose
// operators are weak, too, and would be chosen.
#if defined(__SANITIZE_ADDRESS__)
#define WEFT_REPLACES
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define WEFT_REPLACES
#endif
#endif
#ifndef WEFT_REPLACES
#define WEFT_REPLACES [[gnu::weak]]
#endif

using weft::test::detail::allocate;
using weft::test::detail::allocate_or_null;
using weft::test::detail::release;

// All forms: the standard library's other forms call these two, but a sanitizer's do not.
WEFT_REPLACES void* operator new(std::size_t size) { return allocate(size, 1); }
WEFT_REPLACES void* operator new[](std::size_t size) { return allocate(size, 1); }
WEFT_REPLACES void* operator new(std::size_t size, std::align_val_t alignment) {
  return allocate(size, static_cast<std::size_t>(alignment));
}
WEFT_REPLACES void* operator new[](std::size_t size, std::align_val_t alignment) {
  return allocate(size, static_cast<std::size_t>(alignment));
}
WEFT_REPLACES void* operator new(std::size_t size, const std::nothrow_t&) noexcept { return allocate_or_null(size, 1); }
WEFT_REPLACES void* operator new[](std::size_t size, const std::nothrow_t&) noexcept {
  return allocate_or_null(size, 1);
}
WEFT_REPLACES void* operator new(std::size_t size, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return allocate_or_null(size, static_cast<std::size_t>(alignment));
}
WEFT_REPLACES void* operator new[](std::size_t size, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return allocate_or_null(size, static_cast<std::size_t>(alignment));
}
WEFT_REPLACES void operator delete(void* block) noexcept { release(block); }
WEFT_REPLACES void operator delete[](void* block) noexcept { release(block); }
WEFT_REPLACES void operator delete(void* block, std::size_t) noexcept { release(block); }
WEFT_REPLACES void operator delete[](void* block, std::size_t) noexcept { release(block); }
WEFT_REPLACES void operator delete(void* block, std::align_val_t) noexcept { release(block); }
WEFT_REPLACES void operator delete[](void* block, std::align_val_t) noexcept { release(block); }
WEFT_REPLACES void operator delete(void* block, std::size_t, std::align_val_t) noexcept { release(block); }
WEFT_REPLACES void operator delete[](void* block, std::size_t, std::align_val_t) noexcept { release(block); }
WEFT_REPLACES void operator delete(void* block, const std::nothrow_t&) noexcept { release(block); }
WEFT_REPLACES void operator delete[](void* block, const std::nothrow_t&) noexcept { release(block); }
