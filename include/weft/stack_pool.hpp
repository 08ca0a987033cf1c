// Pools of stacks for coroutines and fibers: their memory, their guards, and how many are kept.
//
//     w::stack_pool mine{{.max_stacks = 10'000}};
//     s.go({.size = 1 << 20, .pool = &mine}, compute);  // a fiber on a stack of 1 MiB
//
// A stack that is given back is kept warm in a list, and the newest is reused first. The memory of stacks that were not needed
// for a while is returned to the system, except for `min_idle` of them; their address space stays with the pool. No thread does
// that: now and then a thread that gives a stack back looks at the clock.
//
// How stacks lie in memory, and what was rejected, is described in src/stack/stack_pool.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>
#include <weft/detail/base/config.hpp>
#include <weft/detail/base/duration.hpp>
#include <weft/detail/base/forward.hpp>
#include <weft/detail/base/lock.hpp>
#include <weft/detail/stack/stack_header.hpp>
#include <weft/items.hpp>
#include <weft/stack_guard.hpp>

namespace weft {

class stack_pool;

/// The smallest stack, in bytes: room to unwind an exception, which also ends a coroutine that is destroyed half-way, and as
/// much again for functions. Unwinding takes 5.3 KiB on x86-64 (2.3 after the first time in a process, when symbols are bound),
/// 6.2 KiB on riscv64, and 7.9 KiB on AArch64, whose unwinder saves more registers.
inline constexpr std::size_t least_stack_size =
#if defined(__aarch64__)
    std::size_t{16} << 10;
#else
    std::size_t{8} << 10;
#endif

/// The options of a stack_pool.
struct stack_pool_options {
  stack_guard guard = stack_guard::automatic;
  std::size_t guard_size = std::size_t{64} << 10;  ///< bytes; a function's frame that is larger may skip the guard
  /// Puts stacks on huge pages, which needs `guard = none`: fewer TLB misses, more memory in use. limits() says where the
  /// system has none.
  bool huge_pages = false;
  bool coloured = true;         ///< shifts the tops of stacks against cache conflicts; false: to measure the effect
  bool measure_all = false;     ///< measures the high-water mark of each use; otherwise of each stack's first one
  std::size_t min_idle = 1024;  ///< how many idle stacks of each size always stay warm
  detail::time_span idle_for = std::chrono::seconds{1};   ///< how long other idle stacks keep their memory
  std::size_t max_stacks = static_cast<std::size_t>(-1);  ///< the most stacks at once
  std::pmr::memory_resource* memory = nullptr;            ///< outlives the pool; null: memory comes from the system
};

/// How many stacks a pool can give on this system.
struct stack_limits {
  stack_guard guard;        ///< what guards its stacks
  std::size_t most_stacks;  ///< how many at once, by its guards and options
  std::string sentence;     ///< the same as a sentence
};

/// What a pool of stacks has at the moment.
struct stack_pool_stats {
  std::size_t in_use;         ///< stacks that are taken
  std::size_t idle;           ///< idle stacks that are warm
  std::size_t cold;           ///< idle stacks whose memory was returned to the system
  std::size_t made;           ///< stacks that were made so far
  std::size_t taken;          ///< how often a stack was taken so far
  std::size_t address_space;  ///< in bytes
};

/// How much stack a function has used.
struct stack_use {
  std::string function;    ///< its name, or its type
  std::size_t high_water;  ///< the most bytes that were measured
  std::size_t measured;    ///< how many stacks, or with `measure_all` runs, were measured
  std::size_t suggested;   ///< a size of which `high_water` is half, in bytes
};

/// Makes stacks and keeps idle ones. The process has one, which is the default. Where guards limit the number of stacks, or
/// there are no guards, the first pool prints that to stderr; limits() tells it at any time.
///
/// Threads   any thread may call all members.
/// Lifetime  outlives all that runs on its stacks (asserted).
/// Cost      some 20 ns to take a warm stack and give it back. A cold one needs a guard and a page, in system calls for up to
///           64 stacks.
class stack_pool {
 public:
  /// Fails   throws std::system_error where the wanted guard does not work on this system or has no size, or where huge pages
  ///         and a guard are asked for.
  explicit stack_pool(const stack_pool_options& options = {});
  stack_pool(const stack_pool&) = delete;
  stack_pool& operator=(const stack_pool&) = delete;
  ~stack_pool();

  /// The process's pool, which the first call makes. It is destroyed only where a library that contains weft is unloaded.
  static stack_pool& process_wide() noexcept;

  /// Makes the process's pool with these options.
  ///
  /// Misuse    call it before the first use of that pool, by any fiber or coroutine (asserted): at the beginning of main().
  /// Fails     as the constructor. The pool is not made then, and another call may try other options.
  /// Lifetime  `options.memory` outlives the process's last statics.
  ///
  ///     w::stack_pool::configure_process_wide({.guard = w::stack_guard::none, .huge_pages = true});
  static stack_pool& configure_process_wide(const stack_pool_options& options);

  stack_limits limits() const;              ///< how many stacks it can give; throws std::bad_alloc
  stack_pool_stats stats() const noexcept;  ///< each figure is read by itself, so they need not agree

  /// Returns the memory of all idle stacks to the system, and gives how many they were.
  std::size_t trim() noexcept;

  /// The high-water mark of each measured function, the largest first. Measures all idle stacks, which can't be taken
  /// meanwhile: other stacks are made instead.
  WEFT_CONTAINERS std::vector<stack_use> high_water() const { return marks(); }

  /// Takes a stack of at least `size` usable bytes, for `user`. Throws std::bad_alloc, or a std::system_error that says which
  /// limit was reached.
  detail::stack_header& take(std::size_t size, const detail::stack_user& user = {});

 private:
  friend void detail::give_back_stack(detail::stack_header&) noexcept;
  friend void detail::end_stacks() noexcept;

  static constexpr unsigned smallest = 12, classes = 20;  // 4 KiB to 2 GiB

  struct size_class {
    detail::stack_header* idle = nullptr;  // warm, the last one given back first
    std::size_t idle_count = 0;
    std::size_t least = 0;  // of them, since the last look at the clock
  };
  struct all_uses;

  static stack_pool& process_wide(const stack_pool_options* asked);
  items<stack_use> marks() const;
  void state_limits() const noexcept;
  detail::stack_header& take_cold(unsigned of);
  void give_back(detail::stack_header& one) noexcept;
  void measure(detail::stack_header& one) const noexcept;
  void measure_held(detail::stack_header& one) const noexcept;
  void measure_idle(size_class& here) const noexcept;
  void age() noexcept;
  std::size_t cool(unsigned of, std::size_t most) noexcept;

  const stack_pool_options options_;
  const stack_guard guard_;
  mutable detail::tiny_lock lock_;  // of what comes next
  mutable size_class classes_[classes];
  std::size_t in_use_ = 0, taken_ = 0;
  long last_aged_ = 0;  // in milliseconds

  // Taken before lock_ where both are: it is held over system calls.
  mutable std::mutex growing_;
  detail::stack_region* regions_[classes]{};  // the newest first
  detail::stack_region* roomy_[classes]{};    // of them, those with room
  mutable std::unique_ptr<all_uses> uses_;    // null: none was measured
};

}  // namespace weft
