#include "hook/waiting.hpp"

#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <memory>
#include <new>
#include <weft/detail/net/operation.hpp>
#include <weft/hop.hpp>
#include <weft/nothrow.hpp>

#include "base/thread_id.hpp"
#include "io/io_service.hpp"

namespace weft::detail {

// What a number is of. Events, timers and epoll sets look all the same; a socket looks like no other one.
struct file_identity {
  dev_t device = 0;
  ino_t inode = 0;
  bool is_socket = false;
  explicit file_identity(int number) noexcept {
    struct stat about;
    if (::fstat(number, &about) != 0) return;  // nor can it be watched
    device = about.st_dev;
    inode = about.st_ino;
    is_socket = S_ISSOCK(about.st_mode);
  }
  bool operator==(const file_identity&) const = default;
};

// A number that a service watches. Under the number's lock, but for what `at` does itself and for its place in the service's
// list, which is under the list's lock. It is in both lists, or in neither (`is_closed`).
struct number_watch {
  descriptor* at;
  io_service* by;
  file_identity of;
  int number;
  unsigned users = 0;
  bool is_closed = false;
  std::uintptr_t last_user = 0;                       // the thread of who was the last to leave it
  number_watch* next = nullptr;                       // of the same number, one for each service
  number_watch *before = nullptr, *behind = nullptr;  // of the same service
};

struct number_entry {
  std::mutex lock;  // of the list, and of what follows a poll(); before the lock of a service's list
  number_watch* watches = nullptr;

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

// By number, in blocks that are made where a number of theirs is first waited for, and never go.
constexpr std::size_t block_size = 1024, most_blocks = 1024;
using block = std::array<number_entry, block_size>;
//   edge made  the block's beginning  ->  who finds it. No model: a pointer that is set once.
constinit std::array<std::atomic<block*>, most_blocks> blocks{};

// Null: there is none, or no memory for it.
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

// Whose waits these are. A child of vfork() is another process, and sees this as its parent does. Relaxed: it is set where
// there is one thread.
constinit std::atomic<pid_t> process{0};
bool is_process_of_waits() noexcept { return process.load(std::memory_order_relaxed) == ::getpid(); }  // as declared

// A child has none of those who wait, and a lock may be held by one of them: it begins anew.
void begin_in_child() noexcept {
  process.store(::getpid(), std::memory_order_relaxed);                                   // it has one thread
  for (std::atomic<block*>& one : blocks) one.store(nullptr, std::memory_order_relaxed);  // it has one thread
  for (hook_state* one = hooks_here(); one != nullptr; one = one->outer) one->is_over = true;
}
[[gnu::constructor]] void look_at_forks() noexcept {
  process.store(::getpid(), std::memory_order_relaxed);  // there is one thread
  ::pthread_atfork(nullptr, nullptr, begin_in_child);
}

}  // namespace

// ---- the watches of a service -------------------------------------------------------------------------------------------------

namespace {

void enlist(number_watch& one) noexcept {
  io_service::watches_of_hooks& all = one.by->of_hooks;
  const std::lock_guard guard{all.lock};
  one.behind = all.first;
  if (all.first != nullptr) all.first->before = &one;
  all.first = &one;
}
// Where nobody waits by the service any more, it may be gone after that.
void unlist(const number_watch& one) noexcept {
  io_service::watches_of_hooks& all = one.by->of_hooks;
  const std::lock_guard guard{all.lock};
  (one.before != nullptr ? one.before->behind : all.first) = one.behind;
  if (one.behind != nullptr) one.behind->before = one.before;
}

// The service watches its number no more. `is_there`: the number is still of that file; another one's may be watched, too, for
// somebody else.
void let_go(const number_watch& one, bool is_there) noexcept {
  if (is_there)
    static_cast<void>(one.at->release());
  else
    one.at->forget();
}

// Of one that nobody uses and that is out of its number's list, under the number's lock. Out of its service's list it comes at
// last: until then the fiber that is the service's last one does not end.
void end_unused(number_watch* one, bool is_there) noexcept {
  let_go(*one, is_there);
  one->at->drop();
  unlist(*one);
  delete one;
}

// Those that end while somebody waits. They are woken outside of the number's lock, which each of them takes. So each watch is
// used by this meanwhile, and its service visited.
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

  /// Under the number's lock: those that are not of `now`, or all.
  void take(const file_identity& now, bool all) noexcept {
    number_watch* each = std::exchange(of_.watches, nullptr);
    while (each != nullptr) {
      number_watch* const one = std::exchange(each, each->next);
      const bool is_there = one->of == now;
      if (is_there && !all) {
        of_.add(*one);
      } else if (one->users == 0) {
        end_unused(one, is_there);
      } else {
        ++one->users;
        one->is_closed = true;
        one->by->begin_visit();
        let_go(*one, is_there);
        unlist(*one);
        one->next = std::exchange(first_, one);
      }
    }
  }
  /// Under the number's lock, of one that was taken.
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

// From now on watches of that service may stay: until the last fiber ends that has said so.
void stay(hook_state& its, io_service& by) noexcept {
  if (its.waits_by == &by) return;
  if (its.waits_by != nullptr) end_stay(its);
  its.waits_by = &by;
  const std::lock_guard guard{by.of_hooks.lock};
  ++by.of_hooks.fibers;
}

}  // namespace

// Nobody uses a watch of the service where no fiber stays. Each is ended under its number's lock, which comes before the list's;
// so another thread, that closes the number, may have ended it by then.
void end_stay(hook_state& its) noexcept {
  io_service* const by = std::exchange(its.waits_by, nullptr);
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
        end_unused(one, one->of == file_identity{number});
      }
    }
    all.lock();
  }
}

