// The children of a when_all of a range. Part of combine.hpp; how they run is in join/join.hpp.
//
// Rejected: a vector of tasks first, and one of what they gave (a fifth of the instructions of `nqueens` was malloc's).
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <new>
#include <utility>
#include <weft/detail/base/standard.hpp>
#include <weft/detail/join/awaitables.hpp>
#include <weft/detail/join/group.hpp>
#include <weft/detail/join/join.hpp>
#include <weft/detail/join/sinks.hpp>
#include <weft/task.hpp>

namespace weft::detail {

/// The children of a `co_await when_all(range)`. What they need lies in one block of frame memory, from where they were made:
/// rooms, slots, frames, each for as many as there is space for. A range that does not say how long it is has the block grow.
/// Of a few the results stay in their frames, as a tuple's do.
template <class T>
class range_children : public knows_roots, protected join {
 public:
  bool await_ready() const noexcept { return count_ == 0; }
  template <class Promise>
  WEFT_PER_AWAIT std::coroutine_handle<> await_suspend(std::coroutine_handle<Promise> caller) noexcept {
    root& self = *caller.promise().owner;
    return transfer(self, this->start(self, caller));
  }

 protected:
  template <class Range>
  range_children(std::in_place_t, Range&& range) : range_children{} {
    take(std::forward<Range>(range));
  }
  range_children(range_children&& other) noexcept  // before it is awaited
      : join{other.count_ <= few ? of_few : of_many, other.frames_, other.rooms_, other.count_},
        block_{std::exchange(other.block_, nullptr)},
        slots_{other.slots_},
        space_{other.space_} {
    other.count_ = 0;
  }
  // The newest frame first, as they lie; the first one may lie below the block.
  ~range_children() {
    if (block_ == nullptr) return;
    if (count_ != 0 && !is_in_frames()) std::destroy_n(slots_, count_);
    for (std::size_t at = count_; at > 1;) destroy_child(--at);
    const std::coroutine_handle<> first = count_ != 0 ? frames_[0] : nullptr;
    free_frame(std::exchange(block_, nullptr), bytes_for(space_));
    if (first) first.destroy();
  }

  /// Throws the first failure, if there is one.
  void throw_first_failure() {
    for (std::size_t i = 0; i != count_; ++i) throw_failure(outcome_of(i));
  }
  /// Then: calls `put` with each value, in order.
  template <class Put>
  void give(Put put) {
    for (std::size_t i = 0; i != count_; ++i) put(take_element(outcome_of(i)));
  }

 private:
  range_children() noexcept : join{of_few, nullptr, nullptr, 0} {}

  template <class Range>
  void take(Range&& range) {
    if constexpr (std::ranges::sized_range<Range>)
      if (const auto size = static_cast<std::size_t>(std::ranges::size(range)); size != 0) make_space(size);
    for (auto&& one : range) {
      const auto child = task_access::release(as_task(static_cast<range_awaitable<Range>&&>(one)));
      if (count_ == space_) [[unlikely]]
        make_space_for(child);
      ::new (frames_ + count_) std::coroutine_handle<>{child};
      ++count_;
    }
    if (count_ > few) [[unlikely]]
      is_of(of_many);
  }

  static constexpr std::size_t aligned = 16, least_space = 8, few = 16,
                               most = std::numeric_limits<std::uint32_t>::max() / 2;
  static_assert(alignof(room) <= aligned && alignof(std::coroutine_handle<>) <= alignof(outcome<T>));
  static_assert(alignof(outcome<T>) <= aligned);
  // Up to the slots, which lie behind the rooms.
  static constexpr std::size_t bytes_of_rooms(std::size_t count) noexcept {
    return ((count + 1) * sizeof(room) + alignof(outcome<T>) - 1) & ~(alignof(outcome<T>) - 1);
  }
  static constexpr std::size_t bytes_for(std::size_t count) noexcept {
    return bytes_of_rooms(count) + count * (sizeof(outcome<T>) + sizeof(std::coroutine_handle<>));
  }

  // Whether the results are there, or the children have not begun; else all are in the slots.
  bool is_in_frames() const noexcept { return frames_[0] != nullptr; }
  outcome<T>& outcome_of(std::size_t index) noexcept { return is_in_frames() ? promise(index) : slots_[index]; }
  task_promise<T>& promise(std::size_t index) noexcept {
    return std::coroutine_handle<task_promise<T>>::from_address(frames_[index].address()).promise();
  }
  void destroy_child(std::size_t index) noexcept {
    if (frames_[index]) frames_[index].destroy();
  }

  // Rooms and slots are untouched so far.
  void make_space(std::size_t count) {
    if (count > most) throw std::bad_alloc{};  // perhaps a range whose end lies before its begin
    auto* const block = static_cast<std::byte*>(allocate_frame(bytes_for(count)));
    auto* const rooms = ::new (block) room[count + 1];
    slots_ = reinterpret_cast<outcome<T>*>(block + bytes_of_rooms(count));
    auto* const frames = reinterpret_cast<std::coroutine_handle<>*>(slots_ + count);
    for (std::size_t i = 0; i != count_; ++i) ::new (frames + i) std::coroutine_handle<>{frames_[i]};
    lies_at(frames, rooms);
    if (block_ != nullptr) free_frame(block_, bytes_for(space_));
    block_ = block;
    space_ = count;
  }
  [[gnu::noinline]] void make_space_for(std::coroutine_handle<> child) {
    try {
      make_space(space_ != 0 ? 2 * space_ : least_space);
    } catch (...) {
      child.destroy();
      throw;
    }
  }

  static void settle(join& self, std::size_t index, bool stopped) noexcept {
    auto& mine = static_cast<range_children&>(self);
    auto& slot = *::new (mine.slots_ + index) outcome<T>;
    if (!stopped) {
      slot.take_from(mine.promise(index));
      mine.frames_[index].destroy();
    }
    mine.frames_[index] = nullptr;
  }
  static bool any_failed(join& self) noexcept {
    const auto& mine = static_cast<range_children&>(self);
    for (std::size_t i = 0; i != mine.count_; ++i)
      if (mine.slots_[i].is_exception()) return true;
    return false;
  }
  static constexpr kind of_few{settle, any_failed, false}, of_many{settle, any_failed, true};

  std::byte* block_ = nullptr;  // null: there are none
  outcome<T>* slots_ = nullptr;
  std::size_t space_ = 0;
};

template <class T, class Sink>
inline constexpr bool owns_callees<join_into<range_children<T>, Sink>> = true;

}  // namespace weft::detail
