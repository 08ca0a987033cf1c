// The outcome of a coroutine: a part of its promise, or of the slot of the coroutine that waits for it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <new>
#include <type_traits>
#include <utility>
#include <weft/detail/base/narrow.hpp>
#include <weft/detail/core/root.hpp>
#include <weft/error.hpp>

namespace weft::detail {

/// How a coroutine ended, and with what. Aligned to 16 at most, so that promise_base::of holds: a value that wants more
/// is aligned by hand within its room. That of void is one word: an exception_ptr, or a number that no pointer is.
template <class T>
class outcome {
  using stored = detail::stored<T>;
  static constexpr bool overaligned = alignof(stored) > 16;
  static constexpr bool is_one_word = std::is_void_v<T>;

 public:
  outcome() noexcept {
    if constexpr (is_one_word) word_ = 0;
  }
  outcome(const outcome&) = delete;
  ~outcome() {
    if (is_exception()) [[unlikely]]
      exception_.~exception_ptr();
    else if constexpr (!std::is_trivially_destructible_v<stored>)
      if (how() == state::value) value().~stored();
  }

  template <class U>
  void set_value(U&& from) noexcept(std::is_nothrow_constructible_v<stored, U>) {
    if constexpr (std::is_reference_v<T>)
      ::new (place()) stored(__builtin_addressof(from));
    else if constexpr (!is_one_word)
      ::new (place()) stored(std::forward<U>(from));
    become(state::value);
  }
  void set_exception(std::exception_ptr failure) noexcept {
    if constexpr (!std::is_trivially_destructible_v<stored>)
      if (how() == state::value) value().~stored();  // a local's destructor threw after the co_return
    ::new (static_cast<void*>(__builtin_addressof(exception_))) std::exception_ptr(std::move(failure));
    if constexpr (!is_one_word) become(state::exception);
  }

  /// Takes the outcome of `other`, which is not empty. If moving the value throws, this holds that exception.
  void take_from(outcome& other) noexcept {
    if (other.is_exception()) return set_exception(std::move(other.exception_));
    if constexpr (is_one_word) {
      become(state::value);
    } else if constexpr (std::is_nothrow_move_constructible_v<stored>) {
      ::new (place()) stored(std::move(other.value()));
      become(state::value);
    } else {
      try {
        ::new (place()) stored(std::move(other.value()));
        become(state::value);
      } catch (...) {
        set_exception(std::current_exception());
      }
    }
  }

  bool is_empty() const noexcept { return how() == state::empty; }
  bool is_exception() const noexcept { return how() == state::exception; }
  const std::exception_ptr& exception() const noexcept { return exception_; }

  stored& value() noexcept {
    if constexpr (is_one_word) {
      static constinit nothing one_for_all;
      return one_for_all;
    } else {
      return *std::launder(static_cast<stored*>(place()));
    }
  }

  bool has_value() const noexcept { return how() == state::value; }
  std::exception_ptr& exception() noexcept { return exception_; }

  /// Moves the value out, or throws what is there instead.
  T take() {
    if (!has_value()) [[unlikely]]
      rethrow(std::move(exception_));
    return take_value();
  }
  /// The value, which is there.
  T take_value() {
    if constexpr (std::is_reference_v<T>)
      return static_cast<T>(*value());
    else if constexpr (!std::is_void_v<T>)
      return std::move(value());
  }
  /// The same as a result, which can hold either; what moving the value throws is an exception, too.
  result<T> take_result() noexcept {
    if (how() != state::value) return result<T>{exception_};
    if constexpr (std::is_reference_v<T>) {
      return result<T>{std::in_place, *value()};
    } else if constexpr (std::is_nothrow_move_constructible_v<stored>) {
      return result<T>{std::in_place, std::move(value())};
    } else {
      try {
        return result<T>{std::in_place, std::move(value())};
      } catch (...) {
        return result<T>{std::current_exception()};
      }
    }
  }

 protected:
  // A bit of the coroutine's, not of its outcome; it is kept here because there is room, until there is an outcome.
  void set_trivial(bool on) noexcept {
    if constexpr (is_one_word)
      word_ = on ? trivial_and_empty : 0;
    else
      marks_.trivial = on;
  }
  bool is_trivial() const noexcept {
    if constexpr (is_one_word)
      return word_ == trivial_and_empty;
    else
      return marks_.trivial;
  }

 private:
  enum class state { empty, value, exception };
  static constexpr std::uintptr_t is_value = 1,
                                  trivial_and_empty = 2;  // what one word is beside 0 and an exception_ptr

  struct marks {
    narrow<state> how = state::empty;
    bool trivial = false;
  };
  struct no_marks {};

  state how() const noexcept {
    if constexpr (is_one_word)
      return word_ == is_value ? state::value : (word_ & ~trivial_and_empty) == 0 ? state::empty : state::exception;
    else
      return marks_.how;
  }
  void become(state how) noexcept {
    if constexpr (is_one_word)
      word_ = is_value;
    else
      marks_.how = how;
  }

  void* place() noexcept {
    if constexpr (overaligned) {
      const auto address = reinterpret_cast<std::uintptr_t>(room_);
      return reinterpret_cast<void*>((address + alignof(stored) - 1) & ~(std::uintptr_t{alignof(stored)} - 1));
    } else {
      return room_;
    }
  }

  union {
    alignas(overaligned ? 16
                        : alignof(stored)) std::byte room_[sizeof(stored) + (overaligned ? alignof(stored) - 16 : 0)];
    std::exception_ptr exception_;
    std::uintptr_t word_;
  };
  [[no_unique_address]] std::conditional_t<is_one_word, no_marks, marks> marks_;
};

}  // namespace weft::detail
