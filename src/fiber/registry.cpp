// An entry is reference counted. Its references are held by the work while it runs, by whoever stops the work at the moment, by
// its alarm, and by those that wait for its end. The table holds no reference: the work removes its entry under the table's
// lock, and others find entries only under that lock. How the work ended, and who waits for that, is protected by the entry's
// own lock, since waiters may outlive the registry by a moment.
//
// An alarm is armed once. A new limit makes a new alarm, and only the newest one stops the work. To move one timer instead, a
// lock would have to be held over clock::cancel(), which waits for the timer's function, which ends work and needs that lock.
//
// Rejected: (a) a manager that owns the work, as in libcopp: nobody would own it once the manager is destroyed. (b) Handles of
// forks in the table: a fork's record belongs to its scope, which may end long before the registry.
#include <weft/registry.hpp>

#include <algorithm>
#include <mutex>

#include "base/ref_count.hpp"
#include "core/run_loop.hpp"

namespace weft {
namespace detail {
namespace {

constexpr char out_of_time[] = "its limit in a registry was over";  // its address says that this was why

}  // namespace

/// Stops a piece of work when its limit is over. Held by the clock until it fires or was cancelled, and by whoever set it.
class work_alarm final : timer {
 public:
  work_alarm(listed_entry& of, std::uint64_t limit) noexcept;

  void arm(clock& by, clock::time_point when) noexcept {
    by_ = &by;
    by.arm(*this, when);
  }
  /// By whoever set it: it does not fire after this call.
  void cancel() noexcept {
    if (by_->cancel(*this)) let_go();
    let_go();
  }

 private:
  static void ring(timer& self) noexcept;
  void let_go() noexcept;

  listed_entry& of_;  // held
  const std::uint64_t limit_;
  clock* by_ = nullptr;
  ref_count holders_{2};
};

/// What a registry keeps of a piece of work.
class listed_entry {
 public:
  listed_entry(registry& in, const char* called) noexcept : name{called}, in_{in} {}
  listed_entry(const listed_entry&) = delete;

  void hold() noexcept { holders_.add(); }
  void let_go() noexcept {
    if (holders_.let_go()) delete this;
  }

  /// The entry of `id`, with a reference for the caller; null: there is none.
  static listed_entry* held(const registry& in, std::uint64_t id) noexcept;

  /// By the work, once: removes its entry.
  void end(work_end how) noexcept;

  /// Sets a limit, after which the work is stopped by the clock `by`. Throws std::bad_alloc.
  void limit(clock& by, clock::duration limit);
  /// The limit set so is over.
  void over(std::uint64_t limit) noexcept;

  bool wait(waiter& in, root& self) noexcept;
  on_stop leave(waiter& in) noexcept {
    std::lock_guard guard{lock_};
    line_.remove(in);
    return on_stop::left;
  }
  work_end how() const noexcept { return how_; }  // once it has ended

  const char* const name;
  stop_source source;

  // Under the registry's lock.
  std::uint64_t id = 0;
  listed_entry* next = nullptr;                  // with the same low bits
  clock::duration due = clock::duration::max();  // where the registry is pumped
  listed_entry* next_due = nullptr;              // by tick()

 private:
  ~listed_entry() = default;

  registry& in_;
  ref_count holders_{1};

