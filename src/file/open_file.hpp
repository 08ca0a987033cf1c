// An open file: its number, its properties, and a count of its uses.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <mutex>
#include <utility>
#include <vector>
#include <weft/detail/base/atomic.hpp>
#include <weft/detail/base/config.hpp>
#include <weft/detail/pool/blocking_call.hpp>
#include <weft/file.hpp>

#include "file/owned_number.hpp"

namespace weft::detail {

/// The byte ranges of all locks taken by one open file. The system sees a single owner (open file description locks): to it a
/// second lock of a range changes the first one, and an unlock ends both. So this table keeps them apart.
class lock_table {
 public:
  struct range {
    std::uint64_t begin, end;
    bool is_shared;
  };
  /// Adds a range. False: a range in the table conflicts with it. Throws std::bad_alloc.
  bool take(const range& what);
  /// Removes a range, and unlocks the parts of it that no other range of the table covers.
  void give_back(const range& what, int number) noexcept;

 private:
  std::mutex lock_;
  std::vector<range> taken_;
};

/// How a file was opened.
struct opened_as {
  bool writes = false, appends = false, is_direct = false;
  bool has_name = true;  ///< false: of temporary()

  static opened_as of_flags(int flags) noexcept {
    return {.writes = (flags & O_ACCMODE) != O_RDONLY,
            .appends = (flags & O_APPEND) != 0,
            .is_direct = (flags & O_DIRECT) != 0};
  }
};

class open_file : public unawaited_call {
 public:
  open_file(int number, opened_as how, direct_alignment aligned) noexcept
      : unawaited_call{destroy}, number_{number}, aligned_{aligned}, how_{how} {}
  open_file(const open_file&) = delete;

  int number() const noexcept { return number_.number(); }
  bool is_nameless() const noexcept;
  bool writes() const noexcept { return how_.writes; }
  bool appends() const noexcept { return how_.appends; }
  bool is_direct() const noexcept { return how_.is_direct; }
  direct_alignment aligned() const noexcept { return aligned_; }

  /// Whether to try a read, or a write, without waiting (RWF_NOWAIT). Direct ones wait for the disk in spite of that flag.
  bool may_try(bool writes) const noexcept {
    return !how_.is_direct && (refused_.load(std::memory_order_relaxed) & bit(writes)) == 0;  // as declared
  }
  /// Notes that the file system can't tell whether a read, or a write, would have to wait.
  void cannot_try(bool writes) noexcept { refused_.fetch_or(bit(writes), std::memory_order_relaxed); }  // as declared

  /// A use by an operation under way, or by a lock. The number is not closed before the last use ends. Relaxed: the caller got
  /// the file from its owner, which orders it.
  void enter() noexcept { uses_.fetch_add(1, std::memory_order_relaxed); }
  void leave() noexcept {
    const std::uint32_t before = uses_.fetch_sub(1, std::memory_order_acq_rel);  // ->, <- left (no model: as declared)
    if (before == 1) end();  // ->, <- left (no model: it is a count of references)
  }
  lock_table& locks() noexcept { return locks_; }
  bool is_used() const noexcept { return uses_.load(std::memory_order_relaxed) != 1; }  // no edge: for assertions
  int give() noexcept { return number_.give(); }

 private:
  ~open_file() = default;
  /// Closes it: on this thread, unless that may take long and nobody can tell the difference.
  void end() noexcept;
  static void destroy(unawaited_call& self) noexcept { delete static_cast<open_file*>(&self); }
  static std::uint8_t bit(bool writes) noexcept { return writes ? 2 : 1; }

  owned_number number_;
  const direct_alignment aligned_;
  const opened_as how_;
  lock_table locks_;
  atomic<std::uint8_t> refused_{0};  // no edge: an operation that reads a bit late makes one try that fails
  //   edge left  all that was done with the file  ->  who closes it. One use is the owner's. No model: a count of references
  atomic<std::uint32_t> uses_{1};
};

/// A use of a file by an operation that suspends (RAII).
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
