// The receiver of a broadcast or a watch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <type_traits>
#include <utility>
#include <weft/async_generator.hpp>
#include <weft/detail/channel/channel_core.hpp>
#include <weft/detail/core/root.hpp>
#include <weft/detail/core/waiter.hpp>
#include <weft/detail/sync/gate.hpp>
#include <weft/error.hpp>
#include <weft/task.hpp>

namespace weft {

/// Thrown by a receiver that a broadcast has ended because it was too slow. Its code is errc::closed.
class receiver_too_slow : public error {
 public:
  receiver_too_slow() : error{errc::closed, "receive", "too slow"} {}
};

namespace detail {
template <class Source>
class subscriber_awaiter;
template <class Source>
class subscriber_receiving;
template <class Source>
class subscriber_case;
}  // namespace detail

/// A receiver of a broadcast or a watch, made by its `subscribe()`. Each receiver gets the values independently of others.
/// Move-only, but not while it waits.
///
/// Threads   any thread, one receive at a time: several tasks need a receiver each.
/// Lifetime  the broadcast or watch outlives it (asserted).
template <class Source>
class [[nodiscard("it receives while it lives")]] receiver_of {
 public:
  using value_type = typename Source::value_type;

  receiver_of() noexcept = default;
  receiver_of(receiver_of&& other) noexcept
      : from_{(other.expect_nobody(), std::exchange(other.from_, nullptr))}, at_{other.at_} {}
  receiver_of& operator=(receiver_of&& other) noexcept {
    if (this == &other) return *this;
    other.expect_nobody();
    leave();
    from_ = std::exchange(other.from_, nullptr);
    at_ = other.at_;
    return *this;
  }
  ~receiver_of() { leave(); }

  explicit operator bool() const noexcept { return from_ != nullptr; }

  /// Receives the next value; std::nullopt when the broadcast or watch is closed and no value is left.
  ///
  /// Suspends  only where there is no new value.
  /// Cancel    a stopped call has received nothing: the next call gets the value.
  /// Fails     receiver_too_slow, of a broadcast with slow_receiver::end.
  /// Cost      no allocation; one copy of the value.
  [[nodiscard("nothing happens until it is awaited")]] detail::subscriber_receiving<Source> receive() noexcept;
  /// Receives a value if there is one, without waiting.
  [[nodiscard("what was received is lost")]] std::optional<value_type> try_receive();
  /// The values that it receives, up to the end, for pipelines: `r.values() | transform(f)`.
  async_generator<value_type> values() {
    while (std::optional<value_type> value = co_await receive()) co_yield std::move(*value);
  }

  /// How many values it has missed because it was too slow; counted when it receives the next one.
  std::uint64_t missed() const noexcept { return at_.missed; }

  /// Ends the subscription: it receives nothing more.
  void leave() noexcept {
    if (from_ == nullptr) return;
    expect_nobody();
    detail::let_through through;
    Source& from = *std::exchange(from_, nullptr);
    from.lock.lock();
    from.drop(at_, through);
    from.lock.unlock();
  }

 private:
  friend Source;
  friend detail::subscriber_awaiter<Source>;
  friend detail::subscriber_case<Source>;
  receiver_of(Source& from, const typename Source::place& at) noexcept : from_{&from}, at_{at} {}
  void expect_nobody() const noexcept {
    WEFT_EXPECTS(!at_.awaited, "a receiver was moved, destroyed or told to leave while somebody waits with it");
  }

  Source* from_ = nullptr;
  typename Source::place at_{};
};

// ---- implementation -----------------------------------------------------------------------------------------------------

namespace detail {

enum class receipt { done, over, too_slow, must_wait };

/// Somebody in the line of a broadcast or a watch.
template <class Source>
struct subscriber : channel_waiter {
  subscriber(const wait_type& type, typename Source::place& mine,
             std::optional<typename Source::value_type>& to) noexcept
      : channel_waiter{type}, at{mine}, slot{to} {}
  typename Source::place& at;
  std::optional<typename Source::value_type>& slot;
};

template <class Source>
class subscriber_awaiter : subscriber<Source>, public gate_awaiter<subscriber_awaiter<Source>> {
  using value_type = typename Source::value_type;

