// A value with its mutex. What holds for all primitives stands in sync.hpp.
#pragma once

#include <cstddef>
#include <memory>
#include <type_traits>
#include <utility>
#include <weft/detail/sync/gate.hpp>
#include <weft/mutex.hpp>
#include <weft/sync_stats.hpp>

namespace weft {

/// A value that can be accessed only while its mutex is held.
///
/// Cost  that of the mutex.
///
///     guarded<std::map<int, user>> users;
///     auto all = co_await users.lock();
///     all->erase(7);
template <class T>
class guarded {
 public:
  /// Constructs the value from these arguments.
  template <class... Args>
    requires std::is_constructible_v<T, Args...>
  explicit guarded(Args&&... args) : value_(std::forward<Args>(args)...) {}

  /// Gives access to the value while it lives. Move-only. Its destructor unlocks the mutex.
  class [[nodiscard("the value is given back where this ends")]] access {
   public:
    T& operator*() const noexcept { return *value_; }
    T* operator->() const noexcept { return value_; }
    explicit operator bool() const noexcept { return static_cast<bool>(held_); }
    void unlock() noexcept { held_.unlock(); }  ///< unlocks it now; the value must not be used afterwards

   private:
    friend class guarded;
    access(mutex::guard held, T& value) noexcept : held_{held.release()}, value_{std::addressof(value)} {}
    mutex::guard held_;
    T* value_;
  };

  /// Locks the mutex, as mutex::lock(), and gives access.
  [[nodiscard("nothing happens until it is awaited")]] auto lock() noexcept {
    return detail::at_gate<awaiter, guarded>{*this};
  }
  /// Gives access if the mutex is free; otherwise one that converts to false, and must not be used.
  [[nodiscard("the value is given back where this ends")]] access try_lock() noexcept {
    return access{mutex_.try_lock(), value_};
  }
  sync_stats stats() const noexcept { return mutex_.stats(); }  ///< those of its mutex

 private:
  class awaiter : public mutex::awaiter {
   public:
    explicit awaiter(guarded& of, std::size_t) noexcept : mutex::awaiter{of.mutex_, 1}, of_{of} {}
    access await_resume() noexcept { return access{mutex::awaiter::await_resume(), of_.value_}; }

   private:
    guarded& of_;
  };

  mutex mutex_;
  T value_;
};

}  // namespace weft
