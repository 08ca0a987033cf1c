#include <weft/blocking.hpp>

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <mutex>
#include <new>
#include <utility>
#include <weft/error.hpp>

#include "base/futex.hpp"
#include "base/helper_signals.hpp"
#include "base/unloading.hpp"
#include "core/worker.hpp"
#include "pool/processor_set.hpp"
#include "sched/parker.hpp"

namespace weft {
namespace detail {

// The queue of calls, the threads, and the list of idle threads, all under one lock, which is not held during a call. One lock
// is enough, since a call takes microseconds at least.
//
// Idle threads are kept in a list, the newest first, so that surplus threads stay idle until their time is over, and end.
// Whoever wakes a thread removes it from the list under the lock: a thread that wakes and is not in the list knows that it was
// called.
//
// A thread that ends joins the one that ended before it, so all ended threads together hold at most one stack, and whoever
// waits for all joins the last one. Threads that run a call when the process ends are not joined.
//
// A thread whose call was abandoned no longer counts as serving: if calls wait, another thread takes its place. When the
// abandoned call ends, its thread serves again, or ends if there are enough. So there are at most `threads` + `max_abandoned`
// threads, and the end of the pool waits for all of them, since they use it.
class blocking_core {
 public:
  explicit blocking_core(const blocking_options& options) noexcept : options_{options}, process_{::getpid()} {}

  bool suspend(root& self, blocking_call& one);
  bool post(unawaited_call& one) noexcept;
  on_stop leave(waiter& one) noexcept;
  blocking_stats stats() const noexcept {
    const std::lock_guard guard{lock_};
    return {threads_, busy_, waiting_, abandoned_};
  }
  bool is_of_this_process() const noexcept { return process_ == ::getpid(); }
  void expect_this_process() const noexcept {
    WEFT_EXPECTS(is_of_this_process(), "a blocking_pool was used in a process that was forked after it was made");
  }

  /// Ends all threads; returns when those that run no call have ended, or with `all`, when all have.
  void end(bool all) noexcept;

 private:
  struct resting {
    futex_parker bed;
    resting* below = nullptr;
    bool inside = true;
  };

  bool start_thread() noexcept;
  bool find_thread(std::unique_lock<std::mutex>& guard) noexcept;
  unawaited_call* take_unawaited() noexcept;
  void run() noexcept;
  bool rest(std::unique_lock<std::mutex>& guard) noexcept;
  void call_one() noexcept;
  void refuse_all(std::unique_lock<std::mutex>& guard) noexcept;
  bool run_abandonable(abandonable_call& own, blocking_call& waits, std::unique_lock<std::mutex>& guard) noexcept;
  unsigned serving() const noexcept { return threads_ - abandoned_; }
  bool is_enough() const noexcept { return serving() >= options_.threads || waiting_ < resting_ + called_ + starting_; }
  void has_changed() noexcept {
    changes_.fetch_add(1, std::memory_order_relaxed);  // a word of the kernel's: all else is under the lock
    futex_wake(&changes_);
  }

