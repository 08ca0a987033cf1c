// Sequences: the positions of producers and consumers in a shared ring buffer, which they fill and read many elements at a
// time.
//
// The buffer is the program's own: an array whose size is a power of two, where element n lies at n & (size - 1). This header
// has only the numbers. A producer claims the next numbers, which waits until their places are free; writes the elements; and
// publishes the numbers. A consumer waits until a number is published, learns up to which one all are, reads these elements,
// and publishes in a barrier of its own how far it has read. Producers wait for that barrier.
//
//   sequence_barrier            the last number that somebody has published, and those that wait for a later one
//   single_producer_sequencer   numbers for one producer
//   multi_producer_sequencer    numbers for many, which publish in any order; readers see no gaps
//
// Numbers have 64 bits and may wrap around: the sign of the difference of two says which one is later. The first one is 0;
// before that, `nothing_yet` counts as published.
//
// What holds for all of it:
//
//   Suspends   only where what it asks for is not free, or not published, yet; resumes on its own executor.
//   Cancel     a stopped wait leaves the line, and has claimed nothing.
//   Threads    any, except where a single caller is said. In tasks, fibers (await()) and on plain threads (sync_wait()).
//   Lifetime   it outlives its waiters: destroyed while somebody waits, it ends the program.
//   Order      what was done before a number was published happens before what its waiters, and those that find it published,
//              do.
//
// Rejected: the disruptor's way to publish without a lock. Waiters sleep here, so a publisher has to know whether there are
// any, which takes a read-modify-write or a fence besides the store: about what a lock of one byte takes, and that is taken
// only once for a whole batch.
//
// Source: the LMAX disruptor (Thompson, Farley, Barker, Gee, Stewart, 2011), as cppcoro has it.
#pragma once

#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <weft/detail/base/atomic.hpp>
#include <weft/detail/core/root.hpp>
#include <weft/detail/core/waiter.hpp>
#include <weft/sync.hpp>
#include <weft/task.hpp>

namespace weft {

/// The number of an element, from 0 on; its place is that modulo the size of the ring.
using sequence_number = std::uint64_t;

/// The number that counts as published before 0 is.
inline constexpr sequence_number nothing_yet = sequence_number(-1);

/// Whether `at` is `target` or a later number.
constexpr bool has_reached(sequence_number at, sequence_number target) noexcept {
  return static_cast<std::int64_t>(at - target) >= 0;
}

/// Consecutive numbers, such as were claimed together: `for (auto n : mine) buffer[n & mask] = ...;`.
class sequence_range {
 public:
  class iterator {
   public:
    using value_type = sequence_number;
    using difference_type = std::ptrdiff_t;
    using iterator_category = std::input_iterator_tag;
    iterator() noexcept = default;
    explicit iterator(sequence_number at) noexcept : at_{at} {}
    sequence_number operator*() const noexcept { return at_; }
    iterator& operator++() noexcept { return (++at_, *this); }
    iterator operator++(int) noexcept { return iterator{at_++}; }
    friend bool operator==(iterator, iterator) = default;

   private:
    sequence_number at_ = 0;
  };

  sequence_range() noexcept = default;  ///< empty
  sequence_range(sequence_number first, std::size_t count) noexcept : first_{first}, count_{count} {}

  std::size_t size() const noexcept { return count_; }
  bool empty() const noexcept { return count_ == 0; }
  sequence_number front() const noexcept { return first_; }
  sequence_number back() const noexcept { return first_ + count_ - 1; }  ///< the number before front(), if it is empty
  sequence_number operator[](std::size_t i) const noexcept { return first_ + i; }
  iterator begin() const noexcept { return iterator{first_}; }
  iterator end() const noexcept { return iterator{first_ + count_}; }

