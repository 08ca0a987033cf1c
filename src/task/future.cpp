#include <weft/future.hpp>

#include "base/thread_id.hpp"

namespace weft::detail {

// ---- handed ---------------------------------------------------------------------------------------------------------

void handed::complete(wake_up how) noexcept {
  how_ = how;
  if (starter_.load(std::memory_order_relaxed) == this_thread_id()) return word_.complete_here();
  if (waiter* one = word_.complete(); one != nullptr) one->complete(how);  // self may be gone after word_.complete()
}

void handed::begin_start() noexcept { starter_.store(this_thread_id(), std::memory_order_relaxed); }

void handed::wait(waiter& one) noexcept {
  switch (word_.enter(one)) {
    case handover::entry::waits: return;
    case handover::entry::ready: return one.finish(how_);
    case handover::entry::left: return one.finish(wake_up::stopped);
  }
}

bool handed::enter_beside(waiter& one) noexcept {
  const handover::entry how = word_.enter(one);
  WEFT_EXPECTS(how != handover::entry::left, "a future was waited for twice at once: it has one owner");
  return how == handover::entry::waits;
}

on_stop handed::leave(waiter& one) noexcept { return word_.leave(one) ? on_stop::left : on_stop::forwarded; }

// ---- outcome_wait ---------------------------------------------------------------------------------------------------

void outcome_wait::suspend(root& self) noexcept {
  if ((from_->is_ready() && from_->is_stopped()) || !self.park(*this)) return end_stopped(self);
  from_->wait(*this);  // this may be gone after this line
}

on_stop outcome_wait::leave(waiter& self) noexcept {
  auto& mine = static_cast<outcome_wait&>(self);
  return mine.from_->leave(mine);
}

namespace {

/// The wait of future::wait(), which leaves the outcome where it is.
struct arrival : knows_roots {
  explicit arrival(handed& outcome) noexcept : of{&outcome} {}
  outcome_wait operator co_await() const noexcept { return outcome_wait{*of}; }
  handed* of;
};

}  // namespace

void wait_for(handed& outcome) {
  if (outcome.is_ready()) return;
  WEFT_EXPECTS(
      current_root() == nullptr,
      "get() or wait() of a future was called inside a task, where it would block a worker: co_await the future");
  static_cast<void>(sync_wait(as_result(arrival{outcome})));  // stopped is an outcome, too
}

// ---- what goes wrong ------------------------------------------------------------------------------------------------

void throw_error(errc code, const char* operation) { throw error{code, operation}; }

// By a destructor: where there is no memory for the error, that is the error.
std::exception_ptr broken_promise() noexcept {
  try {
    return std::make_exception_ptr(error{errc::broken_promise, "future"});
  } catch (const std::bad_alloc&) {
    return std::current_exception();
  }
}

void fail_empty_promise() noexcept { fail("an empty promise was used: it was moved from"); }

void fail_empty_future() noexcept {
  fail("an empty future was used: it was moved from, or its outcome was taken before (it is taken once)");
}

}  // namespace weft::detail
