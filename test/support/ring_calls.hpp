// Rings whose calls fail when a test says so, by functions that the linker puts before those of liburing.
#pragma once

#include <cstddef>

namespace test {

enum class ring_fault : unsigned char {
  none,
  refused,       ///< nothing is submitted, nor waited for: as if there were no memory, or no room
  late,          ///< neither, and no error: what has come is not there yet
  oldest_ends,   ///< the poll that was armed first is over, as when a completion finds no room: the kernel says so
  newest_ends,   ///< the one that was armed last
  reversed,      ///< completions of different polls come in the opposite order
  loses_oldest,  ///< as oldest_ends, but the kernel has no memory to keep the completion: it drops it, and counts
  loses_newest,  ///< likewise
  loses_calls,   ///< so with those of calls about files
};

/// From now on to its end, of the calls that enter a ring those fail that come after `before` others, `count` of them; where
/// `every` is not 1, only each so many. One at a time in a process.
class ring_injection {
 public:
  ring_injection(ring_fault what, std::size_t before, std::size_t count = 1, std::size_t every = 1) noexcept;
  ring_injection(const ring_injection&) = delete;
  ~ring_injection();
  /// How many calls have come to something else.
  std::size_t struck() const noexcept;
};

/// What the system lacks, or refuses, while a ring is made; of the one that is tried, and of the others.
enum class ring_lack : unsigned char {
  none,
  forbidden,         ///< EPERM
  not_there,         ///< ENOSYS
  unknown_flags,     ///< EINVAL
  no_memory,         ///< ENOMEM, whatever its size
  no_numbers,        ///< EMFILE
  no_nodrop,         ///< a feature is not there
  no_ext_arg,        ///< likewise
  no_cqe_skip,       ///< likewise
  no_submit_stable,  ///< likewise
  not_enabled,       ///< it can't be begun
  no_multishot,      ///< a poll reports once
  old_kernel,        ///< 5.15
};
class lacks {
 public:
  explicit lacks(ring_lack what) noexcept;
  lacks(const lacks&) = delete;
  ~lacks();
};

/// The calls of poll() that begin while this lives, as the look after a worker that computes makes them.
class looks {
 public:
  looks() noexcept;
  looks(const looks&) = delete;
  ~looks();
  void begins_here() noexcept;
  std::size_t all() const noexcept;
  std::size_t behind() const noexcept;   ///< of these, that began behind begins_here()
  std::size_t in_vain() const noexcept;  ///< and found nothing
};

}  // namespace test
