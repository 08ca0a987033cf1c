// Permits. What holds for all primitives stands in sync.hpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <weft/detail/base/peeked.hpp>
#include <weft/detail/core/root.hpp>
#include <weft/detail/core/waiter.hpp>
#include <weft/detail/sync/gate.hpp>
#include <weft/sync_stats.hpp>

namespace weft {

/// A counting semaphore.
///
///     auto permit = co_await limit.acquire();  // given back at the end of the block
class semaphore : detail::gate {
 public:
  class permit;

  explicit semaphore(std::size_t permits) noexcept : available_{permits} {}  ///< how many are free at first

  /// Takes `count` permits at once. A waiter for many permits is not overtaken by those behind it that want few.
  [[nodiscard("nothing happens until it is awaited")]] auto acquire(std::size_t count = 1) noexcept;
  /// Takes the permits if they are free and nobody waits; otherwise gives an empty permit. Never waits.
  [[nodiscard("the permits are given back where this ends")]] permit try_acquire(std::size_t count = 1) noexcept;
  /// Adds permits: ones that were taken and kept, or new ones. Cost: a wake-up for each waiter that gets some.
  void release(std::size_t count = 1) noexcept;

  std::size_t available() const noexcept;  ///< may have changed when it is returned
  /// How many wait, and have waited; may have changed when it is returned. Takes the lock, and walks along the line.
  using gate::stats;

 private:
  class awaiter;
  void grant(let_through& through) noexcept;
  awaiter* next() const noexcept;
  detail::peeked<std::size_t> available_;
};

/// Owns permits of a semaphore, or nothing. Move-only. Its destructor gives them back.
class [[nodiscard("the permit is given back where this ends")]] semaphore::permit {
 public:
  permit() noexcept = default;
  permit(permit&& other) noexcept : of_{std::exchange(other.of_, nullptr)}, count_{other.count_} {}
  permit& operator=(permit&& other) noexcept {
    release();
    of_ = std::exchange(other.of_, nullptr);
    count_ = other.count_;
    return *this;
  }
  ~permit() { release(); }

  explicit operator bool() const noexcept { return of_ != nullptr; }
  /// Gives them back now.
  void release() noexcept {
    if (of_ != nullptr) std::exchange(of_, nullptr)->release(count_);
  }
  /// Gives up ownership without giving them back: somebody calls semaphore::release() instead, or nobody.
  void keep() noexcept { of_ = nullptr; }

 private:
  friend class semaphore;
  permit(semaphore* of, std::size_t count) noexcept : of_{of}, count_{count} {}

  semaphore* of_ = nullptr;
  std::size_t count_ = 0;
};

class semaphore::awaiter : public detail::gate_waiter, public detail::gate_awaiter<awaiter> {
 public:
  awaiter(semaphore& of, std::size_t count) noexcept : gate_waiter{of, type}, count_{count} {}
  bool suspend(detail::root& self) noexcept;
  bool seems_ready() const noexcept { return static_cast<const semaphore&>(*gate_).available_.peek() >= count_; }
  bool done_at_once(const detail::root& self) noexcept;
  bool try_locked(std::uintptr_t) noexcept;
  void enter_locked() noexcept { of().enter(*this, of().line_); }
  permit await_resume() noexcept { return permit{&of(), count_}; }

 private:
  friend class semaphore;
  semaphore& of() noexcept { return static_cast<semaphore&>(*gate_); }
  static detail::on_stop leave(detail::waiter& self) noexcept;
  static constexpr detail::wait_type type{.leave = leave, .name = "semaphore", .tell = tell, .layout = &seen};
  const std::size_t count_;
};

inline auto semaphore::acquire(std::size_t count) noexcept { return detail::at_gate<awaiter, semaphore>{*this, count}; }

}  // namespace weft
