#include "hook/waiting.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <memory>
#include <new>
#include <system_error>
#include <weft/detail/net/operation.hpp>
#include <weft/hop.hpp>
#include <weft/nothrow.hpp>

#include "base/thread_id.hpp"
#include "hook/file_identity.hpp"
#include "io/io_service.hpp"

namespace weft::detail {

// A watch: a number registered with a service, or a duplicate of it. The number's lock guards it, except for `*at`, which
// synchronizes itself, and for `before` and `behind`, which the lock of the service's list guards. It is in both lists, or in
// neither (`is_closed`).
struct number_watch {
  descriptor* at;
  io_service* by;
  file_identity of;
  int number;
  int duplicate = -1;  // what is registered, if `number` was already
  unsigned users = 0;
  bool is_closed = false;
  std::uintptr_t last_user = 0;                       // the thread of the fiber that was the last to stop using it
  number_watch* next = nullptr;                       // the number's list: one watch for each service
  number_watch *before = nullptr, *behind = nullptr;  // the service's list
};

struct number_entry {
  std::mutex lock;   // guards the lists; taken before the lock of a service's list
  std::mutex calls;  // held over a poll() and the call after it
  number_watch* watches = nullptr;
  close_listener* listeners = nullptr;

  void add(number_watch& one) noexcept {
    one.next = watches;
    watches = &one;
  }
  void take_out(const number_watch& one) noexcept {
    number_watch** at = &watches;
    while (*at != &one) at = &(*at)->next;
    *at = one.next;
  }
};

namespace {

// One entry for each number, in blocks. A block is made when one of its numbers is first used, and is never freed.
constexpr std::size_t block_size = 1024, most_blocks = 1024;
using block = std::array<number_entry, block_size>;
//   edge made  the block's construction  ->  the thread that finds it. No model: a pointer that is set once.
constinit std::array<std::atomic<block*>, most_blocks> blocks{};

// The locks of lock_calls_on() for sockets, by their inodes.
constinit std::array<std::mutex, 128> calls_on_sockets{};

// The entry of a number. Null: the number is out of range, or there is no block and, with `makes`, no memory for one.
number_entry* entry_of(int number, bool makes) noexcept {
  if (number < 0 || static_cast<std::size_t>(number) >= block_size * most_blocks) return nullptr;
  const std::size_t index = static_cast<std::size_t>(number);
  std::atomic<block*>& at = blocks[index / block_size];
  block* found = at.load(std::memory_order_acquire);  // <- made (no model: as declared)
  if (found == nullptr) {
    if (!makes) return nullptr;
    std::unique_ptr<block> mine{new (std::nothrow) block};
    if (!mine) return nullptr;
    if (at.compare_exchange_strong(found, mine.get(), std::memory_order_release,  // -> made (no model: as declared)
                                   std::memory_order_acquire))                    // <- made (no model: as declared)
      found = mine.release();
  }
  return &(*found)[index % block_size];
}

// The process whose waits are in `blocks`. A child of vfork() shares this memory, but its own id differs. Relaxed: it is only
// set while there is one thread.
constinit std::atomic<pid_t> process{0};
bool is_process_of_waits() noexcept { return process.load(std::memory_order_relaxed) == ::getpid(); }  // see `process`

// A child of fork() has none of the parent's other threads, so a lock that one of them holds is never released: the child
// starts with empty tables, and its hooks are off.
void begin_in_child() noexcept {
  process.store(::getpid(), std::memory_order_relaxed);  // a forked child has one thread
  for (std::atomic<block*>& one : blocks)
    one.store(nullptr, std::memory_order_relaxed);  // a forked child has one thread
  for (std::mutex& one : calls_on_sockets) std::construct_at(&one);
  for (hook_state* one = hooks_here(); one != nullptr; one = one->outer) one->is_over = true;
}
// Before other constructors of the program, in which fibers may wait.
[[gnu::constructor(101)]] void register_fork_handler() noexcept {
  process.store(::getpid(), std::memory_order_relaxed);  // the program is being loaded, and has one thread
  ::pthread_atfork(nullptr, nullptr, begin_in_child);
}

}  // namespace

// ---- the watches of a service -----------------------------------------------------------------------------------------------

namespace {

void add_to_service(number_watch& one) noexcept {
  io_service::watches_of_hooks& all = one.by->of_hooks;
  const std::lock_guard guard{all.lock};
  one.behind = all.first;
  if (all.first != nullptr) all.first->before = &one;
  all.first = &one;
}
// The service may be destroyed right after this call, if no fiber waits by it any more.
void remove_from_service(const number_watch& one) noexcept {
  io_service::watches_of_hooks& all = one.by->of_hooks;
  const std::lock_guard guard{all.lock};
  (one.before != nullptr ? one.before->behind : all.first) = one.behind;
  if (one.behind != nullptr) one.behind->before = one.before;
}

// Unregisters the number from the service. `is_there`: the number still names the watched file. If it does not, it may name
// another file that is registered for another user, and that registration must stay.
void unregister(const number_watch& one, bool is_there) noexcept {
  if (is_there || one.duplicate >= 0)
    static_cast<void>(one.at->release());
  else
    one.at->forget();
  if (one.duplicate >= 0) ::close(one.duplicate);
}

// Registers the number, or a duplicate if weft watches this number already.
void register_with(io_service& by, number_watch& one) {
  try {
    one.at = &by.watch(one.number, false);
  } catch (const error& refused) {
    if (refused.code() != std::errc::file_exists) throw;
    one.duplicate = ::fcntl(one.number, F_DUPFD_CLOEXEC, 0);
    if (one.duplicate < 0) throw;
    try {
      one.at = &by.watch(one.duplicate, false);
    } catch (...) {
      ::close(one.duplicate);
      throw;
    }
  }
  one.at->report_once();
}

// Destroys a watch that has no user and was taken out of its number's list. Called under the number's lock. It leaves the
// service's list last: the service's last fiber waits for that list to be empty, and the service may be destroyed after that.
void destroy_unused(number_watch* one, bool is_there) noexcept {
  unregister(*one, is_there);
  one->at->drop();
  remove_from_service(*one);
  delete one;
}

// Watches that end while fibers wait. The destructor wakes these fibers after the number's lock was released, since each of
// them takes it. So this object counts as a user of each watch until then, and holds a visit on its service.
class ended_watches {
 public:
  explicit ended_watches(number_entry& of) noexcept : of_{of} {}
  ended_watches(const ended_watches&) = delete;
  ~ended_watches() {
    while (first_ != nullptr) {
      number_watch* const one = std::exchange(first_, first_->next);
      io_service* const by = one->by;
      one->at->has_more(direction::in);
      one->at->has_more(direction::out);
      {
        const std::lock_guard guard{of_.lock};
        leave(one);
      }
      by->end_visit();
    }
  }

