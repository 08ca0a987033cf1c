// A server's limits on a connection: whether the peer has completed the handshake in time, whether bytes move, and how fast.
//
// The watch samples the connection four times in each limit, but at most once in 1 ms. So a breach is found at most a quarter of
// the limit late. No single operation is timed: each connection has one timer, and a count of bytes if there is a minimum rate.
//
// Rejected: (a) a timer armed by each read: that has a cost for each read, while a timer of the connection's own fires only four
// times in the limit. (b) A minimum rate over the connection's whole life: a client that pauses between two requests does nothing
// wrong.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <weft/clock.hpp>
#include <weft/detail/io/descriptor.hpp>

namespace weft::detail {

/// Why a connection is ended. Late: no handshake in time.
enum class connection_fault : std::uint8_t { none, idle, late, slow };

/// A server's limits for a connection. clock::duration::max() stands for no limit.
struct connection_limits {
  clock::duration handshake, idle, rate_window;
  std::uint64_t min_rate;

  bool has_handshake() const noexcept { return handshake != clock::duration::max(); }
  bool has_any() const noexcept { return has_handshake() || idle != clock::duration::max() || min_rate != 0; }
  std::uint64_t least_in_window() const noexcept {
    const double seconds = std::chrono::duration<double>(rate_window).count();
    return static_cast<std::uint64_t>(std::min(static_cast<double>(min_rate) * seconds, 1e18));
  }
};

class idle_count {
 public:
  /// `moved` is the number of bytes so far. Whether four samples in a row found no more than the one before.
  bool look(std::uint64_t moved) noexcept {
    quiet_ = moved == before_ ? quiet_ + 1 : 0;
    before_ = moved;
    return quiet_ >= 4;
  }
  void restart(std::uint64_t moved) noexcept {
    before_ = moved;
    quiet_ = 0;
  }

 private:
  std::uint64_t before_ = 0;
  int quiet_ = 0;
};

class rate_count {
 public:
  explicit rate_count(std::uint64_t least_in_window) noexcept : least_{least_in_window} {}
  /// Whether fewer bytes than the minimum were moved in a whole window, which five samples span. The window begins at the sample
  /// that finds the first byte: so silence before it does not count. It begins anew when the handler is not waiting for the peer.
  bool look(std::uint64_t moved, bool is_waiting) noexcept {
    if (!is_waiting || (looks_ == 0 && moved == before_)) {
      restart(moved);
      return false;
    }
    if (++looks_ != 5) return false;
    const bool is_slow = moved - before_ < least_;
    restart(moved);
    return is_slow;
  }

 private:
  void restart(std::uint64_t moved) noexcept {
    before_ = moved;
    looks_ = 0;
  }
  std::uint64_t least_;
  std::uint64_t before_ = 0;  // when the window began
  int looks_ = 0;
};

/// When the next sample is due: a quarter of the limit after the last one was taken, even if that was late, so that no interval
/// is shorter than a quarter. At least 1 ms later, since a watch that samples without a pause would occupy its worker.
class quarters {
 public:
  quarters(clock::time_point now, clock::duration whole) noexcept
      : every_{whole == clock::duration::max() ? whole
                                               : std::max<clock::duration>(whole / 4, std::chrono::milliseconds{1})} {
    taken(now);
  }
  clock::time_point due() const noexcept { return due_; }
  void taken(clock::time_point now) noexcept { due_ = later(now, every_); }

 private:
  clock::duration every_;
  clock::time_point due_{};
};

class connection_watch {
 public:
  /// `generation` is that of the connection's descriptor.
  connection_watch(const connection_limits& by, clock::time_point now, std::uint16_t generation) noexcept
      : generation_{generation},
        shows_until_{later(now, by.handshake)},
        idle_looks_{now, by.idle},
        rate_looks_{now, by.min_rate != 0 ? by.rate_window : clock::duration::max()},
        rate_{by.least_in_window()} {}

  clock::time_point due() const noexcept { return std::min({shows_until_, idle_looks_.due(), rate_looks_.due()}); }

  /// A handler may have given its descriptor back and go on. The descriptor may then belong to another connection (its generation
  /// tells), on which no limit is enforced here.
  connection_fault look(clock::time_point now, descriptor& at, const std::atomic<bool>& has_shown) noexcept {
    if (now >= shows_until_) {
      if (!has_shown.load(std::memory_order_relaxed)) return connection_fault::late;  // nothing is ordered by it
      shows_until_ = clock::time_point::max();
    }
    const bool is_the_same = at.generation() == generation_, is_waiting = at.is_used_to_move();
    if (is_the_same) moved_ += at.take_moved();  // if it is reused right now, that use loses the bytes of one sample
    if (now >= idle_looks_.due()) {
      if (!is_the_same)
        idle_.restart(moved_);
      else if (idle_.look(moved_))
        return connection_fault::idle;
      idle_looks_.taken(now);
    }
    if (now >= rate_looks_.due()) {
      if (rate_.look(moved_, is_waiting && is_the_same)) return connection_fault::slow;
      rate_looks_.taken(now);
    }
    return connection_fault::none;
  }

 private:
  std::uint16_t generation_;
  std::uint64_t moved_ = 0;  // bytes, if they are counted
  clock::time_point shows_until_;
  quarters idle_looks_, rate_looks_;
  idle_count idle_;
  rate_count rate_;
};

}  // namespace weft::detail