 public:
  explicit subscriber_awaiter(receiver_of<Source>& by) noexcept
      : subscriber<Source>{type, by.at_, value_}, from_{by.from_} {
    WEFT_EXPECTS(from_ != nullptr, "a receiver that has left was told to receive");
  }
  ~subscriber_awaiter() { wait_is_over(); }

  bool suspend(root& self) noexcept {
    if (self.sleeper::stop_requested()) return (end_stopped(self), true);
    expect_one(this->at);
    let_through through;
    from_->lock.lock();
    const receipt how = from_->try_receive_now(this->at, value_, through);
    if (how == receipt::must_wait) {
      waits_ = this->at.awaited = true;
      return (from_->wait(self, *this, from_->line()), true);  // the task may be gone after this line
    }
    from_->lock.unlock();
    too_slow_ = how == receipt::too_slow;
    return false;
  }
  // See detail::may_need_no_wait.
  bool seems_ready() const noexcept { return from_->may_receive(this->at); }
  bool done_at_once(const root& self) noexcept {
    if (self.sleeper::stop_requested()) return false;
    let_through through;
    from_->lock.lock();
    const receipt how = from_->try_receive_now(this->at, value_, through);
    from_->lock.unlock();
    too_slow_ = how == receipt::too_slow;
    return how != receipt::must_wait;
  }
  std::optional<value_type> await_resume() {
    wait_is_over();
    if (too_slow_) throw receiver_too_slow{};
    return std::move(value_);
  }

  template <class Place>
  static void expect_one(const Place& at) noexcept {
    WEFT_EXPECTS(!at.awaited, "two wait with one receiver: who else wants to receive subscribes, too");
  }

 private:
  void wait_is_over() noexcept {
    if (std::exchange(waits_, false)) this->at.awaited = false;
  }
  static on_stop leave(waiter& self) noexcept {
    auto& mine = static_cast<subscriber_awaiter&>(self);
    mine.from_->channel_core::leave(mine, mine.from_->line());
    return on_stop::left;
  }
  static void tell(const waiter& self, const char* what, wait_subjects& into) noexcept {
    into.add(what, static_cast<const subscriber_awaiter&>(self).from_);
  }
  static const wait_layout seen;
  static constexpr wait_type type{.leave = leave, .name = Source::to_receive, .tell = tell, .layout = &seen};

  Source* from_;
  std::optional<value_type> value_;
  bool too_slow_ = false;
  bool waits_ = false;  // in line, or woken and not gone on yet
};
WEFT_LAYOUT_IN(Source, subscriber_awaiter<Source>, stored_at(WEFT_BEHIND_WAITER(subscriber_awaiter, from_)));

template <class Source>
class WEFT_TO_BE_AWAITED("nothing is received until it is awaited") subscriber_receiving : public knows_roots {
 public:
  using may_be_a_case = void;
  explicit subscriber_receiving(receiver_of<Source>& by) noexcept : by_{&by} {}
  subscriber_awaiter<Source> operator co_await() const noexcept { return subscriber_awaiter<Source>{*by_}; }
  subscriber_case<Source> as_case() const noexcept { return subscriber_case<Source>{*by_}; }

 private:
  receiver_of<Source>* by_;
};

}  // namespace detail

template <class Source>
detail::subscriber_receiving<Source> receiver_of<Source>::receive() noexcept {
  return detail::subscriber_receiving<Source>{*this};
}

template <class Source>
auto receiver_of<Source>::try_receive() -> std::optional<value_type> {
  WEFT_EXPECTS(from_ != nullptr, "a receiver that has left was told to receive");
  detail::let_through through;
  std::optional<value_type> value;
  from_->lock.lock();
  const detail::receipt how = from_->try_receive_now(at_, value, through);
  from_->lock.unlock();
  if (how == detail::receipt::too_slow) throw receiver_too_slow{};
  return value;
}

}  // namespace weft