  tiny_lock lock_;
  // All of these under the lock.
  bool ended_ = false;
  work_end how_ = work_end::stopped;
  waiter_line line_;
  std::uint64_t limits_ = 0;     // so many were set, or taken back; the last one holds
  work_alarm* alarm_ = nullptr;  // of that one, once it is armed
};

// ---- limits -----------------------------------------------------------------------------------------------------------

work_alarm::work_alarm(listed_entry& of, std::uint64_t limit) noexcept : timer{ring}, of_{of}, limit_{limit} {
  of_.hold();
}

void work_alarm::ring(timer& self) noexcept {
  auto& mine = static_cast<work_alarm&>(self);
  mine.of_.over(mine.limit_);  // the work may end in there, and cancel what is running
  mine.let_go();
}

void work_alarm::let_go() noexcept {
  if (!holders_.let_go()) return;
  of_.let_go();
  delete this;
}

void listed_entry::limit(clock& by, clock::duration limit) {
  std::uint64_t mine;
  work_alarm* before;
  {
    std::lock_guard guard{lock_};
    if (ended_) return;  // nobody would cancel it
    mine = ++limits_;
    before = std::exchange(alarm_, nullptr);
  }
  if (before != nullptr) before->cancel();
  if (limit == clock::duration::max()) return;
  auto* fresh = new work_alarm{*this, mine};
  fresh->arm(by, later(by.now(), limit));
  {
    std::lock_guard guard{lock_};
    if (limits_ == mine) {  // else there is a newer one, or the work has ended
      alarm_ = fresh;
      return;
    }
  }
  fresh->cancel();
}

void listed_entry::over(std::uint64_t limit) noexcept {
  {
    std::lock_guard guard{lock_};
    if (limits_ != limit) return;
  }
  source.request_stop({.reason = out_of_time});
}

// ---- the end ----------------------------------------------------------------------------------------------------------

void listed_entry::end(work_end how) noexcept {
  {
    std::lock_guard guard{in_.lock_};
    listed_entry** link = &in_.heads_[id & (in_.heads_.size() - 1)];
    while (*link != this) link = &(*link)->next;
    *link = next;
    --in_.size_;
  }
  const stop_cause* cause = source.cause();
  if (how == work_end::stopped && cause != nullptr && cause->reason == out_of_time) how = work_end::timed_out;
  waiter_line awake;
  work_alarm* alarm;
  {
    std::lock_guard guard{lock_};
    ended_ = true;
    how_ = how;
    ++limits_;
    alarm = std::exchange(alarm_, nullptr);
    while (waiter* one = line_.pop())
      if (one->try_claim()) awake.push(*one);
  }
  if (alarm != nullptr) alarm->cancel();
  while (waiter* one = awake.pop()) one->wake();
}

listed_entry* listed_entry::held(const registry& in, std::uint64_t id) noexcept {
  std::lock_guard guard{in.lock_};
  if (in.heads_.empty()) return nullptr;
  listed_entry* one = in.heads_[id & (in.heads_.size() - 1)];
  while (one != nullptr && one->id != id) one = one->next;
  if (one != nullptr) one->hold();
  return one;
}

bool listed_entry::wait(waiter& in, root& self) noexcept {
  std::unique_lock guard{lock_};
  if (ended_) return false;
  if (!self.park(in)) {
    guard.unlock();
    end_stopped(self);
    return true;
  }
  line_.push(in);
  return true;
}

stop_token listing::token() const noexcept { return entry_->source.token(); }
std::uint64_t listing::id() const noexcept { return entry_->id; }

void listing::end(work_end how) noexcept {
  if (listed_entry* const mine = std::exchange(entry_, nullptr)) {
    mine->end(how);
    mine->let_go();
  }
}

namespace {

/// A hold of an entry that was found.
class found_entry {
 public:
  found_entry(const registry& in, std::uint64_t id) noexcept : one_{listed_entry::held(in, id)} {}
  found_entry(const found_entry&) = delete;
  ~found_entry() {
    if (one_ != nullptr) one_->let_go();
  }
  explicit operator bool() const noexcept { return one_ != nullptr; }
  listed_entry* operator->() const noexcept { return one_; }
  listed_entry& operator*() const noexcept { return *one_; }

 private:
  listed_entry* one_;
};

class end_awaiter : waiter {
 public:
  explicit end_awaiter(listed_entry& of) noexcept : waiter{type}, of_{of} {}
  bool await_ready() const noexcept { return false; }
  template <class Promise>
  bool await_suspend(std::coroutine_handle<Promise> caller) noexcept {
    return of_.wait(*this, suspending(caller));
  }
  void await_resume() const noexcept {}

 private:
  static on_stop leave(waiter& self) noexcept {
    auto& mine = static_cast<end_awaiter&>(self);
    return mine.of_.leave(mine);
  }
  static void tell(const waiter& self, const char* what, wait_subjects& into) noexcept {
    into.add(what, &static_cast<const end_awaiter&>(self).of_);
  }
  static const wait_layout seen;
  static constexpr wait_type type{.leave = leave, .name = "entry of a registry", .tell = tell, .layout = &seen};

