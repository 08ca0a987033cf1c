// Sequences: how a ring buffer is shared by those that fill it and those that read it, many elements at a time.
//
// The buffer is the program's: an array whose size is a power of two, where number n lies at n & (size - 1). Here are only
// the numbers. Who produces claims the next ones, which waits until their places are free; writes them; and publishes them.
// Who consumes waits until a number is published, which tells it how many are; reads them all; and publishes in a barrier of
// its own how far it has come, which is what producers wait for.
//
//   sequence_barrier            how far somebody has come, and those that wait for it
//   single_producer_sequencer   numbers for one that produces
//   multi_producer_sequencer    for many, which publish in any order: what is published has no holes
//
// Numbers are 64 bits and may wrap around: which of two is later, the sign of their difference says. The first one is 0; before
// it, `nothing_yet` was published.
//
// What holds for all of it:
//
//   Suspends   only where it has to; resumes on its own executor.
//   Cancel     leaves the line: nothing was claimed.
//   Threads    any, but for what is said to be for one. In tasks, fibers (await()) and on plain threads (sync_wait()).
//   Lifetime   outlives its waiters: destroyed with somebody in line, it ends the program.
//   Order      what was done before a number was published is seen by who has waited for it, or has found it published.
//
// Rejected: the disruptor's way to publish without a lock. Who waits sleeps here, so who publishes has to know whether
// somebody does, which takes a read-modify-write or a fence besides the store: about what the lock of one byte takes, and
// that is taken once for a whole batch.
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

/// The number of a value in a ring, from 0 on; its place is that modulo the size of the ring.
using sequence_number = std::uint64_t;

/// What is published before the first number, 0.
inline constexpr sequence_number nothing_yet = sequence_number(-1);

/// Whether one that has come to `at` has reached `target`.
constexpr bool has_reached(sequence_number at, sequence_number target) noexcept {
  return static_cast<std::int64_t>(at - target) >= 0;
}

/// Numbers that follow each other, such as were claimed at once: `for (auto n : mine) buffer[n & mask] = ...;`.
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

  sequence_range() noexcept = default;  ///< none
  sequence_range(sequence_number first, std::size_t count) noexcept : first_{first}, count_{count} {}

  std::size_t size() const noexcept { return count_; }
  bool empty() const noexcept { return count_ == 0; }
  sequence_number front() const noexcept { return first_; }
  sequence_number back() const noexcept { return first_ + count_ - 1; }  ///< before the first one, if there are none
  sequence_number operator[](std::size_t i) const noexcept { return first_ + i; }
  iterator begin() const noexcept { return iterator{first_}; }
  iterator end() const noexcept { return iterator{first_ + count_}; }

 private:
  sequence_number first_ = 0;
  std::size_t count_ = 0;
};

// ---- barrier --------------------------------------------------------------------------------------------------------------

/// How far somebody has come. One publishes; any number wait.
///
///     sequence_number read = nothing_yet;
///     for (;;) {
///       const auto until = co_await filled.wait_until_published(read + 1);
///       while (read != until) use(buffer[++read & mask]);
///       consumed.publish(read);  // a barrier of its own
///     }
///
/// Cost  to publish, a lock of one byte, and a look at each that waits; to ask, or to wait for what is there, a load.
class sequence_barrier : detail::gate {
 public:
  /// `published`: the last number that counts as published.
  explicit sequence_barrier(sequence_number published = nothing_yet) noexcept : published_{published} {}

  /// The last one that was published.
  sequence_number last_published() const noexcept {
    return published_.load(std::memory_order_acquire);  // <- published (no model: as declared)
  }
  /// Publishes all up to `last`, and wakes those that wait for any of them. Never goes back (the program ends).
  void publish(sequence_number last) noexcept;
  /// Waits until `target` is published. Gives the last one that is, which may be later.
  [[nodiscard("nothing happens until it is awaited")]] auto wait_until_published(sequence_number target) noexcept;
  /// Of those that wait; over when it is read. Costs its lock, and a walk along the line.
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

/// Numbers for one that produces.
///
///     sequence_barrier consumed;
///     single_producer_sequencer numbers{consumed, 1024};
///     const auto mine = co_await numbers.claim_up_to(16);  // waits while the buffer is full
///     for (const auto n : mine) buffer[n & 1023] = make();
///     numbers.publish(mine);
///
/// Threads   claims and publishes by one at a time; any number wait for what is published.
/// Lifetime  `consumed`, which says what all have read, outlives it. Where several read, it is what the slowest one has read.
/// Cost      a claim of what is free, a load; to publish, as a barrier.
class single_producer_sequencer {
 public:
  /// `size` of the buffer: a power of two, else it ends the program. `published` is where numbers begin, as in `consumed`.
  single_producer_sequencer(sequence_barrier& consumed, std::size_t size,
                            sequence_number published = nothing_yet) noexcept;

  /// Claims the next number. Waits until its place is free.
  [[nodiscard("nothing happens until it is awaited")]] auto claim_one() noexcept;
  /// Claims the next ones, as many as are free, up to `count`, which is not 0. Waits until one is.
  [[nodiscard("nothing happens until it is awaited")]] auto claim_up_to(std::size_t count) noexcept;
  /// Publishes what was claimed, up to that one.
  void publish(sequence_number last) noexcept { published_.publish(last); }
  void publish(const sequence_range& all) noexcept {
    if (!all.empty()) publish(all.back());
  }

  sequence_number last_published() const noexcept { return published_.last_published(); }  ///< as of a barrier
  /// As of a barrier.
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

/// Numbers for many that produce. They claim in the order in which they came, and publish in any: a number is published once
/// all before it are.
///
/// Lifetime  as above.
/// Cost      a claim is a task, which takes a mutex; to publish, a lock of one byte, and a flag for each number.
class multi_producer_sequencer {
 public:
  /// As of one that produces; throws std::bad_alloc.
  multi_producer_sequencer(sequence_barrier& consumed, std::size_t size, sequence_number published = nothing_yet);
  multi_producer_sequencer(const multi_producer_sequencer&) = delete;
  ~multi_producer_sequencer();

  /// As of one that produces. Threads: any.
  [[nodiscard("nothing happens until it is awaited")]] task<sequence_number> claim_one();
  [[nodiscard("nothing happens until it is awaited")]] task<sequence_range> claim_up_to(std::size_t count);
  /// Publishes what was claimed: that one, or those.
  void publish(sequence_number one) noexcept { publish(sequence_range{one, 1}); }
  void publish(const sequence_range& all) noexcept;

  /// The last one before which all are published.
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