// ---- waits --------------------------------------------------------------------------------------------------------------------

watch_of_number::watch_of_number(hook_state& whose, int number) noexcept {
  entry_ = is_process_of_waits() ? entry_of(number, true) : nullptr;
  if (entry_ == nullptr) return;
  ended_watches others{*entry_};
  try {
    io_service& by = io_service_here();
    stay(whose, by);
    const std::lock_guard guard{entry_->lock};
    const file_identity now{number};  // not before, or it is another one by now
    others.take(now, false);
    watch_ = find(*entry_, by);
    // What has ended may begin anew: a socket that is connected once more. A new watch is told how it is now.
    if (watch_ != nullptr && watch_->users == 0 && detail::has_ended(*watch_)) {
      entry_->take_out(*watch_);
      end_unused(std::exchange(watch_, nullptr), true);
    }
    if (watch_ == nullptr) {
      auto fresh = std::make_unique<number_watch>(number_watch{.at = nullptr, .by = &by, .of = now, .number = number});
      fresh->at = &by.watch(number, false);
      fresh->at->report_once();
      watch_ = fresh.release();
      entry_->add(*watch_);
      enlist(*watch_);
      is_alone_ = true;
    } else {
      is_alone_ = watch_->users == 0 && watch_->last_user == this_thread_id();
    }
    ++watch_->users;
  } catch (const std::bad_alloc&) {
    has_no_memory_ = true;
  } catch (...) {  // a file of which nothing reports readiness, or too many are watched: the call blocks
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
  if (--watch_->users != 0 || (watch_->of.is_socket && !watch_->by->keeps_open(*watch_->at))) return;
  entry_->take_out(*watch_);
  end_unused(watch_, true);
}

void watch_of_number::expect_change(direction which) noexcept { watch_->at->expect_change(which); }
bool watch_of_number::has_changed(direction which) const noexcept { return watch_->at->may_try(which); }
bool watch_of_number::has_ended(direction which) const noexcept { return watch_->at->has_ended(which); }

waited watch_of_number::wait(direction which, clock::time_point until) noexcept {
  waited how = waited::ready;
  if (until == without_end) {
    if (!await_unless_stopped(watch_->at->until_ready(which))) how = waited::stopped;
  } else {
    const clock::duration left = until - current_clock().now();
    if (left <= clock::duration::zero()) return waited::timed_out;
    try {
      how = ended_by(await_unless_stopped(as_result(timeout(left, watch_->at->until_ready(which)))));
    } catch (const std::bad_alloc&) {  // for the timer's task
      how = waited::no_memory;
    }
  }
  const std::lock_guard guard{entry_->lock};
  return watch_->is_closed ? waited::closed : how;
}

void end_waits_for(int number) noexcept {
  number_entry* const entry = is_process_of_waits() ? entry_of(number, false) : nullptr;
  if (entry == nullptr) return;
  ended_watches all{*entry};
  const std::lock_guard guard{entry->lock};
  if (entry->watches != nullptr) all.take(file_identity{number}, true);
}

void forget_changes_of(int number) noexcept {
  number_entry* const entry = is_process_of_waits() ? entry_of(number, false) : nullptr;
  if (entry == nullptr) return;
  const std::lock_guard guard{entry->lock};
  number_watch* each = entry->watches;
  while (each != nullptr) {
    number_watch* const one = std::exchange(each, each->next);
    if (one->users != 0) continue;
    entry->take_out(*one);
    end_unused(one, one->of == file_identity{number});
  }
}

std::unique_lock<std::mutex> lock_number(int number) noexcept {
  number_entry* const entry = entry_of(number, true);
  return entry != nullptr ? std::unique_lock{entry->lock} : std::unique_lock<std::mutex>{};
}

bool take_turns() noexcept { return !has_had_its_turn() || !is_process_of_waits() || await_unless_stopped(yield()); }

}  // namespace weft::detail

namespace weft {

namespace detail {
// One of each of the sources, which an archive gives only to who needs something of them.
extern const char hooks_sleep, hooks_locks, hooks_streams, hooks_sockets, hooks_poll, hooks_names, hooks_files;
namespace {
[[gnu::used]] const char* const all_sources[] = {&hooks_sleep, &hooks_locks, &hooks_streams, &hooks_sockets,
                                                 &hooks_poll,  &hooks_names, &hooks_files};
}  // namespace
}  // namespace detail

hooks::hooks(const hook_options& options) noexcept : state_{.kinds = options}, fiber_{detail::fiber::running()} {
  const executor* const home = current_env().executor;
  WEFT_EXPECTS(
      home != nullptr && !home->runs_in_parallel(),
      "a fiber whose calls are hooked must stay on one thread, since C code keeps the addresses of thread-locals: "
      "start it on one worker, rt.workers().worker(i) or that of a worker_group, not on a pool");
  fiber_.stay();
  state_.outer = fiber_.hooks();
  if (state_.outer != nullptr) state_.locks = state_.outer->locks;
  fiber_.set_hooks(&state_);
}

hooks::~hooks() {
  if (state_.outer != nullptr) state_.outer->locks = state_.locks;
  fiber_.set_hooks(nullptr);
  if (state_.outer != nullptr && state_.outer->waits_by == nullptr)
    state_.outer->waits_by = state_.waits_by;  // it stays for both
  else if (!state_.is_over)
    detail::end_stay(state_);
  fiber_.set_hooks(state_.outer);
  fiber_.may_leave();
}

}  // namespace weft