  listed_entry& of_;
};
WEFT_LAYOUT(end_awaiter, stored_at(WEFT_BEHIND_WAITER(end_awaiter, of_)));
struct end_of : knows_roots {
  explicit end_of(listed_entry& one) noexcept : entry{one} {}
  end_awaiter operator co_await() const noexcept { return end_awaiter{entry}; }
  listed_entry& entry;
};

}  // namespace
}  // namespace detail

// ---- registry ---------------------------------------------------------------------------------------------------------

using detail::found_entry;
using detail::listed_entry;

registry::~registry() {
  WEFT_EXPECTS(size_ == 0, "a registry was destroyed while work ran that is listed in it: declare it before the scope");
}

// False: there is no room in the table, and `larger` is not larger.
bool registry::insert(listed_entry& entry, items<listed_entry*>& larger) noexcept {
  std::lock_guard guard{lock_};
  if (size_ == heads_.size()) {
    if (larger.size() <= heads_.size()) return false;
    for (listed_entry* one : heads_)
      while (one != nullptr) {
        listed_entry*& head = larger[one->id & (larger.size() - 1)];
        listed_entry* const after = std::exchange(one->next, head);
        head = std::exchange(one, after);
      }
    std::swap(heads_, larger);
  }
  entry.id = ++last_id_;
  listed_entry*& head = heads_[entry.id & (heads_.size() - 1)];
  entry.next = std::exchange(head, &entry);
  ++size_;
  return true;
}

detail::listing registry::enter(const work_options& options) {
  struct unlisted {
    listed_entry* one;
    ~unlisted() {
      if (one != nullptr) one->let_go();
    }
  } fresh{new listed_entry{*this, options.name}};
  items<listed_entry*> larger;  // memory is asked for under no lock
  while (!insert(*fresh.one, larger)) larger = items<listed_entry*>{std::max<std::size_t>(16, 2 * larger.size())};
  detail::listing entry{*std::exchange(fresh.one, nullptr)};
  if (options.limit != clock::duration::max()) set_limit(entry.id(), options.limit);
  return entry;
}

// ---- by number --------------------------------------------------------------------------------------------------------

namespace {

work_info info_of(const listed_entry& one) noexcept { return {one.id, one.name, one.source.stop_requested()}; }

}  // namespace

std::optional<work_info> registry::find(std::uint64_t id) const noexcept {
  if (const found_entry one{*this, id}) return info_of(*one);
  return {};
}

items<work_info> registry::list() const {
  std::vector<work_info> found;
  for (;;) {
    {
      std::lock_guard guard{lock_};
      if (size_ <= found.capacity()) {
        for (const listed_entry* one : heads_)
          for (; one != nullptr; one = one->next) found.push_back(info_of(*one));
        break;
      }
    }
    found.reserve(2 * found.capacity() + 16);  // under no lock
  }
  std::sort(found.begin(), found.end(), [](const work_info& a, const work_info& b) { return a.id < b.id; });
  return {found.data(), found.data() + found.size()};
}

std::size_t registry::size() const noexcept {
  std::lock_guard guard{lock_};
  return size_;
}

bool registry::request_stop(std::uint64_t id, stop_cause cause) noexcept {
  const found_entry one{*this, id};
  return one && one->source.request_stop(cause);
}

bool registry::set_limit(std::uint64_t id, detail::time_span limit) {
  const found_entry one{*this, id};
  if (!one) return false;
  if (options_.pumped) {
    std::lock_guard guard{lock_};
    clock::duration::rep due;  // whose beginning may lie before it
    if (__builtin_add_overflow(now_.count(), limit.count(), &due))
      one->due = limit > limit.zero() ? limit.max() : limit.min();
    else
      one->due = clock::duration{due};
    soonest_ = std::min(soonest_, one->due);
  } else {
    one->limit(current_clock(), limit);
  }
  return true;
}

task<std::optional<work_end>> registry::wait(std::uint64_t id) {
  const found_entry one{*this, id};
  if (!one) co_return std::nullopt;
  const detail::end_of ended{*one};
  co_await ended;
  co_return one->how();
}

std::size_t registry::tick(detail::time_span now) noexcept {
  WEFT_EXPECTS(options_.pumped, "tick() of a registry that goes by a clock: make it with {.pumped = true}");
  listed_entry* due = nullptr;
  {
    std::lock_guard guard{lock_};
    now_ = now;
    if (now < soonest_) return 0;
    soonest_ = clock::duration::max();
    for (listed_entry* one : heads_)
      for (; one != nullptr; one = one->next)
        if (one->due > now) {
          soonest_ = std::min(soonest_, one->due);
        } else {
          one->due = clock::duration::max();
          one->hold();
          one->next_due = std::exchange(due, one);
        }
  }
  std::size_t stopped = 0;
  while (due != nullptr) {
    listed_entry* const one = std::exchange(due, due->next_due);
    if (one->source.request_stop({.reason = detail::out_of_time})) ++stopped;
    one->let_go();
  }
  return stopped;
}

}  // namespace weft
