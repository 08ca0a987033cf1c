// The children of a when_all of tasks that are named. Part of combine.hpp; how they run is in join/join.hpp.
#pragma once

#include <cstddef>
#include <new>
#include <tuple>
#include <utility>
#include <weft/detail/base/standard.hpp>
#include <weft/detail/join/group.hpp>
#include <weft/detail/join/join.hpp>
#include <weft/task.hpp>

namespace weft::detail {

/// Room for a T, which whoever knows when makes and destroys.
template <class T>
union uninitialized {
  uninitialized() noexcept {}
  ~uninitialized() {}
  T it;
};

/// Room for children's roots, and for their results. Lies before the join, which is used more.
template <class... Ts>
struct join_rooms {
  std::tuple<uninitialized<outcome<Ts>>...> slots;  // while `in_slots_`
  join::room rooms[sizeof...(Ts) + 1];
};

/// `co_await when_all(a, b, ...)`.
template <class... Ts>
class WEFT_TO_BE_AWAITED("when_all does nothing until it is awaited") WEFT_ELIDABLE tuple_join : public knows_roots,
                                                                                                 join_rooms<Ts...>,
                                                                                                 join {
  static constexpr std::size_t count = sizeof...(Ts);
  using indices = std::index_sequence_for<Ts...>;

 public:
  explicit tuple_join(task<Ts>&&... tasks) noexcept
      : join{of_tuple, frames_, this->rooms, count}, frames_{task_access::release(std::move(tasks))...} {
    static_assert(sizeof(tuple_join) == sizeof(join_rooms<Ts...>) + sizeof(join) + sizeof frames_,
                  "the handles of the frames follow the join");
  }
  tuple_join(tuple_join&& other) noexcept : join{of_tuple, frames_, this->rooms, count} {  // before it is awaited
    for (std::size_t i = 0; i != count; ++i) frames_[i] = std::exchange(other.frames_[i], nullptr);
  }
  ~tuple_join() {
    if (frames_[0]) [[likely]] {
      for (std::size_t at = count; --at != 0;) frames_[at].destroy();  // the newest first, as they lie
      std::exchange(frames_[0], nullptr).destroy();
    } else if (this->in_slots_) {
      leave_slots();
    }
  }

  bool await_ready() const noexcept { return false; }
  template <class Promise>
  WEFT_PER_AWAIT std::coroutine_handle<> await_suspend(std::coroutine_handle<Promise> caller) noexcept {
    root& self = *caller.promise().owner;
    if constexpr (count > 1)
      return transfer(self, this->start(self, caller, frames_[0]));
    else
      return transfer(self, this->start(self, caller));
  }
  std::tuple<element<Ts>...> await_resume() {
    if (!frames_[0]) [[unlikely]]
      return take_from_slots();
    return take_from_frames(indices{});
  }

 private:
  template <std::size_t I>
  auto& promise() noexcept {
    using result = std::tuple_element_t<I, std::tuple<Ts...>>;
    return std::coroutine_handle<task_promise<result>>::from_address(frames_[I].address()).promise();
  }
  // The first failure in order is thrown by take_element().
  template <std::size_t... I>
  std::tuple<element<Ts>...> take_from_frames(std::index_sequence<I...>) {
    return std::tuple<element<Ts>...>{take_element(this->template promise<I>())...};
  }
  // Beside one that failed, one that was stopped has left its slot empty.
  std::tuple<element<Ts>...> take_from_slots() {
    return std::apply(
        [](auto&... slots) {
          (throw_failure(slots.it), ...);
          return std::tuple<element<Ts>...>{take_element(slots.it)...};
        },
        this->slots);
  }

  template <std::size_t I>
  void settle_child(bool stopped) noexcept {
    auto& slot = *::new (&std::get<I>(this->slots).it) outcome<std::tuple_element_t<I, std::tuple<Ts...>>>;
    if (!stopped) {
      slot.take_from(this->template promise<I>());
      frames_[I].destroy();
    }
    frames_[I] = nullptr;
  }
  // Apart, so that the way of results in frames needs no room on the stack.
  [[gnu::noinline]] void leave_slots() noexcept {
    this->in_slots_ = false;
    std::apply([](auto&... slots) { (std::destroy_at(&slots.it), ...); }, this->slots);
  }
  static void settle(join& self, std::size_t index, bool stopped) noexcept {
    [&]<std::size_t... I>(tuple_join& mine, std::index_sequence<I...>) {
      ((index == I ? mine.template settle_child<I>(stopped) : void()), ...);
    }(static_cast<tuple_join&>(self), indices{});
  }
  static bool any_failed(join& self) noexcept {
    return std::apply([](const auto&... slots) { return (slots.it.is_exception() || ...); },
                      static_cast<tuple_join&>(self).slots);
  }
  static constexpr kind of_tuple{.settle = settle, .any_failed = any_failed, .at_once = false, .frames_follow = true};

  std::coroutine_handle<> frames_[count];  // the first one is null: all are, for what they gave is in the slots
};
template <class... Ts>
inline constexpr bool owns_callees<tuple_join<Ts...>> = true;

template <>
class WEFT_TO_BE_AWAITED("when_all does nothing until it is awaited") tuple_join<> : public knows_roots {
 public:
  bool await_ready() const noexcept { return true; }
  void await_suspend(std::coroutine_handle<>) const noexcept {}
  std::tuple<> await_resume() const noexcept { return {}; }
};

}  // namespace weft::detail
