// The children of a when_all(n, make): each is made where and when it begins. Part of combine.hpp; how they run is in
// detail/join.hpp.
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
#include <tuple>
#include <utility>
#include <vector>
#include <weft/detail/group.hpp>
#include <weft/detail/join.hpp>
#include <weft/detail/standard.hpp>
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
      : join{of_made, nullptr, nullptr, count <= most ? count : 0}, make_{std::move(make)} {
    if (count > most) throw std::bad_alloc{};
    if (count != 0) lies_at(nullptr, static_cast<room*>(allocate_frame(bytes_for(count))));
  }
  made_children(made_children&& other) noexcept  // before it is awaited
      : join{of_made, nullptr, other.rooms_, other.count_}, make_{std::move(other.make_)} {
    other.count_ = 0;
  }
  ~made_children() {
    if (count_ == 0) return;
    if (this->has_begun()) {
      std::destroy_n(&slot_of(0), count_);
      this->free_roots();
    }
    free_frame(rooms_, bytes_for(count_));
  }

  /// Throws the first failure, if there is one.
  void throw_first_failure() {
    for (std::size_t i = 0; i != count_; ++i) throw_failure(slot_of(i));
  }
  /// Then: calls `put` with each value, in order.
  template <class Put>
  void give(Put put) {
    for (std::size_t i = 0; i != count_; ++i) put(take_element(slot_of(i)));
  }

 private:
  static constexpr std::size_t most = std::numeric_limits<std::uint32_t>::max() / 2;
  static constexpr std::size_t before_slots = (bytes_for_made + alignof(slot) - 1) / alignof(slot) * alignof(slot);
  using frame_type = std::coroutine_handle<task_promise<value_type>>;
  static_assert(alignof(slot) <= 16 && sizeof(frame_type) <= sizeof(slot) && alignof(frame_type) <= alignof(slot));
  static constexpr std::size_t bytes_for(std::size_t count) noexcept { return before_slots + count * sizeof(slot); }
  void* place_of(std::size_t index) const noexcept {
    return reinterpret_cast<std::byte*>(rooms_) + before_slots + index * sizeof(slot);
  }
  slot& slot_of(std::size_t index) const noexcept { return *std::launder(static_cast<slot*>(place_of(index))); }

  static std::coroutine_handle<> make(join& self, std::size_t index) noexcept {
    auto& mine = static_cast<made_children&>(self);
    try {
      return *::new (mine.place_of(index)) frame_type{task_access::release(as_task(std::as_const(mine.make_)(index)))};
    } catch (...) {
      (::new (mine.place_of(index)) slot)->set_exception(std::current_exception());
      return {};
    }
  }
  static void fail(join& self, std::size_t index) noexcept {
    auto& mine = static_cast<made_children&>(self);
    (::new (mine.place_of(index)) slot)->set_exception(std::make_exception_ptr(std::bad_alloc{}));
  }
  static void settle(join& self, std::size_t index, bool stopped) noexcept {
    void* const place = static_cast<made_children&>(self).place_of(index);
    const frame_type child = *std::launder(static_cast<frame_type*>(place));
    auto& into = *::new (place) slot;
    if (stopped) return;
    into.take_from(child.promise());
    child.destroy();
  }
  static bool any_failed(join& self) noexcept {
    const auto& mine = static_cast<made_children&>(self);
    for (std::size_t i = 0; i != mine.count_; ++i)
      if (mine.slot_of(i).is_exception()) return true;
    return false;
  }
  static constexpr kind of_made{settle, any_failed, true, make, fail};

  [[no_unique_address]] Make make_;
};

/// What they give, in a vector.
template <class Make>
class [[nodiscard("when_all does nothing until it is awaited")]] made_join final : public made_children<Make> {
 public:
  made_join(std::size_t count, Make&& make) : made_children<Make>{count, std::move(make)} {}
  std::vector<element<made_result<Make>>> await_resume() {
    this->throw_first_failure();
    std::vector<element<made_result<Make>>> values;
    values.reserve(this->count_);
    this->give([&](element<made_result<Make>>&& value) { values.push_back(std::move(value)); });
    return values;
  }
};

/// The same, where an iterator says.
template <class Make, class Out>
class [[nodiscard("when_all does nothing until it is awaited")]] made_join_into final : public made_children<Make> {
 public:
  made_join_into(std::size_t count, Make&& make, Out&& into)
      : made_children<Make>{count, std::move(make)}, into_{std::move(into)} {}
  Out await_resume() {
    this->throw_first_failure();
    this->give([&](element<made_result<Make>>&& value) {
      *into_ = std::move(value);
      ++into_;
    });
    return std::move(into_);
  }

 private:
  Out into_;
};
template <class Make>
class [[nodiscard("when_all does nothing until it is awaited")]]
made_join_into<Make, ignores>
    final : public made_children<Make> {
 public:
  made_join_into(std::size_t count, Make&& make, ignores&&) : made_children<Make>{count, std::move(make)} {}
  void await_resume() { this->throw_first_failure(); }
};

}  // namespace weft::detail
