// Who of a pool's workers has nothing to do, and who wakes whom.
//
// A worker without a job first searches: it looks into the queues of the others. If it finds nothing, it enters the set
// and sleeps. Whoever posts a job wakes a worker out of the set, but not while one searches already: that one will find
// it. So a burst of jobs wakes one worker, which, when it has found something and was the last to search, wakes the next
// if there is more.
//
// No job may be left with everybody asleep. The two sides each write, have a fence made, and read (base/fence.hpp):
//
//   poster   puts the job into a queue; light fence; reads who sleeps and who searches. One sleeps and none searches:
//            wakes one
//   sleeper  enters the set, or stops to search; heavy fence; reads all queues. If there is a job: leaves the set again,
//            or, where it has found one for itself, wakes another
//
// A job for one worker alone is the same between two: its poster reads whether just that one is inside, and wakes it.
//
// A job that its worker is to do next (run_queue.hpp) needs nobody, unless that worker is at one job for long. Nobody is
// woken for it; instead one of those who sleep, the watcher, wakes every few milliseconds while others are busy, and
// takes such a job from a worker that has got nowhere since. Where all sleep, so does the watcher. Who has found a job was
// perhaps the watcher, or searched when such a job was posted: if there is one and nobody watches, it wakes another.
//
// Rejected: (a) a wake-up for each job: a system call of a microsecond or two for each that takes less. (b) A watcher that
// always wakes: an idle pool burns nothing.
//
// Where there are more workers than processors, they get in each other's way as long as they compute, and all are needed
// where they block. So only some may be awake at once; those beyond sleep on beside jobs that wait, for at least one of
// those awake will look before it sleeps, and one watches: it says how many may be awake from then on (pool_size.hpp).
//
//   poster   as above; but where so many are awake and one watches, it wakes nobody
//   sleeper  enters the set. If so many are awake besides and one watches: sleeps. Else as above
//
// A thread that works here only for the time of a call comes and goes.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <weft/detail/base/atomic.hpp>
#include <weft/detail/base/lock.hpp>

namespace weft::detail {

/// A worker's place in the set.
struct idler {
  plain<idler*> below = nullptr;  // under the set's lock, as the others
  atomic<bool> inside{false};     // relaxed: under the lock; or a hint, which the pairs of fences make true
  plain<bool> watches = false;
  plain<std::uint32_t> came = 0;  // the number of that move
};

class idle_set {
 public:
  /// `most_awake`, of those that it has now: how many may be awake at first, as by let_wake().
  idle_set(std::uint32_t workers, std::uint32_t most_awake) noexcept
      : all_{workers}, workers_{workers}, beyond_{workers - most_awake} {}
  explicit idle_set(std::uint32_t workers) noexcept : idle_set{workers, workers} {}

  /// So many of the workers may be awake from now on; at least one, at most as many as it had at first. By one at a time:
  /// the one that watched, which goes on to too_many() or looks for work, or whoever goes on behind a heavy_fence(), and
  /// wakes another one if there is a job.
  void let_wake(std::uint32_t most) noexcept {
    const std::lock_guard guard{lock_};
    const std::uint32_t before = beyond(), now = all_ - most;
    beyond_.store(now, std::memory_order_relaxed);  // as declared
    if (!is_watched_) return;
    if (now < before)
      state_.fetch_add(before - now, std::memory_order_relaxed);  // as declared
    else
      state_.fetch_sub(now - before, std::memory_order_relaxed);  // as declared
  }
  std::uint32_t may_be_awake() const noexcept { return all_ - beyond(); }
  /// Whether more are awake. A hint.
  bool too_many() const noexcept {
    return beyond() != 0 && inside_of(state_.load(std::memory_order_relaxed)) < beyond();  // as declared
  }

  /// Registers one more worker, which is awake. The caller goes on behind a heavy_fence(), and must then search.
  void come() noexcept { change(1); }
  /// Takes out a worker that is awake. The caller goes on behind a heavy_fence(), and wakes another one if there is a job,
  /// or the pool is to end.
  void go() noexcept { change(-1); }

  /// By a worker without a job. False: enough workers search, or too many are awake, so it is not to search.
  bool start_search() noexcept {
    std::uint32_t seen = state_.load(std::memory_order_relaxed);  // as declared
    do {
      const std::uint32_t inside = inside_of(seen),
                          awake = workers_.load(std::memory_order_relaxed) - inside;  // as declared
      if (2 * (without_watcher(seen) / searching) >= awake || inside < beyond()) return false;
    } while (!state_.compare_exchange_weak(seen, seen + searching, std::memory_order_relaxed,  // as declared
                                           std::memory_order_relaxed));  // tried again
    return true;
  }

  /// By one that has found something. True: it was the last, and some sleep whom it would call, who may be told that it
  /// searches. Then it looks whether there is more, behind a heavy_fence(). Who falls asleep later looks for itself.
  bool stop_search() noexcept {
    return calls_for_one(state_.fetch_sub(searching, std::memory_order_relaxed) - searching, false);  // as declared
  }

  struct entered {
    bool last;     // all are inside
    bool watches;  // it is the one that does
    bool enough;   // are awake, so it need not look
  };

