// A file descriptor that an I/O service watches for readiness, and who is at it.
//
// Readiness. Each direction is an event that the service sets and an operation resets. An operation is tried while the event
// is set, and waits for it otherwise. The service reports edges: it sets an event when something has changed, and never
// again for the same change. So a reader resets the event *before* it calls the system; what arrives in between sets it
// anew. A read that filled its buffer sets it again, since there may be more. Once the peer has closed its side (`ended`),
// nothing new will be reported, and a try never finds that it has to wait: from then on each is worth it, for good. A read
// ends early where the peer has sent something urgent, and more is there behind it: once that was reported (`marked`), a read
// that gave anything sets the event again, for good, too. Its price is a call in vain for each wait.
//
// A ring may tell of a change without saying that it was something urgent. Such bytes and what is behind them come as changes of
// their own; a read that begins between two of them has another one before it. So only a read that several were told before
// can end early and have nothing reported of the rest: a change that finds the event set already is noted (`repeated`), and a
// read that gave anything then sets the event once more, until one has found nothing.
//
// A read of a Unix stream ends early behind bytes that came with descriptors, or with other credentials, too, and nothing is
// reported of what is behind them. There the system is asked by recvmsg(), which says so.
//
// Use. The low bits of a word say whether the descriptor is open, is being read, is being written, has an owner; the rest
// counts other operations. close() wakes who waits; where anybody is at it, it shuts the connection down, so that the peer
// hears of it at once. The number is given back to the system once no operation is under way, so that none calls the system
// with a number that somebody else has been given meanwhile; the descriptor, once it has no owner either.
//
// Rejected: (a) to clear readiness after a short read. Where the data and the end of the connection come as one change, a
// reader that has taken the data would wait for ever. (b) To forget the end where a try finds nothing: it may have come, and
// been reported, between the two.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <weft/detail/base/atomic.hpp>
#include <weft/detail/base/config.hpp>
#include <weft/detail/io/requests.hpp>
#include <weft/sync.hpp>

namespace weft::detail {

class io_service;

/// Which half of a descriptor.
enum class direction : std::uint8_t { in, out };

/// Belongs to an I/O service, which uses its memory again for another descriptor, and never for anything else.
class alignas(64) descriptor {
 public:
  descriptor() = default;
  descriptor(const descriptor&) = delete;

  /// The system's number.
  int number() const noexcept { return number_.load(std::memory_order_relaxed); }  // see `left`

  /// Whether an operation in this direction may succeed now.
  bool may_try(direction which) const noexcept { return event_of(which).is_set() || has_ended(which); }
  /// Whether the system has reported that nothing more will come, or go.
  bool has_ended(direction which) const noexcept {
    return (ended_.load(std::memory_order_relaxed) & bit(which)) != 0;  // as declared: a try decides
  }
  /// Before a try after which there is a wait. It takes away nothing of close(): a file that can't be shut down fails no try.
  void expect_change(direction which) noexcept {
    if (has_ended(which)) return;
    event_of(which).reset();
    if (is_closed()) [[unlikely]]
      event_of(which).set();
  }
  /// Whether the peer has sent urgent bytes, before each of which a read ends.
  bool has_marks() const noexcept { return (ended_.load(std::memory_order_relaxed) & marked) != 0; }  // as declared
  /// By a read, before it resets the event: whether changes were told of together. If it gives anything then, it says so of the
  /// next one, which finds out whether there is more.
  bool take_repeated() noexcept {
    if ((ended_.load(std::memory_order_relaxed) & repeated) == 0) [[likely]]  // as declared
      return false;
    ended_.fetch_and(~repeated, std::memory_order_relaxed);  // as declared
    return true;
  }
  void has_perhaps_more() noexcept {
    ended_.fetch_or(repeated, std::memory_order_relaxed);  // as declared
    has_more(direction::in);
  }
  /// A try that was expected to exhaust it has not.
  void has_more(direction which) noexcept { event_of(which).set(); }
  /// To be awaited. Behind it, is_closed() says whether somebody has closed the descriptor meanwhile.
  auto until_ready(direction which) noexcept {
    if (!is_armed(which)) [[unlikely]]
      arm(which);
    return event_of(which).wait_for(io);
  }
  /// Its line alone, of which a place is taken later; what comes meanwhile may not be reported.
  auto line_of(direction which) noexcept { return event_of(which).wait_for(io); }
  bool is_closed() const noexcept {
    return (use_.load(std::memory_order_relaxed) & open) == 0;  // ordered by the event, which close() sets behind it
  }

  /// Closes its write side, and wakes who waits there: writes fail from now on. An error number. Any thread that uses it.
  int shut_down_writes() noexcept;

