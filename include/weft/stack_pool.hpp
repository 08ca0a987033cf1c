// Stacks for coroutines and fibers: where they lie, what guards them, and who keeps them warm.
//
//     w::stack_pool mine{{.max_stacks = 10'000}};
//     s.go({.size = 1 << 20, .pool = &mine}, compute);  // a fiber on a stack of 1 MiB
//
// A stack that is given back stays warm on a list, the last one first; what nobody has needed for a while goes back to
// the system, down to `min_idle`. Its address space stays with the pool. There is no thread for that: whoever gives a
// stack back looks at the clock, now and then.
//
// How stacks lie in memory, and what was rejected, is told in src/stack/stack_pool.cpp.
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

/// The smallest stack that something may run on: what an exception on its way needs, which is also how one that is destroyed
/// half-way ends, and as much again for functions. Unwinding takes 5.3 KiB on x86-64 (the first time in a process, while
/// symbols are bound; then 2.3), 6.2 on riscv64, 7.9 on AArch64, whose unwinder keeps more registers.
inline constexpr std::size_t least_stack_size =
#if defined(__aarch64__)
    std::size_t{16} << 10;
#else
    std::size_t{8} << 10;
#endif

/// How stacks are made, and how many are kept.
struct stack_pool_options {
  stack_guard guard = stack_guard::automatic;
  std::size_t guard_size = std::size_t{64} << 10;  ///< a frame larger than this may jump over the guard
  /// Needs `guard = none`: less to translate, more to keep. Where the system gives none, limits() says so.
  bool huge_pages = false;
  bool coloured = true;                                   ///< false: all tops alike, to measure what that costs
  bool measure_all = false;                               ///< high-water marks of every use; else of each stack's first
  std::size_t min_idle = 1024;                            ///< this many of a size stay warm, whatever happens
  detail::time_span idle_for = std::chrono::seconds{1};   ///< others, unused for so long, go back to the system
  std::size_t max_stacks = static_cast<std::size_t>(-1);  ///< beyond, there is no stack
  std::pmr::memory_resource* memory = nullptr;            ///< null: the system; must outlive the pool
};

/// What a pool can give, on this system.
struct stack_limits {
  stack_guard guard;        ///< what guards its stacks
  std::size_t most_stacks;  ///< how many at once, as far as guards and options go
  std::string sentence;     ///< the same for people
};

/// What a pool of stacks has just now.
struct stack_pool_stats {
  std::size_t in_use;         ///< stacks that something runs on
  std::size_t idle;           ///< warm ones
  std::size_t cold;           ///< whose memory went back to the system
  std::size_t made;           ///< so many were ever cut
  std::size_t taken;          ///< so many times one was taken, in all
  std::size_t address_space;  ///< in bytes
};

/// How much stack a function has used.
struct stack_use {
  std::string function;    ///< its name, or its type
  std::size_t high_water;  ///< bytes, the most that was seen
  std::size_t measured;    ///< of so many stacks, or runs with `measure_all`
  std::size_t suggested;   ///< a size that leaves half of it free
};

/// Keeps stacks. The process has one, which is used where nothing else is said. On a system where guards limit how many
/// there can be, or where there are none, the first pool says so to stderr; `limits()` says it anywhere.
///
/// Threads   all members from any thread.
/// Lifetime  outlives all that runs on its stacks (asserted).
/// Cost      a warm stack some 20 ns to take and to give back; a cold one a guard and a page, in system calls for up to 64.
class stack_pool {
 public:
  /// Fails   throws std::system_error where the guard that is asked for does not work here, or has no size, or with huge
  ///         pages and a guard.
  explicit stack_pool(const stack_pool_options& options = {});
  stack_pool(const stack_pool&) = delete;
  stack_pool& operator=(const stack_pool&) = delete;
  ~stack_pool();

  /// The process's, which is made when it is first asked for. Destroyed only where a library with weft inside is unloaded.
  static stack_pool& process_wide() noexcept;

  /// Makes the process's pool, with these options: for a program that wants others for what it names no pool for.
  ///
  /// Before    the first use of that pool, which is that of any fiber or coroutine (asserted): at the begin of main().
  /// Fails     as the constructor; there is no such pool then, and another call may ask for less.
  /// Lifetime  a resource for memory outlives the process's last statics.
  ///
  ///     w::stack_pool::configure_process_wide({.guard = w::stack_guard::none, .huge_pages = true});
  static stack_pool& configure_process_wide(const stack_pool_options& options);

  stack_limits limits() const;              ///< of this system and these options; throws std::bad_alloc
  stack_pool_stats stats() const noexcept;  ///< counts of one moment each

  /// Gives the memory of all idle stacks back to the system; how many there were.
  std::size_t trim() noexcept;

  /// The high-water mark of each function that was measured, largest first. Looks at all idle stacks; others are cut while
  /// it does.
  WEFT_CONTAINERS std::vector<stack_use> high_water() const { return marks(); }

  /// A stack of `size` usable bytes or more, for `user`. Throws std::bad_alloc, or a std::system_error that says which
  /// limit it met.
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
