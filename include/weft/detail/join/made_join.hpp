// The children of a when_all(n, make): each is made where and when it begins. Part of combine.hpp; how they run is in
// join/join.hpp.
//
// So without other threads one of them exists at a time, in memory that its predecessor has just left, and a recursion takes
// as much of it as it is deep. A child's root, where it needs one of its own, is allocated then; only that of the one that
// borrows has its room before, since a wait can't fail for want of memory.
//
// Rejected: children taken out of any range as they begin, and the rest of the range handed on from thread to thread. What is
// stolen would be all of the rest, so a long range of short children would be stolen anew for each of them, where halves are
// not; and what a range does to give its elements would run elsewhere, in programs that were not written for that.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <limits>
#include <new>
#include <type_traits>
#include <utility>
#include <weft/detail/base/standard.hpp>
#include <weft/detail/join/group.hpp>
#include <weft/detail/join/join.hpp>
#include <weft/detail/join/sinks.hpp>
#include <weft/task.hpp>

namespace weft::detail {

/// What `make(i)` gives is awaited for this.
template <class Make>
using made_result = await_result<std::invoke_result_t<const Make&, std::size_t>>;

/// The children of a `co_await when_all(n, make)`. Beside it lies one block of frame memory: what the join needs, and slots. A
/// child's frame is known by its slot until it has ended.
template <class Make>
class made_children : public knows_roots, protected join {
  using value_type = made_result<Make>;
  using slot = outcome<value_type>;

 public:
  bool await_ready() const noexcept { return count_ == 0; }
  template <class Promise>
  WEFT_PER_AWAIT std::coroutine_handle<> await_suspend(std::coroutine_handle<Promise> caller) noexcept {
    root& self = *caller.promise().owner;
    this->begin_making(self, caller);
    return transfer(self, this->start_with(make(*this, 0)));
  }

 protected:
  made_children(std::size_t count, Make&& make)
      : join{of_made, nullptr, nullptr, checked(count)}, make_{std::move(make)} {
    if (count != 0) lies_at(nullptr, static_cast<room*>(allocate_frame(bytes_for(count))));
  }
  made_children(made_children&& other) noexcept  // before it is awaited
      : join{of_made, nullptr, other.rooms_, other.count_}, make_{std::move(other.make_)} {
    other.count_ = 0;
  }
  ~made_children() {
    if (count_ == 0) return;
    if (this->has_begun()) {
      if (!are_trivial || this->has_failed()) std::destroy_n(first_slot(), count_);
      this->free_roots();
    }
    free_frame(rooms_, bytes_for(count_));
  }

  /// Throws the first failure, if there is one.
  void throw_first_failure() {
    if (this->has_failed()) [[unlikely]]
      for (std::size_t i = 0; i != count_; ++i) throw_failure(slot_of(i));
  }
  /// Then: calls `put` with each value, in order.
  template <class Put>
  void give(Put put) {
    for (slot *at = first_slot(), *const end = at + count_; at != end; ++at) put(take_value(*at));
  }

 private:
  static constexpr std::size_t most = std::numeric_limits<std::uint32_t>::max() / 2;
  static std::size_t checked(std::size_t count) { return count <= most ? count : throw std::bad_alloc{}; }
  static constexpr std::size_t before_slots = (bytes_for_made + alignof(slot) - 1) / alignof(slot) * alignof(slot);
  using frame_type = std::coroutine_handle<task_promise<value_type>>;
  // Whether slots without a failure need no destructor.
  static constexpr bool are_trivial = std::is_trivially_destructible_v<element<value_type>>;
  static_assert(alignof(slot) <= 16 && sizeof(frame_type) <= sizeof(slot) && alignof(frame_type) <= alignof(slot));
  static constexpr std::size_t bytes_for(std::size_t count) noexcept { return before_slots + count * sizeof(slot); }
  void* place_of(std::size_t index) const noexcept {
    return reinterpret_cast<std::byte*>(rooms_) + before_slots + index * sizeof(slot);
  }
  slot* first_slot() const noexcept { return count_ != 0 ? &slot_of(0) : nullptr; }
  slot& slot_of(std::size_t index) const noexcept { return *std::launder(static_cast<slot*>(place_of(index))); }

  // Where a child that borrows returns to. What each child costs is here, in one function.
  static void child_returned(detail::frame* self) {
    auto& mine = static_cast<made_children&>(join::of(self));
    const std::size_t next = mine.borrower_has_ended();
    mine.settle_child(next - 1);
    if (mine.has_begun_all()) WEFT_JUMP_TO(mine.parent());
    if (!begins_with_next(mine)) [[unlikely]]
      WEFT_GO_ON_IN(make_next, self);
    const std::coroutine_handle<> child = mine.make_child(next);
    mine.has_made_one();
    if (child == nullptr) [[unlikely]]
      WEFT_GO_ON_IN(make_next, self);
    WEFT_JUMP_TO(mine.lend_made(child));
  }

  WEFT_ALWAYS_INLINE inline std::coroutine_handle<> make_child(std::size_t index) noexcept {
    void* const place = place_of(index);
    try {
      return *::new (place) frame_type{task_access::release(as_task(std::as_const(make_)(index)))};
    } catch (...) {
      fail_with(place, std::current_exception());
      return {};
    }
  }
  WEFT_ALWAYS_INLINE inline void settle_child(std::size_t index) noexcept {
    void* const place = place_of(index);
    const frame_type child = *std::launder(static_cast<frame_type*>(place));
    slot& into = *::new (place) slot;
    into.take_from(child.promise());
    if (into.is_exception()) [[unlikely]]
      this->note_failure();
    child.destroy();
  }
  [[gnu::cold]] void fail_with(void* place, std::exception_ptr failure) noexcept {
    (::new (place) slot)->set_exception(std::move(failure));
    this->note_failure();
  }

  static std::coroutine_handle<> make(join& self, std::size_t index) noexcept {
    return static_cast<made_children&>(self).make_child(index);
  }
  static void fail(join& self, std::size_t index) noexcept {
    auto& mine = static_cast<made_children&>(self);
    mine.fail_with(mine.place_of(index), std::make_exception_ptr(std::bad_alloc{}));
  }
  static void settle(join& self, std::size_t index, bool stopped) noexcept {
    auto& mine = static_cast<made_children&>(self);
    if (!stopped)
      mine.settle_child(index);
    else
      ::new (mine.place_of(index)) slot;
  }
  static bool any_failed(join& self) noexcept { return static_cast<made_children&>(self).has_failed(); }
  static constexpr kind of_made{settle, any_failed, true, make, fail, child_returned};

  [[no_unique_address]] Make make_;
};

}  // namespace weft::detail