  /// Others may have duplicates of a number, unless weft has made it and never shown it. The file of one that nobody else has
  /// is shut down when it is closed, where the system would keep it open for what is armed.
  void is_of_ours_alone() noexcept { is_shared_.store(false, std::memory_order_relaxed); }  // as declared
  /// A socket of this machine, of which reads end at what else came with the bytes. Before it is known to anybody.
  void is_of_unix(bool is) noexcept {
    if (is) ended_.fetch_or(local, std::memory_order_relaxed);  // as declared
  }
  bool is_unix() const noexcept { return (ended_.load(std::memory_order_relaxed) & local) != 0; }  // as declared
  /// So many bytes were read or written.
  void has_moved(std::size_t size) noexcept {
    const std::uint32_t before = moved_.load(std::memory_order_relaxed);         // as declared
    if ((ended_.load(std::memory_order_relaxed) & counted) != 0) [[unlikely]] {  // as declared
      constexpr std::uint32_t enough = std::uint32_t{1} << 30;
      if (before < enough)
        moved_.fetch_add(size < enough ? static_cast<std::uint32_t>(size) : enough,
                         std::memory_order_relaxed);  // a figure
    } else if (before == 0) {
      moved_.store(1, std::memory_order_relaxed);  // as declared
    }
  }
  /// From now on it counts them; otherwise it only notes that there were any.
  void count_moved() noexcept { ended_.fetch_or(counted, std::memory_order_relaxed); }  // as declared
  /// How many were since the last time it was asked, which only one does: 1 if it does not count, up to 1 GiB or 2 if it does.
  std::uint32_t take_moved() noexcept { return moved_.exchange(0, std::memory_order_relaxed); }  // as declared
  /// Whether somebody is at a read or a write of it.
  bool is_used_to_move() const noexcept {
    return (use_.load(std::memory_order_relaxed) & (read | written)) != 0;  // a hint, no edge
  }

  /// A ring polls it once for each wait, and so does not keep its file open between waits. Before it is known to anybody.
  void report_once() noexcept { ended_.fetch_or(once, std::memory_order_relaxed); }                    // as declared
  bool reports_once() const noexcept { return (ended_.load(std::memory_order_relaxed) & once) != 0; }  // as declared

  /// Of memory that is lent to it, the system makes a copy all the same.
  bool is_copied_anyway() const noexcept {
    return (ended_.load(std::memory_order_relaxed) & copied) != 0;  // as declared
  }
  void will_be_copied() noexcept { ended_.fetch_or(copied, std::memory_order_relaxed); }  // as declared

  int shown_number() noexcept {
    is_shared_.store(true, std::memory_order_relaxed);  // as declared
    return number();
  }

  /// By its owner: wakes who waits, and shuts a connection down at once, also while somebody uses it, or the system keeps it
  /// for what is armed. A second time it does nothing.
  void close() noexcept;
  /// By its owner, instead of close(), where nothing is under way: gives the number to the caller.
  int release() noexcept;
  /// As release(), where the number is of another file by now, which may be watched for somebody else.
  void forget() noexcept;
  /// By its owner, which closes it with that.
  void drop() noexcept;

  // ---- for its I/O service

  /// One that is fresh, or was given back, is for `number` from now on, and `is_ready` until a try says otherwise.
  void begin(io_service& of, int number, bool is_ready) noexcept;
  /// From now on a change in either direction is reported as one for reading, too.
  void merge_directions() noexcept { ended_.fetch_or(merged, std::memory_order_relaxed); }  // as declared
  /// A change that the system reported for the descriptor of that generation. A late one finds another generation, or wakes
  /// somebody who tries once in vain.
  struct change {
    bool in = false, out = false;              // there may be something to read, or room
    bool in_ended = false, out_ended = false;  // for good
    bool urgent = false;
    bool may_be_urgent = false;  // it does not say
  };
  void report(std::uint16_t generation, const change& what) noexcept;
  std::uint16_t generation() const noexcept {
    return static_cast<std::uint16_t>(ended_.load(std::memory_order_relaxed) >> 16);  // as declared
  }
  /// What must be armed before a wait; epoll has both directions from the beginning on.
  bool is_armed(direction which) const noexcept {
    return (armed_.load(std::memory_order_relaxed) & bit(which)) != 0;  // as declared
  }
  void is_armed_from_the_beginning() noexcept { armed_.store(3, std::memory_order_relaxed); }  // nobody else has it yet
  descriptor* next = nullptr;  // in the list of unused ones, or in the inbox of its ring