  /// Ends the watches of other files than `now`; with `all`, every watch. Called under the number's lock.
  void take(const file_identity& now, bool all) noexcept {
    number_watch* each = std::exchange(of_.watches, nullptr);
    while (each != nullptr) {
      number_watch* const one = std::exchange(each, each->next);
      const bool is_there = one->of == now;
      if (is_there && !all) {
        of_.add(*one);
      } else if (one->users == 0) {
        destroy_unused(one, is_there);
      } else {
        ++one->users;
        one->is_closed = true;
        one->by->begin_visit();
        unregister(*one, is_there);
        remove_from_service(*one);
        one->next = std::exchange(first_, one);
      }
    }
  }
  /// Ends a use of a watch that take() has taken. Called under the number's lock.
  static void leave(number_watch* one) noexcept {
    if (--one->users != 0) return;
    one->at->drop();
    delete one;
  }

 private:
  number_entry& of_;
  number_watch* first_ = nullptr;
};

number_watch* find(const number_entry& of, const io_service& by) noexcept {
  number_watch* one = of.watches;
  while (one != nullptr && one->by != &by) one = one->next;
  return one;
}
bool has_ended(const number_watch& one) noexcept {
  return one.at->has_ended(direction::in) || one.at->has_ended(direction::out);
}

// Allows watches of this service to outlive a wait, until the last fiber that has called this ends its hooks.
void allow_idle_watches(hook_state& its, io_service& by) noexcept {
  if (its.watched_by == &by) return;
  if (its.watched_by != nullptr) end_idle_watches(its);
  its.watched_by = &by;
  const std::lock_guard guard{by.of_hooks.lock};
  ++by.of_hooks.fibers;
}

}  // namespace

// Once the hooks of the last fiber that waited by a service end, nobody uses the service's watches. Each is ended under its
// number's lock, which must be taken before the list's lock. So the list's lock is released in between, and another thread that
// closes the number may end the watch first.
void end_idle_watches(hook_state& its) noexcept {
  io_service* const by = std::exchange(its.watched_by, nullptr);
  if (by == nullptr) return;
  std::unique_lock all{by->of_hooks.lock};
  --by->of_hooks.fibers;
  while (by->of_hooks.fibers == 0 && by->of_hooks.first != nullptr) {
    const int number = by->of_hooks.first->number;
    all.unlock();
    {
      number_entry& entry = *entry_of(number, true);
      const std::lock_guard guard{entry.lock};
      number_watch* const one = find(entry, *by);
      if (one != nullptr && one->users == 0) {
        entry.take_out(*one);
        destroy_unused(one, one->of == file_identity{number});
      }
    }
    all.lock();
  }
}

// ---- waits ------------------------------------------------------------------------------------------------------------------

watch_of_number::watch_of_number(hook_state& whose, int number) noexcept {
  entry_ = is_process_of_waits() ? entry_of(number, true) : nullptr;
  if (entry_ == nullptr) return;
  ended_watches others{*entry_};
  try {
    io_service& by = io_service_here();
    allow_idle_watches(whose, by);
    const std::lock_guard guard{entry_->lock};
    const file_identity now{number};  // read under the lock: a close() may have come before it
    others.take(now, false);
    watch_ = find(*entry_, by);
    // A socket whose end was reported may have been connected again. A new watch reports its present state.
    if (watch_ != nullptr && watch_->users == 0 && detail::has_ended(*watch_)) {
      entry_->take_out(*watch_);
      destroy_unused(std::exchange(watch_, nullptr), true);
    }
    if (watch_ == nullptr) {
      auto fresh = std::make_unique<number_watch>(number_watch{.at = nullptr, .by = &by, .of = now, .number = number});
      register_with(by, *fresh);
      watch_ = fresh.release();
      entry_->add(*watch_);
      add_to_service(*watch_);
      is_alone_ = true;
    } else {
      is_alone_ = watch_->users == 0 && watch_->last_user == this_thread_id();
    }
    ++watch_->users;
  } catch (const std::bad_alloc&) {
    has_no_memory_ = true;
  } catch (...) {  // the file can't be watched for readiness, or too many files are watched: the call blocks
  }
}

watch_of_number::~watch_of_number() {
  if (watch_ == nullptr) return;
  const std::lock_guard guard{entry_->lock};
  if (watch_->is_closed) {
    ended_watches::leave(watch_);
    return;
  }
  watch_->last_user = this_thread_id();
  if (--watch_->users != 0) return;
  if (watch_->of.is_socket && watch_->duplicate < 0 && !watch_->by->keeps_open(*watch_->at)) {
    watch_->at->report_once();
    return;
  }
  entry_->take_out(*watch_);
  destroy_unused(watch_, watch_->of == file_identity{watch_->number});
}

bool watch_of_number::is_of_socket() const noexcept { return watch_->of.is_socket; }
void watch_of_number::leaves_more(direction which) noexcept {
  const std::lock_guard guard{entry_->lock};
  if (watch_->users > 1) watch_->at->has_more(which);
}
void watch_of_number::expect_change(direction which) noexcept { watch_->at->expect_change(which); }
bool watch_of_number::has_changed(direction which) const noexcept { return watch_->at->may_try(which); }
bool watch_of_number::has_ended(direction which) const noexcept { return watch_->at->has_ended(which); }
void watch_of_number::report_changes() noexcept { watch_->at->report_changes(); }

waited wait_for_change(descriptor& at, direction which, clock::time_point until) noexcept {
  if (until == without_end) return await_unless_stopped(at.until_ready(which)) ? waited::ready : waited::stopped;
  const clock::duration left = until - current_clock().now();
  if (left <= clock::duration::zero()) return waited::timed_out;
  try {
    return ended_by(await_unless_stopped(as_result(timeout(left, at.until_ready(which)))));
  } catch (const std::bad_alloc&) {  // the timer's task could not be allocated
    return waited::no_memory;
  }
}

waited watch_of_number::wait(direction which, clock::time_point until) noexcept {
  const waited how = wait_for_change(*watch_->at, which, until);
  const std::lock_guard guard{entry_->lock};
  return watch_->is_closed ? waited::closed : how;
}

void close_listener::begin(int number, descriptor& woken) noexcept {
  entry_ = entry_of(number, true);
  if (entry_ == nullptr) return;
  woken_ = &woken;
  const std::lock_guard guard{entry_->lock};
  next_ = std::exchange(entry_->listeners, this);
}
close_listener::~close_listener() {
  if (entry_ == nullptr) return;
  const std::lock_guard guard{entry_->lock};
  close_listener** at = &entry_->listeners;
  while (*at != this) at = &(*at)->next_;
  *at = next_;
}
bool close_listener::is_closed() const noexcept {
  if (entry_ == nullptr) return false;
  const std::lock_guard guard{entry_->lock};
  return is_closed_;
}

void end_waits_for(int number) noexcept {
  number_entry* const entry = is_process_of_waits() ? entry_of(number, false) : nullptr;
  if (entry == nullptr) return;
  ended_watches all{*entry};
  const std::lock_guard guard{entry->lock};
  if (entry->watches != nullptr) all.take(file_identity{number}, true);
  for (close_listener* each = entry->listeners; each != nullptr; each = each->next_) {
    each->is_closed_ = true;
    each->woken_->has_more(direction::in);
  }
}

void end_unused_watches_of(int number) noexcept {
  number_entry* const entry = is_process_of_waits() ? entry_of(number, false) : nullptr;
  if (entry == nullptr) return;
  const std::lock_guard guard{entry->lock};
  number_watch* each = entry->watches;
  while (each != nullptr) {
    number_watch* const one = std::exchange(each, each->next);
    if (one->users != 0) continue;
    entry->take_out(*one);
    destroy_unused(one, one->of == file_identity{number});
  }
}

std::unique_lock<std::mutex> lock_calls_on(int number, bool is_socket) noexcept {
  if (is_socket) {
    return std::unique_lock{calls_on_sockets[file_identity{number}.inode % calls_on_sockets.size()]};
  }
  number_entry* const entry = entry_of(number, true);
  return entry != nullptr ? std::unique_lock{entry->calls} : std::unique_lock<std::mutex>{};
}

bool may_suspend() noexcept { return is_process_of_waits(); }
bool yield_if_due() noexcept { return !has_had_its_turn() || !may_suspend() || await_unless_stopped(yield()); }

}  // namespace weft::detail