  /// By one that has found nothing; `searched`: start_search() had let it. It goes on behind a heavy_fence().
  entered enter(idler& self, bool searched) noexcept {
    const std::lock_guard guard{lock_};
    self.below = first_;
    self.inside.store(true, std::memory_order_relaxed);  // as declared
    self.came = moves_ = moves_ + 1;
    first_ = &self;
    const std::uint32_t now = searched ? state_.fetch_sub(found, std::memory_order_relaxed) - found     // as declared
                                       : state_.fetch_add(parked, std::memory_order_relaxed) + parked;  // as declared
    const std::uint32_t inside = inside_of(now);
    const bool last = inside == workers_.load(std::memory_order_relaxed);  // as declared
    self.watches = !last && !is_watched_;
    if (self.watches) {
      is_watched_ = true;
      state_.fetch_add(watched - beyond(), std::memory_order_relaxed);  // as declared
    }
    return {.last = last, .watches = self.watches, .enough = inside <= beyond()};
  }

  /// Whether all workers are inside. A hint.
  bool all_inside() const noexcept {
    return inside_of(state_.load(std::memory_order_relaxed)) ==
           workers_.load(std::memory_order_relaxed);  // as declared
  }

  /// By one that is inside, or was: it searches from here on. True: nobody had woken it.
  bool leave(idler& self) noexcept {
    const std::lock_guard guard{lock_};
    return remove(self);
  }

  /// By whoever has put a job somewhere, behind a light_fence(): whom to wake; null: nobody. `hot`: its own worker does
  /// it next, so it is enough that somebody watches.
  idler* pick(bool hot = false) noexcept {
    if (!calls_for_one(hot)) [[likely]]
      return nullptr;
    const std::lock_guard guard{lock_};
    return calls_for_one(hot) && !closed_ ? take_first() : nullptr;
  }
  /// Whether pick() may give one. By the same, to know it at once.
  bool calls_for_one(bool hot = false) const noexcept {
    return calls_for_one(state_.load(std::memory_order_relaxed), hot);  // as declared
  }
  /// By whoever has put a job somewhere for just this one, behind a light_fence(). True: it is to be woken; else it will
  /// look before it sleeps.
  bool pick(idler& one) noexcept {
    if (!one.inside.load(std::memory_order_relaxed)) return false;  // as declared
    const std::lock_guard guard{lock_};
    return !closed_ && remove(one);
  }
  /// For who ends the pool: whom to wake; null: nobody is inside.
  idler* pick_any() noexcept {
    const std::lock_guard guard{lock_};
    return first_ != nullptr ? take_first() : nullptr;
  }

  /// By one that has entered as the last, and has then seen behind its heavy_fence() that there is no job, to end the
  /// pool. True: nobody has come or gone since, and nobody is picked any more but by pick_any(). Who looked before the
  /// last one came has seen nothing of what that one brought about.
  bool close_since(const idler& self) noexcept {
    const std::lock_guard guard{lock_};
    if (closed_ || self.came != moves_) return false;
    closed_ = true;
    return true;
  }

 private:
  // The packed word: parked:15, searching:16, watcher:1. While a worker watches, the word is biased by the number that is to
  // stay parked (beyond()), so that one compare says whether to notify.
  static constexpr std::uint32_t limit = 1 << 15, parked = 1, searching = limit, watched = std::uint32_t{1} << 31;
  static constexpr std::uint32_t found = searching - parked;  // added when a parked worker becomes one that searches

  std::uint32_t beyond() const noexcept { return beyond_.load(std::memory_order_relaxed); }  // as declared
  std::uint32_t without_watcher(std::uint32_t seen) const noexcept {
    return seen > watched / 2 ? seen - (watched - beyond()) : seen;
  }
  std::uint32_t inside_of(std::uint32_t seen) const noexcept { return without_watcher(seen) % limit; }
  // Some are inside, none searches; and, where one watches, more are inside than beyond(), and it is not `hot`.
  static bool calls_for_one(std::uint32_t seen, bool hot) noexcept {
    return (hot ? seen : seen & ~watched) - 1 < limit / 2;
  }

  bool remove(idler& one) noexcept {
    if (!one.inside.load(std::memory_order_relaxed)) return false;  // under the lock
    if (first_ == &one) {
      first_ = one.below;
    } else {
      idler* at = first_;
      while (at->below != &one) at = at->below;
      at->below = one.below;
    }
    wakes(one);
    return true;
  }
  idler* take_first() noexcept {
    idler* const one = first_;
    first_ = one->below;
    wakes(*one);
    return one;
  }
  void wakes(idler& one) noexcept {
    one.inside.store(false, std::memory_order_relaxed);  // under the lock
    moves_ = moves_ + 1;
    if (one.watches)
      state_.fetch_sub(watched - beyond() - found, std::memory_order_relaxed);  // as declared
    else
      state_.fetch_add(found, std::memory_order_relaxed);  // as declared
    if (one.watches) one.watches = is_watched_ = false;
  }

  void change(int workers) noexcept {
    const std::lock_guard guard{lock_};
    moves_ = moves_ + 1;
    workers_.store(workers_.load(std::memory_order_relaxed) + static_cast<std::uint32_t>(workers),
                   std::memory_order_relaxed);  // as declared
  }

  const std::uint32_t all_;
  // Written under the lock. Relaxed: without the lock they are hints.
  atomic<std::uint32_t> workers_;
  atomic<std::uint32_t> beyond_;  // so many workers are to stay parked
  // The packed word, as said at the constants. A poster needs one compare: where a worker watches and no more are parked than
  // are to stay so, the word is below the watcher bit and above all other values. Relaxed: what posters and sleepers see of
  // each other is ordered by their pairs of fences, all else by the lock.
  atomic<std::uint32_t> state_{0};
  mutable tiny_lock lock_;
  plain<bool> closed_ = false;
  plain<bool> is_watched_ = false;
  plain<std::uint32_t> moves_ = 0;  // into the set and out of it
  plain<idler*> first_ = nullptr;   // who came last: its caches are the warmest
};

}  // namespace weft::detail
