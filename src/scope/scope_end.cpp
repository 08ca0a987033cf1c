// The end of a fork: waking the tasks that await it, counting the holders of its record, and making room for other forks.
// The state of a fork, and who may read and write it, is described in scope/scope_core.hpp.
#include <weft/detail/core/async_stack.hpp>
#include <weft/scope.hpp>

#include "core/run_loop.hpp"
#include "core/worker.hpp"
#include "scope/fork_end.hpp"

namespace weft::detail {
namespace {

constexpr unsigned most_looked_at = 64;  // waits, in the search for a cycle of forks that await each other

}  // namespace

// The end of a fork in its first run is only noted here: start(), further down this stack, does the rest.
void scope_core::fork_ended(root& self, bool stopped) noexcept {
  auto& one = static_cast<fork_record&>(self);
  if (running_worker().starting != &one) return one.of().ended(one, stopped);
  one.first_run_ = stopped ? fork_record::first_run::stopped : fork_record::first_run::ran_through;
}

// The same where a fork returns, without a call to fork_ended().
void scope_core::fork_returned(frame* end) {
  auto& one = static_cast<fork_record&>(*static_cast<boundary*>(end)->owner);
  worker& here = running_worker();
  if (here.starting != &one) {
    one.count_out(here);
    return one.of().ended(one, false);
  }
  one.first_run_ = fork_record::first_run::ran_through;
}

void scope_core::ended(fork_record& one, bool stopped) noexcept {
  fork_status how = fork_status::stopped;
  bool has_frame = false;
  if (!stopped) {
    const std::exception_ptr* failure = one.failure_of_(one.frame_);
    how = failure != nullptr ? fork_status::failed : fork_status::succeeded;
    if (failure != nullptr) failed(one, *failure);
    // Where the fork is the only holder, it stays so: only a holder can make another one.
    has_frame = one.holders_.load(std::memory_order_acquire) != 1;  // <- gone (no model: as declared)
    if (!has_frame) one.frame_.destroy();
  }
  leave_root();

  called_by_ends called;
  bool last;
  {
    std::unique_lock guard{lock_};
    if (!has_frame) one.frame_ = nullptr;
    if (stopped) {
      cut_short_ = cut_short_ || one.was_told_by(root::told_by_executor);
      one.note_end();
      note_stopped_part();
    }
    last = enter_end(guard, one, how, called);
  }
  // From here on the scope may be gone, unless this was the last part that it waits for.
  called.wake(stopped ? wake_up::stopped : wake_up::completed);
  if (last) finish(this->how());
}

bool scope_core::wait(fork_record& one, waiter& in, root& self) noexcept {
  std::unique_lock guard{lock_};
  const fork_status seen = one.status_.load(std::memory_order_relaxed);  // written under the lock
  if (seen == fork_status::succeeded || seen == fork_status::failed) return false;
  if (unsigned looks = most_looked_at; waits_for(one, self, in, looks) && !self.sleeper::stop_requested())
      [[unlikely]] {
    guard.unlock();
    detail::fail(
        &self == &one
            ? "a fork awaited itself, by its own handle or view: it would never end"
            : "a fork awaited another one that waits for its end, itself or by others: neither would ever end");
  }
  if (seen == fork_status::stopped) {
    guard.unlock();
    end_stopped_by(self, in);
    return true;
  }
  if (!self.park(in)) {
    guard.unlock();
    end_stopped(self);
    return true;
  }
  one.line_.push(in);
  return true;
}

// Whether `one`, which has not ended, waits for the end of `of`: itself, or by way of other forks which only a stop could
// wake otherwise. So it finds the await that would close a cycle. It looks at `looks` waits at most, since a chain of waits
// may be long, or a line wide. By the holder of this scope's lock.
//
// The lines of other scopes are looked at only where try_lock() gets their locks: blocking on one while holding another could
// deadlock. A waiter stays in its line as long as the lock is held, and its scope stays alive. So a cycle within this scope
// is found if that many looks show it. A cycle over several scopes is mostly found, and else its forks wait.
bool scope_core::waits_for(const fork_record& one, const root& of, const waiter& like, unsigned& looks) const noexcept {
  struct held {  // a scope whose lock this holds
    const scope_core& which;
    const held* further_out;
  };
  struct walk {
    const fork_record& one;
    const waiter& like;
    unsigned& looks;

    bool leads_from(const root& of, const held& locked) const noexcept {
      if (is_about_to_be_told(of)) return false;
      if (&of == &one) return true;
      if (!of.is_fork) return false;
      const auto& fork = static_cast<const fork_record&>(of);
      scope_core& in = fork.of();
      for (const held* mine = &locked; mine != nullptr; mine = mine->further_out)
        if (&mine->which == &in) return leads_from_line(fork, locked);
      const std::unique_lock guard{in.lock_, std::try_to_lock};
      return guard.owns_lock() && leads_from_line(fork, {in, &locked});
    }
    // Its scope was told to stop, and is about to tell each of its forks.
    static bool is_about_to_be_told(const root& of) noexcept {
      return of.is_fork && !of.is_shielded() && static_cast<const fork_record&>(of).of().stop_requested();
    }
    bool leads_from_line(const fork_record& fork, const held& locked) const noexcept {
      for (const waiter* in = fork.line_.first(); in != nullptr; in = in->next) {
        if (looks == 0) return false;
        --looks;
        if (!in->waits_as(like)) continue;
        const auto& by = static_cast<const root&>(*in->whose());
        if (!by.sleeper::stop_requested() && leads_from(by, locked)) return true;
      }
      return false;
    }
  };
  return walk{one, like, looks}.leads_from(of, {*this, nullptr});
}

void scope_core::enter_line(fork_record& one, waiter& in) noexcept { one.line_.push(in); }

on_stop scope_core::leave(fork_record& one, waiter& in) noexcept {
  std::lock_guard guard{lock_};
  one.line_.remove(in);
  return on_stop::left;
}

// ---- holders --------------------------------------------------------------------------------------------------------

void scope_core::retain(fork_record& one) noexcept {
  std::lock_guard guard{lock_};
  one.holders_.store(one.holders_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);  // under the lock
}

void scope_core::drop(fork_record& one) noexcept {
  std::unique_lock guard{lock_};
  let_go<true>(guard, one);
}

void scope_core::drop_awaited(fork_record& one) noexcept {
  std::unique_lock guard{lock_};
  let_go(guard, one);
}

bool scope_core::is_only_holder(const fork_record& one) noexcept {
  std::lock_guard guard{lock_};
  return one.holders_.load(std::memory_order_relaxed) == 1;  // under the lock
}

bool fork_wait::suspend(root& self) noexcept {
  fork_record& one = of_.record();
  return one.of().wait(one, in_line_.emplace(one), self);
}

void fork_wait::sleeping::why(const waiter& self, cause_list& into) noexcept {
  const fork_record& one = static_cast<const sleeping&>(self).of;
  if (const stop_cause* const cause = one.own_cause(); cause != nullptr && one.status() == fork_status::stopped)
    into.add(*cause);
}

on_stop fork_wait::sleeping::leave(waiter& self) noexcept {
  fork_record& one = static_cast<sleeping&>(self).of;
  return one.of().leave(one, self);
}

void fail_empty_fork() noexcept {
  fail("an empty fork or view was used: it was moved from, or awaited before (std::move(f) is awaited once)");
}

void fail_shared_fork() noexcept {
  fail("the value of a fork was moved out by co_await std::move(f) while a view of it was left: co_await f");
}

// ---- room -----------------------------------------------------------------------------------------------------------

// Where children are limited, a fork takes a place before its first run, and leaves it when it is counted as a child, or has
// ended. Without the place, another fork that asks during that run would find the same room. Whoever leaves a place gives
// it to the first in line; so nobody waits while there is room.

bool scope_core::has_room() noexcept {
  std::lock_guard guard{lock_};
  return is_room_free();
}

// May be called when the scope has been destroyed, which it reports: see the destructor.
[[gnu::noinline]] bool scope_core::take_place() noexcept {
  constexpr std::uintptr_t filled =
      ~std::uintptr_t{0} / 0xff * 0xdd;  // what WEFT_FILLS_FRAMES writes into freed memory
  const auto left = reinterpret_cast<std::uintptr_t>(parent_);
  WEFT_EXPECTS(left != 0 && left != filled, scope_has_ended);
  std::lock_guard guard{lock_};
  if (!is_room_free()) return false;
  places_ = places_ + 1;
  return true;
}

void scope_core::leave_place() noexcept {
  std::unique_lock guard{lock_};
  leave_place(guard);
}

void scope_core::leave_place(std::unique_lock<tiny_lock>& guard) noexcept {
  places_ = places_ - 1;
  called_by_ends called;
  give_room(called);
  guard.unlock();
  called.wake(wake_up::completed);
}

// Waiters that take no place are all woken, and may find that the room is gone again.
void scope_core::give_room(called_by_ends& called) noexcept {
  while (!room_.empty() && is_room_free()) {
    auto& in = static_cast<room_wait&>(*room_.pop_first());
    if (!in.try_claim()) continue;
    if (in.takes_place) places_ = places_ + 1;
    called.with_room.push(in);
  }
}

std::size_t scope_core::children() noexcept {
  std::lock_guard guard{lock_};
  return children_;
}

bool scope_core::wait_for_room(room_wait& in, root& self) noexcept {
  std::unique_lock guard{lock_};
  if (is_room_free()) {
    if (in.takes_place) places_ = places_ + 1;
    return false;
  }
  if (!self.park(in)) {
    guard.unlock();
    end_stopped(self);
    return true;
  }
  room_.push(in);
  return true;
}

on_stop scope_core::leave_room(room_wait& in) noexcept {
  std::lock_guard guard{lock_};
  room_.remove(in);
  return on_stop::left;
}

}  // namespace weft::detail
