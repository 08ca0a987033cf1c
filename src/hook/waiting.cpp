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

#include "io/io_service.hpp"

namespace weft::detail {

// What a number is of. Events, timers and epoll sets look all the same.
struct watch_of_number::file {
  dev_t device = 0;
  ino_t inode = 0;
  explicit file(int number) noexcept {
    struct stat about;
    if (::fstat(number, &about) != 0) return;  // nor can it be watched
    device = about.st_dev;
    inode = about.st_ino;
  }
  bool operator==(const file&) const = default;
};

// Under its number's lock, but for what `at` does itself.
struct watch_of_number::shared {
  descriptor* at;
  io_service* by;
  file of;
  unsigned users = 1;
  bool is_closed = false;  // and in no list
  shared* next = nullptr;
};

namespace {

struct number_entry {
  std::mutex lock;          // of the list, and of what follows a poll()
  void* watches = nullptr;  // watch_of_number::shared, one for each service
};

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

watch_of_number::watch_of_number(int number) noexcept : number_{number} {
  number_entry* const entry = is_process_of_waits() ? entry_of(number, true) : nullptr;
  if (entry == nullptr) return;
  try {
    io_service& by = io_service_here();
    const file of{number};
    end_those(number, &of);
    const std::lock_guard guard{entry->lock};
    for (auto* one = static_cast<shared*>(entry->watches); one != nullptr; one = one->next)
      if (one->by == &by && one->of == of) {
        ++one->users;
        shared_ = one;
        return;
      }
    auto fresh = std::make_unique<shared>(shared{.at = nullptr, .by = &by, .of = of});
    fresh->at = &by.watch(number, false);
    fresh->next = static_cast<shared*>(entry->watches);
    shared_ = fresh.release();
    entry->watches = shared_;
    is_new_ = true;
  } catch (const std::bad_alloc&) {
    has_no_memory_ = true;
  } catch (...) {  // a file of which nothing reports readiness, or too many are watched: the call blocks
  }
}

watch_of_number::~watch_of_number() {
  if (shared_ == nullptr) return;
  number_entry& entry = *entry_of(number_, true);
  const std::lock_guard guard{entry.lock};
  if (shared_->users == 1 && !shared_->is_closed) {
    shared* before = nullptr;
    for (auto* one = static_cast<shared*>(entry.watches); one != shared_; one = one->next) before = one;
    if (before != nullptr)
      before->next = shared_->next;
    else
      entry.watches = shared_->next;
    static_cast<void>(shared_->at->release());
  }
  leave(shared_);
}

// Under its number's lock.
void watch_of_number::leave(shared* one) noexcept {
  if (--one->users != 0) return;
  one->at->drop();
  delete one;
}

void watch_of_number::expect_change(direction which) noexcept { shared_->at->expect_change(which); }
bool watch_of_number::has_ended(direction which) const noexcept { return shared_->at->has_ended(which); }

waited watch_of_number::wait(direction which, clock::time_point until) noexcept {
  waited how = waited::ready;
  if (until == without_end) {
    if (!await_unless_stopped(shared_->at->until_ready(which))) how = waited::stopped;
  } else {
    const clock::duration left = until - current_clock().now();
    if (left <= clock::duration::zero()) return waited::timed_out;
    try {
      how = ended_by(await_unless_stopped(as_result(timeout(left, shared_->at->until_ready(which)))));
    } catch (const std::bad_alloc&) {  // for the timer's task
      how = waited::no_memory;
    }
  }
  const std::lock_guard guard{entry_of(number_, true)->lock};
  return shared_->is_closed ? waited::closed : how;
}

// Those that are not of that file; null: all. They are woken outside of the lock, which each of them takes; so each watch is
// used by this meanwhile.
void watch_of_number::end_those(int number, const file* but_of) noexcept {
  number_entry* const entry = entry_of(number, false);
  if (entry == nullptr) return;
  shared *first = nullptr, *stays = nullptr;
  {
    const std::lock_guard guard{entry->lock};
    auto* all = static_cast<shared*>(entry->watches);
    while (all != nullptr) {
      shared* const one = std::exchange(all, all->next);
      const bool ends = but_of == nullptr || one->of != *but_of;
      one->next = std::exchange(ends ? first : stays, one);
      if (!ends) continue;
      ++one->users;
      one->is_closed = true;
      static_cast<void>(one->at->release());
    }
    entry->watches = stays;
  }
  while (first != nullptr) {
    shared* const one = std::exchange(first, first->next);
    one->at->has_more(direction::in);
    one->at->has_more(direction::out);
    const std::lock_guard guard{entry->lock};
    leave(one);
  }
}

void end_waits_for(int number) noexcept {
  if (is_process_of_waits()) watch_of_number::end_those(number, nullptr);
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
  fiber_.set_hooks(state_.outer);
  fiber_.may_leave();
}

}  // namespace weft
