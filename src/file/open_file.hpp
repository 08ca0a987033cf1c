// An open file, as its operations see it: its number, what is known of it, and who uses it.
#pragma once

#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <mutex>
#include <utility>
#include <vector>
#include <weft/detail/base/atomic.hpp>
#include <weft/detail/base/config.hpp>
#include <weft/file.hpp>

namespace weft::detail {

/// Closes what was not taken over by anybody.
class owned_number {
 public:
  explicit owned_number(int number) noexcept : number_{number} {}
  owned_number(const owned_number&) = delete;
  owned_number& operator=(const owned_number&) = delete;
  ~owned_number() {
    if (number_ >= 0) ::close(number_);
  }
  int number() const noexcept { return number_; }
  int give() noexcept { return std::exchange(number_, -1); }

 private:
  int number_;
};

/// The byte ranges of all locks that were taken by one open file. For the system they have one owner: it takes a second lock
/// for a change of the first, and unlocks a range for both when one of them is given back.
class lock_table {
 public:
  struct range {
    std::uint64_t begin, end;
    bool is_shared;
  };
  /// False: one that is here excludes it. Throws std::bad_alloc.
  bool take(const range& what);
  /// Unlocks what no other one that is here has, too.
  void give_back(const range& what, int number) noexcept;

 private:
  std::mutex lock_;
  std::vector<range> taken_;
};

class open_file {
 public:
  open_file(int number, bool appends, direct_alignment aligned, bool is_direct) noexcept
      : number_{number}, aligned_{aligned}, appends_{appends}, is_direct_{is_direct} {}
  open_file(const open_file&) = delete;

  int number() const noexcept { return number_.number(); }
  bool appends() const noexcept { return appends_; }
  bool is_direct() const noexcept { return is_direct_; }
  direct_alignment aligned() const noexcept { return aligned_; }

  /// Whether a read, or a write, may be tried without waiting. Direct ones wait for the disk whatever they are told.
  bool may_try(bool writes) const noexcept {
    return !is_direct_ && (refused_.load(std::memory_order_relaxed) & bit(writes)) == 0;  // as declared
  }
  /// The file system can't tell whether one would have to wait.
  void cannot_try(bool writes) noexcept { refused_.fetch_or(bit(writes), std::memory_order_relaxed); }  // as declared

  /// Of operations that are under way, and of locks: as long as there are any, the number stays.
  void enter() noexcept { uses_.fetch_add(1, std::memory_order_relaxed); }  // who enters has it from its owner
  void leave() noexcept {
    const std::uint32_t before = uses_.fetch_sub(1, std::memory_order_acq_rel);  // ->, <- left (no model: as declared)
    if (before == 1) delete this;  // ->, <- left (no model: it is a count of references)
  }
  lock_table& locks() noexcept { return locks_; }
  bool is_used() const noexcept { return uses_.load(std::memory_order_relaxed) != 1; }  // a check of its owner's alone
  int give() noexcept { return number_.give(); }

 private:
  ~open_file() = default;
  static std::uint8_t bit(bool writes) noexcept { return writes ? 2 : 1; }

  owned_number number_;
  const direct_alignment aligned_;
  const bool appends_, is_direct_;
  lock_table locks_;
  atomic<std::uint8_t> refused_{0};  // no edge: who finds a bit late tries once in vain
  //   edge left  all that was done with it  ->  who closes it. One for its owner. No model: it is a count of references
  atomic<std::uint32_t> uses_{1};
};

/// What an operation that suspends has of a file, so that the number stays until it has ended.
class file_use {
 public:
  explicit file_use(open_file* of) noexcept : of_{of} {
    if (of_ != nullptr) of_->enter();
  }
  file_use(const file_use&) = delete;
  ~file_use() {
    if (of_ != nullptr) of_->leave();
  }
  explicit operator bool() const noexcept { return of_ != nullptr; }

 private:
  open_file* of_;
};

}  // namespace weft::detail
