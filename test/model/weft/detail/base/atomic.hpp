// In the place of weft's file of this name: atomics and plain variables whose every access relacy sees.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <type_traits>

#include "relacy.hpp"

namespace weft::detail {

constexpr rl::memory_order model_order(std::memory_order order) {
  switch (order) {
    case std::memory_order_relaxed: return rl::mo_relaxed;
    case std::memory_order_consume: return rl::mo_consume;
    case std::memory_order_acquire: return rl::mo_acquire;
    case std::memory_order_release: return rl::mo_release;
    case std::memory_order_acq_rel: return rl::mo_acq_rel;
    default: return rl::mo_seq_cst;
  }
}

/// A variable of the model. All are listed, since relacy must hear of the end of each: records that are written in place
/// have no destructor, and end with the storage that they lie in.
class listed {
 public:
  /// By whoever frees it, before.
  static void end_all_in(const void* storage, std::size_t size) {
    const auto from = static_cast<const std::byte*>(storage);
    for (listed *one = first, *next; one != nullptr; one = next) {
      next = one->next_;
      const auto at = reinterpret_cast<const std::byte*>(one);
      if (!std::less<>{}(at, from) && std::less<>{}(at, from + size)) one->end_(*one);
    }
  }

 protected:
  explicit listed(void (*end)(listed&)) : end_{end}, next_{first} {
    if (next_ != nullptr) next_->before_ = this;
    first = this;
  }
  listed(const listed&) = delete;
  ~listed() {
    (before_ != nullptr ? before_->next_ : first) = next_;
    if (next_ != nullptr) next_->before_ = before_;
  }

 private:
  static inline listed* first = nullptr;
  void (*end_)(listed&);
  listed* next_;
  listed* before_ = nullptr;
};

/// Holds any small type as a number, which is what relacy can print.
template <class T>
class atomic : listed {
 public:
  atomic(T value) : listed{[](listed& self) { static_cast<atomic&>(self).~atomic(); }} {
    value_.store(number(value), rl::mo_relaxed, RL_INFO);
  }
  atomic() : atomic{T{}} {}

  T load(std::memory_order order) const { return back(value_.load(model_order(order), RL_INFO)); }
  void store(T value, std::memory_order order) { value_.store(number(value), model_order(order), RL_INFO); }
  bool compare_exchange_weak(T& expected, T desired, std::memory_order done, std::memory_order failed) {
    std::uint64_t found = number(expected);
    const bool did =
        value_.compare_exchange_weak(found, number(desired), model_order(done), RL_INFO, rl::mo_relaxed, RL_INFO);
    expected = back(found);
    return after(did, failed);
  }
  bool compare_exchange_strong(T& expected, T desired, std::memory_order done, std::memory_order failed) {
    std::uint64_t found = number(expected);
    const bool did =
        value_.compare_exchange_strong(found, number(desired), model_order(done), RL_INFO, rl::mo_relaxed, RL_INFO);
    expected = back(found);
    return after(did, failed);
  }
  T exchange(T value, std::memory_order order) {
    return back(value_.exchange(number(value), model_order(order), RL_INFO));
  }
  T fetch_or(T bits, std::memory_order order) { return back(value_.fetch_or(bits, model_order(order), RL_INFO)); }
  T fetch_and(T bits, std::memory_order order) { return back(value_.fetch_and(bits, model_order(order), RL_INFO)); }
  T fetch_add(T more, std::memory_order order) { return back(value_.fetch_add(more, model_order(order), RL_INFO)); }
  T fetch_sub(T less, std::memory_order order) { return back(value_.fetch_sub(less, model_order(order), RL_INFO)); }

 private:
  // relacy knows no exchange that is weaker where it succeeds than where it fails, as C++17 does: a fence makes it so.
  static bool after(bool did, std::memory_order failed) {
    if (!did && failed == std::memory_order_acquire) rl::atomic_thread_fence(rl::mo_acquire, RL_INFO);
    return did;
  }

  static std::uint64_t number(T value) {
    if constexpr (std::is_pointer_v<T>)
      return reinterpret_cast<std::uint64_t>(value);
    else if constexpr (std::is_class_v<T>)
      return std::bit_cast<std::uint8_t>(value);  // narrow
    else
      return static_cast<std::uint64_t>(value);
  }
  static T back(std::uint64_t value) {
    if constexpr (std::is_pointer_v<T>)
      return reinterpret_cast<T>(value);
    else if constexpr (std::is_class_v<T>)
      return std::bit_cast<T>(static_cast<std::uint8_t>(value));
    else
      return static_cast<T>(value);
  }

  rl::atomic<std::uint64_t> value_;
};

template <class T>
class plain : listed {
 public:
  plain() : plain{T{}} {}
  plain(T value) : listed{[](listed& self) { static_cast<plain&>(self).~plain(); }} { value_(RL_INFO) = value; }
  plain(const plain& other) : plain{static_cast<T>(other)} {}
  ~plain() { value_(RL_INFO) = T{}; }  // a variable that ends while another thread may see it is a race, too
  plain& operator=(const plain& other) { return *this = static_cast<T>(other); }
  plain& operator=(T value) {
    value_(RL_INFO) = value;
    return *this;
  }
  T operator+=(T more) { return *this = static_cast<T>(*this) + more, *this; }
  T operator++() { return *this = static_cast<T>(*this) + 1, *this; }
  T operator--() { return *this = static_cast<T>(*this) - 1, *this; }
  operator T() const { return value_(RL_INFO); }
  T operator->() const { return value_(RL_INFO); }
  decltype(auto) operator*() const { return *static_cast<T>(value_(RL_INFO)); }

 private:
  mutable rl::var<T> value_;
};

}  // namespace weft::detail
