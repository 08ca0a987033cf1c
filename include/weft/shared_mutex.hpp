// A mutex that many may share: for readers and writers. What holds for all primitives stands in sync.hpp.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <weft/detail/base/atomic.hpp>
#include <weft/detail/core/root.hpp>
#include <weft/detail/core/waiter.hpp>
#include <weft/detail/sync/gate.hpp>
#include <weft/sync_stats.hpp>

namespace weft {

/// The options of a shared_mutex.
struct shared_mutex_options {
  bool prefer_writers = false;  ///< exclusive locks go before shared ones; otherwise in the order of arrival
};

/// A reader-writer lock: held exclusively by one, or shared by many. One of those that share it may hold an upgradable lock.
///
/// Cost  readers take a spin lock, too, so they contend for its cache line. For reads of less than some 100 ns a mutex is as
///       fast.
class shared_mutex : detail::gate {
 public:
  enum class mode { shared, upgradable, alone };

  /// Owns the mutex in one of these ways, or nothing. Move-only.
  template <mode Mode>
  class holder;
  using shared_guard = holder<mode::shared>;
  using upgradable_guard = holder<mode::upgradable>;
  using guard = holder<mode::alone>;

  /// Makes a free one.
  explicit shared_mutex(shared_mutex_options options = {}) noexcept : options_{options} {}
  ~shared_mutex();

  /// Locks it exclusively.
  [[nodiscard("nothing happens until it is awaited")]] auto lock() noexcept;
  /// Locks it shared with others.
  [[nodiscard("nothing happens until it is awaited")]] auto lock_shared() noexcept;
  /// The same, as the only one that may upgrade().
  [[nodiscard("nothing happens until it is awaited")]] auto lock_upgradable() noexcept;
  [[nodiscard("the mutex is given back where this ends")]] guard try_lock() noexcept;
  [[nodiscard("the mutex is given back where this ends")]] shared_guard try_lock_shared() noexcept;
  [[nodiscard("the mutex is given back where this ends")]] upgradable_guard try_lock_upgradable() noexcept;

  /// Counts of all waits: for shared and exclusive locks, and for upgrades.
  sync_stats stats() const noexcept;

 private:
  using waiter_line = detail::waiter_line;
  class waiter_for;
  template <mode Mode>
  class awaiter;
  class upgrade_awaiter;

  waiter_line& line_of(mode how) noexcept { return options_.prefer_writers && how == mode::alone ? writers_ : line_; }
  bool is_open(mode how) const noexcept;
  bool goes_first(mode how) const noexcept;
  void take(mode how, std::uintptr_t by) noexcept;
  bool try_take(mode how) noexcept;
  void release(mode how) noexcept;
  void downgrade(mode from) noexcept;
  // By the holder, whose guard is moved.
  void forget_holder(mode how) noexcept {
    if (how == mode::shared) return;
    auto& by = how == mode::alone ? alone_ : upgradable_;
    by.store(detail::holder::somebody, std::memory_order_relaxed);  // as declared: others only ask whether it is held
  }
  void grant(let_through& through) noexcept;
  void grant_and_unlock() noexcept;
  bool is_open_to_all() const noexcept;
  bool grant_first(waiter_line& line, let_through& through) noexcept;
  waiter_for* next_in(const waiter_line& line) const noexcept;

  const shared_mutex_options options_;
  waiter_line writers_;  // with prefer_writers, those that want it alone
  std::size_t sharing_ = 0;
  // Who holds it so (detail::holder). Under the lock, but for who asks what others wait for: relaxed, it carries nothing.
  detail::atomic<std::uintptr_t> alone_{0};
  detail::atomic<std::uintptr_t> upgradable_{0};
  detail::waiter* upgrading_ = nullptr;  // and waits for those that share it to leave
};

template <shared_mutex::mode Mode>
class [[nodiscard("the mutex is given back where this ends")]] shared_mutex::holder {
 public:
  holder() noexcept = default;
  /// Afterwards waits_on() and snapshots no longer know who holds it.
  holder(holder&& other) noexcept : of_{std::exchange(other.of_, nullptr)} {
    if (of_ != nullptr) of_->forget_holder(Mode);
  }
  holder& operator=(holder&& other) noexcept {
    holder{std::move(other)}.swap(*this);
    return *this;
  }
  ~holder() { unlock(); }

  explicit operator bool() const noexcept { return of_ != nullptr; }
  void unlock() noexcept {
    if (of_ != nullptr) std::exchange(of_, nullptr)->release(Mode);
  }
  void swap(holder& other) noexcept {
    std::swap(of_, other.of_);
    if (of_ != nullptr) of_->forget_holder(Mode);
    if (other.of_ != nullptr) other.of_->forget_holder(Mode);
  }

  /// Makes an upgradable lock exclusive: waits until nobody else shares it. `auto alone = co_await std::move(held).upgrade();`.
  /// Nobody else holds it exclusively in between. If this is stopped, the lock is held as before.
  [[nodiscard("nothing happens until it is awaited")]] auto upgrade() && noexcept
    requires(Mode == mode::upgradable);