  const blocking_options options_;
  const pid_t process_;
  mutable std::mutex lock_;  // of all that follows
  waiter_line line_;
  unawaited_call* unawaited_ = nullptr;  // the newest first: they are few, and in no order
  std::size_t waiting_ = 0;              // in the line, and of these
  unsigned threads_ = 0;
  unsigned starting_ = 0;  // of these, that have not looked into the line yet
  unsigned resting_ = 0;
  unsigned called_ = 0;  // that were woken from their rest, and have not looked into the line yet
  unsigned busy_ = 0;
  unsigned abandoned_ = 0;  // of these, that are at a call which nobody waits for
  resting* rests_ = nullptr;
  bool ending_ = false;
  bool left_alone_ = false;  // by end(): it was not to wait for calls
  pthread_t ended_{};        // the thread that ended last; 0, which the C libraries give to none: none has
  std::atomic<std::uint32_t> changes_{0};  // for end()
};

void blocking_call::throw_no_thread() {
  throw error{std::error_code{EAGAIN, std::generic_category()}, "start a thread for a call that blocks"};
}

bool blocking_call::suspend(root& self) { return of_->suspend(self, *this); }

on_stop blocking_call::leave(waiter& self) noexcept { return static_cast<blocking_call&>(self).of_->leave(self); }

bool blocking_core::suspend(root& self, blocking_call& one) {
  if (self.sleeper::stop_requested()) return (end_stopped(self), true);
  expect_this_process();
  std::unique_lock guard{lock_};
  if (!find_thread(guard)) blocking_call::throw_no_thread();
  if (self.park(one)) {
    line_.push(one);
    ++waiting_;
    call_one();
    return true;  // the task may run elsewhere, or be gone, when the lock is free
  }
  guard.unlock();
  return (end_stopped(self), true);
}

bool blocking_core::post(unawaited_call& one) noexcept {
  std::unique_lock guard{lock_};
  if (ending_ || !find_thread(guard)) return false;
  one.next = std::exchange(unawaited_, &one);
  ++waiting_;
  call_one();
  return true;
}

// Starts a thread if the serving ones are not enough for one more call. False: no thread serves, and the system gives none.
bool blocking_core::find_thread(std::unique_lock<std::mutex>& guard) noexcept {
  for (bool refused = false;;) {
    if (serving() != 0 && (refused || is_enough())) return true;
    ++threads_, ++starting_;
    guard.unlock();
    refused = !start_thread();
    guard.lock();
    if (!refused) continue;
    --threads_, --starting_;
    if (serving() != 0) continue;
    refuse_all(guard);
    if (serving() == 0) return false;
  }
}

unawaited_call* blocking_core::take_unawaited() noexcept {
  unawaited_call* const one = unawaited_;
  if (one == nullptr) return nullptr;
  unawaited_ = one->next;
  --waiting_;
  return one;
}

// Called by the last of those that tried to start a thread and got none: calls that were queued meanwhile rely on it. It fails
// those, and runs calls that nobody awaits here.
void blocking_core::refuse_all(std::unique_lock<std::mutex>& guard) noexcept {
  while (serving() == 0) {
    if (unawaited_call* const one = take_unawaited(); one != nullptr) {
      guard.unlock();
      one->run();
      guard.lock();
      continue;
    }
    waiter* const next = line_.pop();
    if (next == nullptr) return;
    --waiting_;
    guard.unlock();
    auto& one = static_cast<blocking_call&>(*next);
    one.refuse();
    one.finish();  // it may be gone
    guard.lock();
  }
}

on_stop blocking_core::leave(waiter& one) noexcept {
  std::unique_lock guard{lock_};
  if (line_.remove(one)) {
    --waiting_;
    return on_stop::left;
  }
  auto& call = static_cast<blocking_call&>(one);
  if (call.abandonable() == nullptr || abandoned_ >= options_.max_abandoned ||
      !call.abandonable()->transition_to_abandoned())
    return on_stop::forwarded;  // it runs, or has ended
  call.abandon();
  ++abandoned_;
  if (waiting_ == 0 || is_enough()) return on_stop::left;
  // Where the system gives no thread in its place, those in line have to wait until this call ends, or somebody else calls.
  ++threads_, ++starting_;
  guard.unlock();
  if (start_thread()) return on_stop::left;
  guard.lock();
  --threads_, --starting_;
  if (ending_) has_changed();
  return on_stop::left;
}

// Wakes the thread that became idle last. The lock is held, so the thread's parker still exists.
void blocking_core::call_one() noexcept {
  resting* const one = rests_;
  if (one == nullptr) return;
  rests_ = one->below;
  one->inside = false;
  --resting_, ++called_;
  one->bed.wake();
}

bool blocking_core::start_thread() noexcept {
  const helper_signals as_helper;
  const as_unpinned on_all;
  pthread_t thread;
  return ::pthread_create(
             &thread, nullptr,
             [](void* argument) -> void* {
               static_cast<blocking_core*>(argument)->run();
               return nullptr;
             },
             this) == 0;
}

void blocking_core::run() noexcept {
  char name[16]{};
  if (options_.name != nullptr)
    for (std::size_t i = 0; i != sizeof name - 1 && options_.name[i] != '\0'; ++i) name[i] = options_.name[i];
  ::pthread_setname_np(::pthread_self(), name);
  worker& here = this_worker();
  here.pools.only_for = this;  // also where a task goes on that has no executor of its own
  std::unique_lock guard{lock_};
  --starting_;
  for (;;) {
    if (unawaited_call* const first = take_unawaited(); first != nullptr) {
      ++busy_;
      if (ending_) has_changed();
      guard.unlock();
      first->run();
      guard.lock();
      --busy_;
    } else if (waiter* const next = line_.pop(); next != nullptr) {
      --waiting_;
      ++busy_;
      if (ending_) has_changed();
      auto& one = static_cast<blocking_call&>(*next);
      if (abandonable_call* const own = one.abandonable(); own != nullptr) {
        if (!run_abandonable(*own, one, guard)) break;
        continue;
      }
      guard.unlock();
      one.run();
      expect_this_process();  // where the call has forked, the child goes on with what it was at, and no further
      one.finish();           // it may be gone
      guard.lock();
      --busy_;
    } else if (ending_ || !rest(guard)) {
      break;
    }
  }
  here.pools.only_for = nullptr;
  --threads_;
  if (left_alone_) {
    ::pthread_detach(::pthread_self());
    return;
  }
  const pthread_t ended_before = std::exchange(ended_, ::pthread_self());
  has_changed();
  guard.unlock();
  // This may be gone, if all threads have ended: whoever waits for that joins this one.
  if (ended_before != pthread_t{}) ::pthread_join(ended_before, nullptr);
}

// False: this thread is to end, since another one has taken its place.
bool blocking_core::run_abandonable(abandonable_call& own, blocking_call& waits,
                                    std::unique_lock<std::mutex>& guard) noexcept {
  own.transition_to_running();
  guard.unlock();
  own.run();
  expect_this_process();
  guard.lock();
  const bool is_awaited = own.transition_to_ended();
  guard.unlock();
  if (is_awaited)
    waits.finish();  // it may be gone, and the call with it
  else
    own.drop();  // with what it gives, which may take a while
  guard.lock();
  --busy_;
  if (is_awaited) return true;
  --abandoned_;
  return serving() <= options_.threads;
}

// False: this thread was idle for so long that it is to end.
bool blocking_core::rest(std::unique_lock<std::mutex>& guard) noexcept {
  resting mine;
  mine.below = rests_;
  rests_ = &mine;
  ++resting_;
  const bool for_ever = options_.idle > std::chrono::hours{24 * 365};
  const auto idle = std::max<std::chrono::steady_clock::duration>(options_.idle, options_.idle.zero());
  const auto until = for_ever ? parker::time_point::max() : std::chrono::steady_clock::now() + idle;
  bool late;
  do {
    mine.bed.prepare();  // under the lock, as each wake-up
    guard.unlock();
    mine.bed.commit(until);
    late = std::chrono::steady_clock::now() >= until;
    guard.lock();
  } while (mine.inside && !late);
  if (!mine.inside) {
    --called_;
    return true;
  }
  resting** at = &rests_;
  while (*at != &mine) at = &(*at)->below;
  *at = mine.below;
  --resting_;
  return serving() <= options_.keep;
}

void blocking_core::end(bool all) noexcept {
  std::unique_lock guard{lock_};
  ending_ = true;
  while (rests_ != nullptr) call_one();
  while (threads_ != (all ? 0 : busy_)) {
    const std::uint32_t seen = changes_.load(std::memory_order_relaxed);  // under the lock
    guard.unlock();
    futex_wait(&changes_, seen);
    guard.lock();
  }
  const pthread_t last = std::exchange(ended_, pthread_t{});
  left_alone_ = !all;
  guard.unlock();
  if (last != pthread_t{}) ::pthread_join(last, nullptr);
}

namespace {
// The process's own, if it is there.
//
//   edge made  the core  ->  who calls
constinit std::atomic<blocking_core*> process_core{nullptr};
}  // namespace

// Destroyed only where its library is unloaded: then its code and that of the calls goes, so all threads are waited for. At
// the end of the process a call may go on for ever, and tasks of other threads may call. A child that was forked makes
// another, and so does a destructor of a static that calls after this was destroyed.
blocking_core& process_blocking_core() {
  static constinit std::mutex making;
  blocking_core* now =
      process_core.load(std::memory_order_acquire);  // <- made (no model: relacy has no words of the whole program)
  if (now != nullptr && now->is_of_this_process()) [[likely]]
    return *now;
  const std::lock_guard guard{making};
  now = process_core.load(std::memory_order_relaxed);  // under the lock
  if (now != nullptr && now->is_of_this_process()) return *now;
  if (now == nullptr) {
    static_cast<void>(at_end([] {
      blocking_core* const last = process_core.load(std::memory_order_relaxed);  // nobody makes another meanwhile
      if (!last->is_of_this_process()) return;
      last->end(is_unloading());
      if (!is_unloading()) return;
      process_core.store(nullptr, std::memory_order_relaxed);  // a destructor of a static that calls is on this thread
      delete last;
    }));
  }
  now = new blocking_core{{}};
  process_core.store(now, std::memory_order_release);  // -> made (no model: as above)
  return *now;
}

bool run_unawaited(unawaited_call& one) noexcept try {
  return process_blocking_core().post(one);
} catch (const std::bad_alloc&) {
  return false;
}

}  // namespace detail

blocking_stats process_blocking_stats() noexcept {
  const detail::blocking_core* const now =
      detail::process_core.load(std::memory_order_acquire);  // <- made (no model: as above)
  return now != nullptr && now->is_of_this_process() ? now->stats() : blocking_stats{};
}

blocking_pool::blocking_pool(blocking_options options) : core_{new detail::blocking_core{options}} {
  WEFT_EXPECTS(options.threads != 0, "a blocking_pool without threads was asked for: nothing would ever run there");
}

blocking_pool::~blocking_pool() {
  if (!core_->is_of_this_process()) return;  // its threads stayed behind
  WEFT_EXPECTS(detail::this_worker().pools.only_for != core_,
               "a blocking_pool was destroyed on one of its own threads: it would wait for itself");
  core_->end(true);
  delete core_;
}

blocking_stats blocking_pool::stats() const noexcept { return core_->stats(); }

}  // namespace weft
