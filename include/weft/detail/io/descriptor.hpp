// A file descriptor that an I/O service watches for readiness, and the operations that use it.
//
// Readiness. Each direction is an event that the service sets and an operation resets. An operation is tried while the event
// is set, and waits for it otherwise. The service is edge-triggered: it sets an event when something has changed, and never
// again for the same change. So a reader resets the event *before* it calls the system; data that arrives in between sets it
// again. A read that filled its buffer also sets the event, since there may be more data. After the peer has closed its side
// (`ended`), nothing more is reported and no try has to wait: from then on every operation is tried at once.
//
// TCP's urgent data ends a read early, at the urgent mark, although there may be data behind the mark. Once urgent data was
// reported (`marked`), each read that returned data sets the event again, as long as the descriptor lives. The price is one read
// that finds nothing before each wait.
//
// A poll of io_uring may report a change without telling whether it is urgent. The kernel reports the urgent bytes and the bytes
// behind them as two changes, so a read that begins between the two reports is followed by the second one. Only a read that
// begins after both can end at the mark while nothing more is reported. So a report that may be of urgent data, and finds the
// event already set, is noted (`repeated`); the next read, if it returns data, sets the event and the note again, until a read
// finds nothing.
//
// A read of a Unix stream also ends early at bytes that came with descriptors or with other credentials, and no change is
// reported for the bytes behind them. So a Unix stream is read by recvmsg(), whose flags tell of such an end.
//
// Use. The low bits of the word `use_` say whether the descriptor is open, is being read, is being written, has an owner; the
// rest counts other operations. close() wakes the waiting tasks; if an operation is under way, close() also shuts the connection
// down, so that the peer learns of it at once. The number is closed only when no operation is under way: so no operation calls
// the system with a number that is another file's by then. The memory is reused when the descriptor has no owner either.
//
// Rejected: (a) to clear readiness after a short read. If the data and the end of the connection come as one change, a reader
// that has taken the data would wait for ever. (b) To clear `ended` when a try finds nothing: the end may have come, and been
// reported, between the try and the clearing.
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
enum class direction { in, out };

/// Type-stable memory: an I/O service reuses it for other descriptors only, and frees it when the service is destroyed.
class alignas(64) descriptor {
 public:
  descriptor() = default;
  descriptor(const descriptor&) = delete;

  /// The system's number.
  int number() const noexcept { return number_.load(std::memory_order_relaxed); }  // as declared

  /// Whether an operation in this direction may succeed now.
  bool may_try(direction which) const noexcept { return event_of(which).is_set() || has_ended(which); }
  /// Whether the system has reported that nothing more will come, or go.
  bool has_ended(direction which) const noexcept {
    return (ended_.load(std::memory_order_relaxed) & bit(which)) != 0;  // as declared: a try decides
  }
  /// Resets the event, before a try that may have to wait. After a close() the event stays set: a try on a file that can't be
  /// shut down would not fail, and the operation would wait for ever.
  void expect_change(direction which) noexcept {
    if (has_ended(which)) return;
    event_of(which).reset();
    if (is_closed()) [[unlikely]]
      event_of(which).set();
  }
  /// Whether the peer has sent urgent bytes, before each of which a read ends.
  bool has_marks() const noexcept { return (ended_.load(std::memory_order_relaxed) & marked) != 0; }  // as declared
  /// By a read, before it resets the event: takes the note that several changes were reported before it. If it returns true and
  /// the read returns data, the read calls has_perhaps_more(), so that the next read looks for the rest.
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
  /// By a try that may have left data, or room: the next try need not wait.
  void has_more(direction which) noexcept { event_of(which).set(); }
  /// To be awaited. Afterwards is_closed() says whether the descriptor was closed meanwhile.
  auto until_ready(direction which) noexcept {
    if (!is_armed(which)) [[unlikely]]
      arm(which);
    return event_of(which).wait_for(io);
  }
  /// As until_ready(), but without arming the direction, so that a change may not be reported. For a case of a select before it
  /// waits.
  auto line_of(direction which) noexcept { return event_of(which).wait_for(io); }
  bool is_closed() const noexcept {
    return (use_.load(std::memory_order_relaxed) & open) == 0;  // close() sets the event after it, which orders it
  }

  /// Shuts down the write side and wakes the tasks that wait to write: from now on writes fail. Returns an error number, or 0.
  /// Any thread that uses the descriptor.
  int shut_down_writes() noexcept;