 private:
  sequence_number first_ = 0;
  std::size_t count_ = 0;
};

// ---- barrier --------------------------------------------------------------------------------------------------------------

/// How far a producer or consumer has come. One publishes; any number wait.
///
///     sequence_number read = nothing_yet;
///     for (;;) {
///       const auto until = co_await filled.wait_until_published(read + 1);
///       while (read != until) use(buffer[++read & mask]);
///       consumed.publish(read);  // a barrier of its own
///     }
///
/// Cost  publish() takes a lock of one byte, and visits each waiter. last_published(), and a wait for what is published, cost a
///       load.
class sequence_barrier : detail::gate {
 public:
  /// `published`: the number that counts as the last published one.
  explicit sequence_barrier(sequence_number published = nothing_yet) noexcept : published_{published} {}

  /// The last number that was published. Does not wait.
  sequence_number last_published() const noexcept {
    return published_.load(std::memory_order_acquire);  // <- published (no model: as declared)
  }
  /// Publishes all numbers up to `last`, and wakes those that wait for any of them. A number before the last published one ends
  /// the program.
  void publish(sequence_number last) noexcept;
  /// Waits until `target` is published. Gives the last published number, which may be later.
  [[nodiscard("nothing happens until it is awaited")]] auto wait_until_published(sequence_number target) noexcept;
  /// How many wait now, and how many have waited so far; may have changed when it returns. Takes the lock and walks along the
  /// waiters.
  using gate::stats;

 private:
  friend class single_producer_sequencer;
  friend class multi_producer_sequencer;
  class awaiter;
  void publish(sequence_number last, let_through& through) noexcept;

  //   edge published  what was done before publish()  ->  who finds it published. One that waited has it by its wake-up.
  //                   (no model: a store under a lock, and a load)
  detail::atomic<sequence_number> published_;
};

class sequence_barrier::awaiter : public detail::gate_waiter, public detail::gate_awaiter<awaiter> {
 public:
  awaiter(sequence_barrier& of, sequence_number target) noexcept : gate_waiter{of, type}, target_{target} {}
  bool suspend(detail::root& self) noexcept;
  bool seems_ready() const noexcept { return has_reached(of().last_published(), target_); }
  bool done_at_once(const detail::root& self) noexcept { return !self.sleeper::stop_requested() && seems_ready(); }
  bool try_locked(std::uintptr_t) const noexcept { return seems_ready(); }
  void enter_locked() noexcept { of().enter(*this, of().line_); }
  sequence_number await_resume() const noexcept { return of().last_published(); }

 protected:
  friend class sequence_barrier;
  sequence_barrier& of() const noexcept { return static_cast<sequence_barrier&>(*gate_); }
  static constexpr detail::wait_type type{
      .leave = leave_line, .name = "sequence_barrier", .tell = tell, .leave_together = leave_together, .layout = &seen};
  const sequence_number target_;
};

inline auto sequence_barrier::wait_until_published(sequence_number target) noexcept {
  return detail::at_gate<awaiter, sequence_barrier, sequence_number>{*this, target};
}

// ---- one producer -----------------------------------------------------------------------------------------------------------

/// Numbers for one producer.
///
///     sequence_barrier consumed;
///     single_producer_sequencer numbers{consumed, 1024};
///     const auto mine = co_await numbers.claim_up_to(16);  // waits while the buffer is full
///     for (const auto n : mine) buffer[n & 1023] = make();
///     numbers.publish(mine);
///
/// Threads   one claims and publishes at a time; any number wait for what is published.
/// Lifetime  `consumed`, the barrier of the reader, outlives it. With several readers, the program publishes there what the
///           slowest one has read.
/// Cost      to claim what is free, a load; to publish, that of a barrier.
class single_producer_sequencer {
 public:
  /// `size` of the buffer: a power of two, else it ends the program. `published`: the last published number, which must be that
  /// of `consumed`, too.
  single_producer_sequencer(sequence_barrier& consumed, std::size_t size,
                            sequence_number published = nothing_yet) noexcept;

