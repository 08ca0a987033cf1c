#include <weft/detail/select.hpp>

#include <algorithm>
#include <functional>
#include <mutex>

namespace weft {
namespace detail {

namespace {

// Where a select begins to look: another place each time.
std::size_t somewhere(std::size_t count) noexcept {
  static constinit thread_local std::uint32_t state = 0x9e3779b9;
  state ^= state << 13;
  state ^= state >> 17;
  state ^= state << 5;
  return count != 0 ? state % count : 0;
}

}  // namespace

// By address, each once. Mostly few, and in order already.
std::size_t select_wait::sort_locks() noexcept {
  learning_lock** end = locks_;
  if (count_ > 32) {
    for (std::size_t i = 0; i != count_; ++i)
      if (learning_lock* one = cases_[i]->its_lock()) *end++ = one;
    std::sort(locks_, end, std::less<>{});
    return static_cast<std::size_t>(std::unique(locks_, end) - locks_);
  }
  for (std::size_t i = 0; i != count_; ++i) {
    learning_lock* const one = cases_[i]->its_lock();
    learning_lock** at = end;
    while (at != locks_ && std::less<>{}(one, at[-1])) --at;
    if (one == nullptr || (at != locks_ && at[-1] == one)) continue;
    std::move_backward(at, end, end + 1);
    *at = one;
    ++end;
  }
  return static_cast<std::size_t>(end - locks_);
}

bool select_wait::suspend(root& self) noexcept {
  if (self.sleeper::stop_requested()) return (end_stopped(self), true);
  waited_ = true;
  for (std::size_t i = 0; i != count_; ++i) cases_[i]->prepare(*this, i, self);

  const std::size_t locks = sort_locks();
  for (std::size_t i = 0; i != locks; ++i) locks_[i]->lock();
  const auto unlock = [&] {
    for (std::size_t i = locks; i != 0; --i) locks_[i - 1]->unlock();
  };

  for (std::size_t i = 0, at = somewhere(count_); i != count_; ++i, at = at + 1 == count_ ? 0 : at + 1)
    if (cases_[at]->try_now()) {
      chosen = at;
      unlock();
      cases_[at]->finish();
      return false;
    }
  if (never_waits_) return (unlock(), false);

  in_line_ = true;  // before it is known: whoever ends the wait reads it
  const bool parked = self.park(*this);
  if (parked)
    for (std::size_t i = 0; i != count_; ++i)
      if (waiter* one = cases_[i]->enter()) one->share(*this);
  unlock();  // whoever was chosen takes each of them once more before it goes on, so this is here until the last
  if (!parked) {
    in_line_ = false;
    leave_all();
    end_stopped(self);
  }
  return true;
}

void select_wait::tell(const waiter& self, const char* what, wait_subjects& into) noexcept {
  const auto& mine = static_cast<const select_wait&>(self);
  for (std::size_t i = 0; i != mine.count_; ++i) mine.cases_[i]->tell(into);
  if (into.count == 0) into.add(what, nullptr);  // of no cases
}

// Those that were not chosen. Whoever finds one of them meanwhile can't claim it, and goes on to the next.
void select_wait::end() noexcept {
  if (std::exchange(waited_, false)) leave_all();
}

void select_wait::leave_all() noexcept {
  for (std::size_t i = 0; i != count_; ++i) cases_[i]->leave(in_line_);
}

waiter* channel_case::enter() noexcept {
  line_.push(node_);
  ++at_.waits;
  return &node_;
}

void happening_case::prepare(select_wait& of, std::size_t index, root&) noexcept {
  node_.select = &of;
  node_.index = index;
}

void happening::leave() noexcept {
  const std::lock_guard guard{lock_};  // whoever ended the wait may still hold it
  waits_ = nullptr;
}

void happening::happen() noexcept {
  channel_waiter* one = nullptr;
  {
    const std::lock_guard guard{lock_};
    happened_ = true;
    one = std::exchange(waits_, nullptr);
    if (one == nullptr || !one->try_claim()) return;
    one->select->chosen = one->index;
  }
  one->wake();
}

on_stop select_wait::leave(waiter& self) noexcept {
  static_cast<select_wait&>(self).leave_all();
  return on_stop::left;
}

}  // namespace detail

// ---- after ------------------------------------------------------------------------------------------------------------------

void after_case::prepare(detail::select_wait& of, std::size_t index, detail::root& self) noexcept {
  happening_case::prepare(of, index, self);
  clock_ = &detail::clock_of(self);
  const clock::time_point now = clock_->now();
  if (for_ <= clock::duration::zero())
    passed_.happen();
  else
    clock_->arm(*this, detail::later(now, for_));
}

void after_case::leave(bool was_in_line) noexcept {
  happening_case::leave(was_in_line);
  clock_->cancel(*this);
}

void after_case::fire_now(timer& self) noexcept {
  static_cast<after_case&>(self).passed_.happen();  // self may be gone after this line
}

}  // namespace weft