  /// Says that nobody has a duplicate of the number, since weft made it and has not shown it. Then close() also shuts the file
  /// down if an armed poll would keep it open.
  void is_of_ours_alone() noexcept { is_shared_.store(false, std::memory_order_relaxed); }  // as declared
  /// Says whether it is a Unix socket, whose reads end early at descriptors and credentials. Before another thread has it.
  void is_of_unix(bool is) noexcept {
    if (is) ended_.fetch_or(local, std::memory_order_relaxed);  // as declared
  }
  bool is_unix() const noexcept { return (ended_.load(std::memory_order_relaxed) & local) != 0; }  // as declared
  /// Notes that so many bytes were read or written.
  void has_moved(std::size_t size) noexcept {
    const std::uint32_t before = moved_.load(std::memory_order_relaxed);         // as declared
    if ((ended_.load(std::memory_order_relaxed) & counted) != 0) [[unlikely]] {  // as declared
      constexpr std::uint32_t enough = std::uint32_t{1} << 30;
      if (before < enough)
        moved_.fetch_add(size < enough ? static_cast<std::uint32_t>(size) : enough,
                         std::memory_order_relaxed);  // as declared
    } else if (before == 0) {
      moved_.store(1, std::memory_order_relaxed);  // as declared
    }
  }
  /// From now on has_moved() counts bytes; otherwise it only notes that there were any.
  void count_moved() noexcept { ended_.fetch_or(counted, std::memory_order_relaxed); }  // as declared
  /// Bytes moved since the last call; one caller only. Without count_moved(), 1 stands for any number. The count stops growing
  /// once it has reached 1 GiB.
  std::uint32_t take_moved() noexcept { return moved_.exchange(0, std::memory_order_relaxed); }  // as declared
  /// Whether a read or a write is under way.
  bool is_used_to_move() const noexcept {
    return (use_.load(std::memory_order_relaxed) & (read | written)) != 0;  // a hint, no edge
  }

  /// A ring polls it one-shot, anew for each wait, and so does not keep its file open in between.
  void report_once() noexcept { ended_.fetch_or(once, std::memory_order_relaxed); }  // as declared
  /// A one-shot poll reports at once what holds already. From now on a ring polls it multishot: that reports changes.
  void report_changes() noexcept { ended_.fetch_and(~once, std::memory_order_relaxed); }               // as declared
  bool reports_once() const noexcept { return (ended_.load(std::memory_order_relaxed) & once) != 0; }  // as declared

  /// Whether the system copies the data of a zero-copy write all the same.
  bool is_copied_anyway() const noexcept {
    return (ended_.load(std::memory_order_relaxed) & copied) != 0;  // as declared
  }
  void will_be_copied() noexcept { ended_.fetch_or(copied, std::memory_order_relaxed); }  // as declared

  /// The number, for a caller that may make duplicates of it.
  int shown_number() noexcept {
    is_shared_.store(true, std::memory_order_relaxed);  // as declared
    return number();
  }

  /// By its owner: wakes the waiting tasks, and closes the number when no operation is under way. If one is, or an armed poll
  /// keeps the file open, it shuts the connection down at once, or has the poll cancelled. A second call does nothing.
  void close() noexcept;
  /// By its owner, instead of close(), while no operation is under way: gives the open number to the caller.
  int release() noexcept;
  /// As release(), for a number that is another file's by now: does not stop the watching, which may be somebody else's.
  void forget() noexcept;
  /// By its owner: closes the descriptor and gives it up.
  void drop() noexcept;

  // ---- for its I/O service

  /// Begins a use of this memory, fresh or given back, for `number`. `is_ready`: both directions count as ready until a try finds
  /// that it has to wait.
  void begin(io_service& of, int number, bool is_ready) noexcept;
  /// From now on a change in either direction is reported as one for reading, too.
  void merge_directions() noexcept { ended_.fetch_or(merged, std::memory_order_relaxed); }  // as declared
  /// A change that the system reported for the descriptor's use of that generation. A late report finds another generation and is
  /// dropped, or else causes one try that finds nothing.
  struct change {
    bool in = false, out = false;              // there may be something to read, or room
    bool in_ended = false, out_ended = false;  // nothing more will come, or go
    bool urgent = false;
    bool may_be_urgent = false;  // the report does not tell
  };
  void report(std::uint16_t generation, const change& what) noexcept;
  std::uint16_t generation() const noexcept {
    return static_cast<std::uint16_t>(ended_.load(std::memory_order_relaxed) >> 16);  // as declared
  }
  /// Whether changes in this direction are reported. A ring arms a direction before the first wait; epoll reports both from the
  /// beginning on.
  bool is_armed(direction which) const noexcept {
    return (armed_.load(std::memory_order_relaxed) & bit(which)) != 0;  // as declared
  }
  void is_armed_from_the_beginning() noexcept { armed_.store(3, std::memory_order_relaxed); }  // nobody else has it yet
  descriptor* next = nullptr;  // in the list of unused ones, or in the inbox of its ring's owner

  /// State of io_uring's. The memory is reused only after the kernel's last completion for it: so no completion comes too late.
  struct in_ring {
    // The worker whose ring polls both directions, chosen at the first wait. No edge: rings are made before any descriptor.
    std::atomic<class uring_worker*> home{nullptr};
    requests asks;            // to the ring's owner; while there are any, the descriptor is in the owner's inbox
    std::uint8_t armed = 0;   // by the ring's owner: the directions that the kernel polls
    bool is_retired = false;  // by the ring's owner: nobody has the descriptor any more
  };
  [[no_unique_address]] in_ring ring;  // the next members use its tail padding: a descriptor has two cache lines