  /// What a ring keeps in it. The descriptor goes back when the kernel has let go of it: so no completion comes too late.
  struct in_ring {
    // Where its directions are armed, from the first wait on. No edge: rings are there before any descriptor is.
    std::atomic<class uring_worker*> home{nullptr};
    requests asks;            // of the ring's owner; it is in that one's inbox while there are any
    std::uint8_t armed = 0;   // by the ring's owner: the directions that the kernel polls
    bool is_retired = false;  // by the ring's owner: nobody has the descriptor any more
  };
  [[no_unique_address]] in_ring ring;  // what follows lies in its last bytes: a descriptor has two lines of the cache

 private:
  friend class descriptor_use;
  friend class uring;  // NOLINT(cppcoreguidelines-virtual-class-destructor): it is final
  friend class uring_worker;

  static constexpr wait_type io = gate_waiter::type_called("I/O");  // which no task of the program brings about
  static constexpr std::uint32_t open = 1, read = 2, written = 4, owned = 8, one_use = 16;
  static constexpr std::uint8_t bit(direction which) noexcept { return which == direction::in ? 1 : 2; }
  event& event_of(direction which) noexcept { return which == direction::in ? readable_ : writable_; }
  const event& event_of(direction which) const noexcept { return which == direction::in ? readable_ : writable_; }
  static constexpr std::uint8_t kept = 4;  // in armed_
  // In ended_, besides the directions. Merged: a change in either direction is one for reading. Counted: bytes are. Copied: the
  // system copies what is lent to it. Local: a Unix socket. Once: a ring polls it once for each wait. Repeated: changes were told
  // of before a read looked.
  static constexpr std::uint32_t marked = 4, merged = 8, counted = 16, copied = 32, local = 64, once = 128,
                                 repeated = 256;
  bool merges() const noexcept { return (ended_.load(std::memory_order_relaxed) & merged) != 0; }  // as declared
  void arm(direction which) noexcept;
  void disarm(direction which) noexcept;
  void leave(std::uint32_t uses) noexcept;
  bool end(std::uint16_t of_generation, std::uint32_t bits) noexcept;
  void close_number() noexcept;

  // The directions of which changes will be reported, and whether the system keeps the file open for that (`kept`). Relaxed:
  // who waits has reset its event before, under a lock; who disarms a direction sets its event behind that; and who closes has
  // the edge of `use_` from whoever armed one and has left.
  atomic<std::uint8_t> armed_{0};
  atomic<bool> is_shared_{true};  // no edge: by the owner, or before it is known to anybody

  event readable_, writable_;
  //   edge left  all that an operation did with the descriptor  ->  who closes it, or its number, and who begins it anew
  // Changed by read-modify-writes alone. Who begins to use it has it from its owner, so that may be relaxed.
  atomic<std::uint32_t> use_{0};
  // The directions that have ended, whether there are marks, what else is said of it and, in the high half, the generation, so
  // that what is reported late ends nothing of the next one. A hint, no edge.
  atomic<std::uint32_t> ended_{0};
  atomic<int> number_{-1};  // no edge: who finds the descriptor open finds it, too
  // Whether any bytes were moved, or how many. No edge: a hint for who looks for connections that are idle, or slow.
  atomic<std::uint32_t> moved_{0};
  io_service* of_ = nullptr;
};

/// An operation's use of a descriptor, from its beginning to its end, however that comes. As long as it lives, the number of
/// a descriptor that was open stays.
class descriptor_use {
 public:
  /// To read or to write: one at a time in each direction; with a null sentence one of any number. A null descriptor: there is
  /// none.
  explicit descriptor_use(descriptor* of, direction which = direction::in, const char* if_taken = nullptr) noexcept
      : of_{of},
        uses_{if_taken == nullptr      ? descriptor::one_use
              : which == direction::in ? descriptor::read
                                       : descriptor::written} {
    if (of == nullptr) return;
    const std::uint32_t before = if_taken == nullptr
                                     ? of->use_.fetch_add(uses_, std::memory_order_relaxed)  // as declared
                                     : of->use_.fetch_or(uses_, std::memory_order_relaxed);  // as declared
    WEFT_EXPECTS(if_taken == nullptr || (before & uses_) == 0, if_taken);
    was_open_ = (before & descriptor::open) != 0;
  }
  descriptor_use(const descriptor_use&) = delete;
  ~descriptor_use() {
    if (of_ != nullptr) of_->leave(uses_);
  }

  /// Whether there is one, which was open at the beginning.
  explicit operator bool() const noexcept { return was_open_; }

 private:
  descriptor* of_;
  std::uint32_t uses_;
  bool was_open_ = false;
};

}  // namespace weft::detail