  /// Claims the next number and gives it. Waits until its place is free.
  [[nodiscard("nothing happens until it is awaited")]] auto claim_one() noexcept;
  /// Claims the next numbers, as many as are free, up to `count`, which is not 0. Waits until at least one is.
  [[nodiscard("nothing happens until it is awaited")]] auto claim_up_to(std::size_t count) noexcept;
  /// Publishes the numbers that were claimed, up to `last` or the last one of `all`. Does not suspend.
  void publish(sequence_number last) noexcept { published_.publish(last); }
  void publish(const sequence_range& all) noexcept {
    if (!all.empty()) publish(all.back());
  }

  sequence_number last_published() const noexcept { return published_.last_published(); }  ///< as of a barrier
  /// As sequence_barrier has it.
  [[nodiscard("nothing happens until it is awaited")]] auto wait_until_published(sequence_number target) noexcept {
    return published_.wait_until_published(target);
  }

 private:
  class claim;
  class claim_of_one;
  class claim_of_some;
  sequence_barrier& consumed_;
  const std::size_t size_;
  sequence_number claimed_;
  sequence_barrier published_;
};

class single_producer_sequencer::claim : public sequence_barrier::awaiter {
 protected:
  explicit claim(single_producer_sequencer& by) noexcept
      : sequence_barrier::awaiter{by.consumed_, by.claimed_ + 1 - by.size_}, by_{by} {}
  single_producer_sequencer& by_;
};
class single_producer_sequencer::claim_of_one : public claim {
 public:
  claim_of_one(single_producer_sequencer& by, std::size_t) noexcept : claim{by} {}
  sequence_number await_resume() const noexcept { return ++by_.claimed_; }
};
class single_producer_sequencer::claim_of_some : public claim {
 public:
  claim_of_some(single_producer_sequencer& by, std::size_t count) noexcept : claim{by}, count_{count} {}
  sequence_range await_resume() const noexcept;

 private:
  const std::size_t count_;
};

inline auto single_producer_sequencer::claim_one() noexcept {
  return detail::at_gate<claim_of_one, single_producer_sequencer>{*this};
}
inline auto single_producer_sequencer::claim_up_to(std::size_t count) noexcept {
  WEFT_EXPECTS(count != 0, "no number was claimed of a sequencer");
  return detail::at_gate<claim_of_some, single_producer_sequencer>{*this, count};
}

// ---- many producers ---------------------------------------------------------------------------------------------------------

/// Numbers for many producers. They are given numbers in the order in which they claim, and publish in any order: a number
/// counts as published once it and all before it are.
///
/// Threads   any.
/// Lifetime  as single_producer_sequencer.
/// Cost      a claim awaits a task, which locks a mutex; to publish, a lock of one byte and a flag for each number.
class multi_producer_sequencer {
 public:
  /// As single_producer_sequencer; allocates a flag for each place. Throws std::bad_alloc.
  multi_producer_sequencer(sequence_barrier& consumed, std::size_t size, sequence_number published = nothing_yet);
  multi_producer_sequencer(const multi_producer_sequencer&) = delete;
  ~multi_producer_sequencer();

  /// As single_producer_sequencer.
  [[nodiscard("nothing happens until it is awaited")]] task<sequence_number> claim_one();
  [[nodiscard("nothing happens until it is awaited")]] task<sequence_range> claim_up_to(std::size_t count);
  /// Publishes a number, or several, that the caller has claimed. Does not suspend.
  void publish(sequence_number one) noexcept { publish(sequence_range{one, 1}); }
  void publish(const sequence_range& all) noexcept;

  /// The last number up to which all are published.
  sequence_number last_published() const noexcept { return published_.last_published(); }
  [[nodiscard("nothing happens until it is awaited")]] auto wait_until_published(sequence_number target) noexcept {
    return published_.wait_until_published(target);
  }

 private:
  sequence_barrier& consumed_;
  const std::size_t size_;
  mutex claims_;                      // one at a time waits for room, the others behind it
  sequence_number claimed_;           // under it
  detail::tiny_lock lock_;            // of those that publish
  std::unique_ptr<bool[]> is_there_;  // of each place, whether it is published, and others before it are not
  sequence_barrier published_;
};

}  // namespace weft