  /// Makes an exclusive lock shared; others may share it from now on.
  shared_guard downgrade() && noexcept
    requires(Mode != mode::shared)
  {
    WEFT_EXPECTS(of_ != nullptr, "a guard that owns no mutex was downgraded");
    of_->downgrade(Mode);
    return shared_guard{std::exchange(of_, nullptr)};
  }

 private:
  friend class shared_mutex;
  template <mode>
  friend class holder;
  explicit holder(shared_mutex* of) noexcept : of_{of} {}

  shared_mutex* of_ = nullptr;
};

class shared_mutex::waiter_for : public detail::gate_waiter {
 public:
  waiter_for(shared_mutex& of, mode how) noexcept : gate_waiter{of, type}, how_{how} {}
  bool suspend(detail::root& self) noexcept;
  bool seems_ready() const noexcept;
  bool done_at_once(const detail::root& self) noexcept;
  bool try_locked(std::uintptr_t by) noexcept;
  void enter_locked() noexcept { of().enter(*this, of().line_of(how_)); }

 protected:
  bool take_or_wait(detail::root& self) noexcept;
  ~waiter_for() = default;
  friend class shared_mutex;
  shared_mutex& of() noexcept { return static_cast<shared_mutex&>(*gate_); }
  static detail::on_stop leave(detail::waiter& self) noexcept;
  static void tell(const waiter& self, const char* what, detail::wait_subjects& into) noexcept;
  static const detail::wait_layout seen;
  static constexpr detail::wait_type type{.leave = leave, .name = "shared_mutex", .tell = tell, .layout = &seen};

  const mode how_;
};
WEFT_LAYOUT(shared_mutex::waiter_for,
            stored_at(WEFT_BEHIND_WAITER(waiter_for, gate_))
                .held_by_word(offsetof(shared_mutex, alone_))
                .or_by_word(offsetof(shared_mutex, upgradable_), WEFT_BEHIND_WAITER(waiter_for, how_),
                            static_cast<unsigned>(mode::shared)));

template <shared_mutex::mode Mode>
class shared_mutex::awaiter : public waiter_for, public detail::gate_awaiter<awaiter<Mode>> {
 public:
  explicit awaiter(shared_mutex& of, std::size_t) noexcept : waiter_for{of, Mode} {}
  using waiter_for::done_at_once;
  using waiter_for::seems_ready;
  using waiter_for::suspend;
  holder<Mode> await_resume() noexcept { return holder<Mode>{&of()}; }
};

class shared_mutex::upgrade_awaiter : public detail::gate_waiter, public detail::gate_awaiter<upgrade_awaiter> {
 public:
  explicit upgrade_awaiter(upgradable_guard& from, std::size_t) noexcept;
  bool suspend(detail::root& self) noexcept;
  bool seems_ready() const noexcept { return true; }  // mostly nobody shares it any more, or soon
  bool done_at_once(const detail::root& self) noexcept;
  bool try_locked(std::uintptr_t by) noexcept;
  void enter_locked() noexcept {
    of().upgrading_ = this;
    ++of().waits_;
  }
  guard await_resume() noexcept { return guard{std::exchange(from_.of_, nullptr)}; }

 private:
  static detail::on_stop leave(detail::waiter& self) noexcept;
  static constexpr detail::wait_type type{
      .leave = leave, .name = "shared_mutex, to upgrade", .tell = tell, .layout = &seen};
  static shared_mutex& owned_by(upgradable_guard& from) noexcept;
  shared_mutex& of() noexcept { return static_cast<shared_mutex&>(*gate_); }
  upgradable_guard& from_;
};

inline auto shared_mutex::lock() noexcept { return detail::at_gate<awaiter<mode::alone>, shared_mutex>{*this}; }
inline auto shared_mutex::lock_shared() noexcept { return detail::at_gate<awaiter<mode::shared>, shared_mutex>{*this}; }
inline auto shared_mutex::lock_upgradable() noexcept {
  return detail::at_gate<awaiter<mode::upgradable>, shared_mutex>{*this};
}
inline shared_mutex::guard shared_mutex::try_lock() noexcept { return guard{try_take(mode::alone) ? this : nullptr}; }
inline shared_mutex::shared_guard shared_mutex::try_lock_shared() noexcept {
  return shared_guard{try_take(mode::shared) ? this : nullptr};
}
inline shared_mutex::upgradable_guard shared_mutex::try_lock_upgradable() noexcept {
  return upgradable_guard{try_take(mode::upgradable) ? this : nullptr};
}
template <shared_mutex::mode Mode>
auto shared_mutex::holder<Mode>::upgrade() && noexcept
  requires(Mode == mode::upgradable)
{
  WEFT_EXPECTS(of_ != nullptr, "a guard that owns no mutex was upgraded");
  return detail::at_gate<upgrade_awaiter, holder>{*this};
}

}  // namespace weft