 private:
  friend class descriptor_use;
  friend class uring;  // NOLINT(cppcoreguidelines-virtual-class-destructor): it is final
  friend class uring_worker;

  static constexpr wait_type io = gate_waiter::type_called("I/O");  // the system ends it, no task of the program
  static constexpr std::uint32_t open = 1, read = 2, written = 4, owned = 8, one_use = 16;
  static constexpr std::uint8_t bit(direction which) noexcept { return which == direction::in ? 1 : 2; }
  event& event_of(direction which) noexcept { return which == direction::in ? readable_ : writable_; }
  const event& event_of(direction which) const noexcept { return which == direction::in ? readable_ : writable_; }
  static constexpr std::uint8_t kept = 4;  // a bit of armed_, beside those of the directions
  // In ended_, besides the directions. Marked: urgent data was reported. Merged: a change in either direction is also one for
  // reading. Counted: has_moved() counts bytes. Copied: the system copies the data of zero-copy writes. Local: a Unix socket.
  // Once: a ring polls it one-shot for each wait. Repeated: a change that may be urgent found the event for reading set already.
  static constexpr std::uint32_t marked = 4, merged = 8, counted = 16, copied = 32, local = 64, once = 128,
                                 repeated = 256;
  bool merges() const noexcept { return (ended_.load(std::memory_order_relaxed) & merged) != 0; }  // as declared
  void arm(direction which) noexcept;
  void disarm(direction which) noexcept;
  void leave(std::uint32_t uses) noexcept;
  bool end(std::uint16_t of_generation, std::uint32_t bits) noexcept;
  void end_uses(bool is_kept) noexcept;
  void close_number() noexcept;

  // The directions whose changes will be reported, and whether the system keeps the file open for that (`kept`). Relaxed: a task
  // that is about to wait has reset its event before, under the event's lock; disarm() sets the event after it has cleared the
  // bit; and close() has the edge `left` from each operation that armed a direction and is over.
  atomic<std::uint8_t> armed_{0};
  atomic<bool> is_shared_{true};  // no edge: written by the owner, or before another thread has the descriptor

  event readable_, writable_;
  //   edge left  all that an operation did with the descriptor  ->  who closes it, or its number, and who begins it anew
  // After begin(), changed by read-modify-writes alone. The beginning of an operation may be relaxed: its thread got the
  // descriptor from the owner, which orders it.
  atomic<std::uint32_t> use_{0};
  // The directions that have ended, the bits above and, in the high half, the generation, so that a late report does not mark the
  // memory's next use. No edge: hints, after which a try decides.
  atomic<std::uint32_t> ended_{0};
  atomic<int> number_{-1};  // no edge: begin() writes it before another thread has the descriptor
  // Whether any bytes were moved, or how many. No edge: a hint for a server that looks for idle and for slow connections.
  atomic<std::uint32_t> moved_{0};
  io_service* of_ = nullptr;
};

/// An operation's use of a descriptor (RAII). While it lives, the number of a descriptor that was open is not closed.
class descriptor_use {
 public:
  /// With a sentence, `if_taken`: a read or a write, of which each direction has one at a time; a second one is a breach of
  /// contract with that sentence. With null: one of any number of other operations. `of` may be null.
  explicit descriptor_use(descriptor* of, direction which = direction::in, const char* if_taken = nullptr) noexcept
      : of_{of}, uses_{uses_of(which, if_taken)} {
    if (of != nullptr) was_open_ = begin(*of, uses_, if_taken);
  }
  descriptor_use(const descriptor_use&) = delete;
  ~descriptor_use() {
    if (of_ != nullptr) end(*of_, uses_);
  }

  /// Whether there is a descriptor, and it was open at the beginning.
  explicit operator bool() const noexcept { return was_open_; }

  // ---- for who has no room for one of these

  static constexpr std::uint32_t uses_of(direction which, const char* if_taken) noexcept {
    return if_taken == nullptr ? descriptor::one_use : which == direction::in ? descriptor::read : descriptor::written;
  }
  /// Whether it was open. The use is to be ended in either case.
  static bool begin(descriptor& of, std::uint32_t uses, const char* if_taken) noexcept {
    const std::uint32_t before = if_taken == nullptr
                                     ? of.use_.fetch_add(uses, std::memory_order_relaxed)  // as declared
                                     : of.use_.fetch_or(uses, std::memory_order_relaxed);  // as declared
    WEFT_EXPECTS(if_taken == nullptr || (before & uses) == 0, if_taken);
    return (before & descriptor::open) != 0;
  }
  static void end(descriptor& of, std::uint32_t uses) noexcept { of.leave(uses); }

 private:
  descriptor* of_;
  std::uint32_t uses_;
  bool was_open_ = false;
};

}  // namespace weft::detail
