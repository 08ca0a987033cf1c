// In the place of weft's file of this name: atomics and plain variables whose every access relacy sees.
#pragma once

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

template <class T>
class atomic {
 public:
  atomic(T value) { value_.store(value, rl::mo_relaxed, RL_INFO); }

  T load(std::memory_order order) const { return value_.load(model_order(order), RL_INFO); }
  void store(T value, std::memory_order order) { value_.store(value, model_order(order), RL_INFO); }
  bool compare_exchange_weak(T& expected, T desired, std::memory_order done, std::memory_order failed) {
    return value_.compare_exchange_weak(expected, desired, model_order(done), RL_INFO, model_order(failed), RL_INFO);
  }
  bool compare_exchange_strong(T& expected, T desired, std::memory_order done, std::memory_order failed) {
    return value_.compare_exchange_strong(expected, desired, model_order(done), RL_INFO, model_order(failed), RL_INFO);
  }
  T exchange(T value, std::memory_order order) { return value_.exchange(value, model_order(order), RL_INFO); }
  T fetch_or(T bits, std::memory_order order) { return value_.fetch_or(bits, model_order(order), RL_INFO); }
  T fetch_and(T bits, std::memory_order order) { return value_.fetch_and(bits, model_order(order), RL_INFO); }

 private:
  rl::atomic<T> value_;
};

template <class T>
class plain {
 public:
  plain(T value) { value_(RL_INFO) = value; }
  plain& operator=(T value) {
    value_(RL_INFO) = value;
    return *this;
  }
  operator T() const { return value_(RL_INFO); }
  T operator->() const { return value_(RL_INFO); }
  decltype(auto) operator*() const { return *static_cast<T>(value_(RL_INFO)); }

 private:
  mutable rl::var<T> value_;
};

}  // namespace weft::detail
