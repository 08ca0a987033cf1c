// What the cases of a select wait with: a send, a receive, what happens once, or nothing at all. Part of select_cases.hpp; how a
// select works is in select_core.hpp. A case is a description; what it waits with is its `state`, which is made in the
// awaiter, and most of that only where it waits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>
#include <optional>
#include <utility>
#include <variant>
#include <weft/broadcast.hpp>
#include <weft/channel.hpp>
#include <weft/detail/base/forward.hpp>
#include <weft/detail/base/peeked.hpp>
#include <weft/detail/channel/select_wait.hpp>
#include <weft/detail/core/root.hpp>
#include <weft/detail/core/waiter.hpp>
#include <weft/detail/sync/gate.hpp>
#include <weft/detail/sync/learning_lock.hpp>

namespace weft::detail {

/// What a send and a receive have in common as cases of a select: a place in a line of a channel.
class channel_case : public select_case {
 public:
  learning_lock& its_lock() noexcept { return at_.lock; }
  void finish() noexcept {
    if (to_wake_ != nullptr) to_wake_->wake();
  }
  void enter(const waiter& parked) noexcept final {
    line_->push(*node_);
    ++at_.waits;
    node_->share(parked);
  }
  channel_waiter* place_at(const channel_core& one) noexcept final { return &at_ == &one ? node_ : nullptr; }
  void leave(bool was_in_line) noexcept final {
    if (was_in_line) at_.leave(*node_, *line_);
  }

 protected:
  explicit channel_case(channel_core& at) noexcept : at_{at} {}
  ~channel_case() = default;

  void prepare(select_wait& of, std::size_t index, channel_waiter& node, waiter_line& line) noexcept {
    node.select = &of;
    node.index = index;
    node_ = &node;
    line_ = &line;
  }

  channel_core& at_;
  channel_waiter* to_wake_;  // the other side of what was done at once

 private:
  void tell(wait_subjects& into) const noexcept final {
    into.add(line_ == &at_.senders ? "channel, to send" : "channel, to receive", &at_);
  }

  channel_waiter* node_;  // never asked to leave: the select's own wait is
  waiter_line* line_;
};

template <class T>
class receive_state final : public channel_case {
 public:
  explicit receive_state(receive_case<T>&& from) noexcept : receive_state{*from.from_} {}
  explicit receive_state(channel<T>& from) noexcept : channel_case{from} {}
  receive_state(const receive_state& other) noexcept : receive_state{other.from()} {}  // before it is awaited

  bool may_be_ready() const noexcept { return from().may_receive(); }
  std::uint32_t changes() const noexcept { return at_.changes.peek(); }
  bool try_now() noexcept {
    to_wake_ = nullptr;
    return from().try_receive_now(value_, to_wake_) != channel<T>::outcome::must_wait;
  }
  void prepare(select_wait& of, std::size_t index, root&) noexcept {
    channel_case::prepare(of, index, node_.emplace(waits_by_select, value_), at_.receivers);
  }
  std::optional<T> take() noexcept { return std::move(value_); }

 private:
  channel<T>& from() const noexcept { return static_cast<channel<T>&>(at_); }

  std::optional<T> value_;
  std::optional<typename channel<T>::receive_node> node_;  // where it waits

 public:
  static const case_layout seen;
};
WEFT_CASE_LAYOUT_IN(T, receive_state<T>, of("channel, to receive", offsetof(receive_state, at_)));

template <class T>
class send_state final : public channel_case {
 public:
  explicit send_state(send_case<T>&& from) noexcept : send_state{*from.to_, std::move(from.value_)} {}
  send_state(channel<T>& to, T&& value) noexcept : channel_case{to}, value_(std::move(value)) {}
  send_state(send_state&& other) noexcept : send_state{other.to(), std::move(other.value_)} {}  // before it is awaited

  bool may_be_ready() const noexcept { return to().may_send(); }
  std::uint32_t changes() const noexcept { return at_.changes.peek(); }
  bool try_now() noexcept {
    to_wake_ = nullptr;
    no_memory_ = !to().closed && !to().make_room();  // perhaps under the locks of all: rare, as the ring doubles
    if (no_memory_) return true;
    const auto how = to().try_send_now(value_, to_wake_);
    closed_ = how == channel<T>::outcome::closed;
    return how != channel<T>::outcome::must_wait;
  }
  void prepare(select_wait& of, std::size_t index, root&) noexcept {
    channel_case::prepare(of, index, node_.emplace(waits_by_select, value_), at_.senders);
  }
  std::monostate take() {
    if (closed_ || (node_ && node_->closed)) throw channel_closed<T>{std::move(value_)};
    if (no_memory_) throw std::bad_alloc{};
    return {};
  }

 private:
  channel<T>& to() const noexcept { return static_cast<channel<T>&>(at_); }

  T value_;
  bool closed_ = false;
  bool no_memory_ = false;
  std::optional<typename channel<T>::send_node> node_;  // where it waits

 public:
  static const case_layout seen;
};
WEFT_CASE_LAYOUT_IN(T, send_state<T>, of("channel, to send", offsetof(send_state, at_)));

template <class Source>
class subscriber_case final : public select_case {
 public:
  using result_type = std::optional<typename Source::value_type>;
  using state = subscriber_case;
  explicit subscriber_case(receiver_of<Source>& by) noexcept : by_{by} {
    WEFT_EXPECTS(by.from_ != nullptr, "a receiver that has left was told to receive");
  }
  subscriber_case(const subscriber_case& other) noexcept : subscriber_case{other.by_} {}  // before it is awaited

  bool may_be_ready() const noexcept { return true; }  // it takes the lock to know
  std::uint32_t changes() const noexcept { return 0; }
  learning_lock& its_lock() noexcept { return by_.from_->lock; }
  bool try_now() noexcept {
    const receipt how = by_.from_->try_receive_now(by_.at_, value_, through_.emplace());
    too_slow_ = how == receipt::too_slow;
    return how != receipt::must_wait;
  }
  void finish() noexcept { through_.reset(); }
  void prepare(select_wait& of, std::size_t index, root&) noexcept {
    node_.select = &of;
    node_.index = index;
    subscriber_awaiter<Source>::expect_one(by_.at_);
  }
  void enter(const waiter& parked) noexcept override {
    by_.at_.awaited = true;
    by_.from_->line().push(node_);
    ++by_.from_->waits;
    node_.share(parked);
  }
  channel_waiter* place_at(const channel_core& one) noexcept override { return by_.from_ == &one ? &node_ : nullptr; }
  void leave(bool was_in_line) noexcept override {
    if (was_in_line) by_.from_->channel_core::leave(node_, by_.from_->line());
    by_.at_.awaited = false;  // the sleeper's, or of who has claimed its wait
  }
  result_type take() {
    if (too_slow_) throw receiver_too_slow{};
    return std::move(value_);
  }

 private:
  void tell(wait_subjects& into) const noexcept override { into.add(Source::to_receive, by_.from_); }

  receiver_of<Source>& by_;
  std::optional<typename Source::value_type> value_;
  std::optional<let_through> through_;  // those that wait to send, and have room now
  bool too_slow_ = false;
  subscriber<Source> node_{waits_by_select, by_.at_, value_};

 public:
  static const case_layout seen;
};
WEFT_CASE_LAYOUT_IN(
    Source, subscriber_case<Source>,
    of(Source::to_receive, offsetof(subscriber_case, by_)).through(offsetof(receiver_of<Source>, from_)));

/// Something that happens once, outside of any channel, and for which one select waits.
class happening {
 public:
  learning_lock& lock() noexcept { return lock_; }
  bool happened() const noexcept { return happened_; }  // under the lock
  bool seems_happened() const noexcept { return happened_.peek(); }
  void enter(channel_waiter& one) noexcept { waits_ = &one; }  // under the lock
  void leave() noexcept;
  /// `stopped`: what the select waits for has ended so, and so does the select. Both may be gone when this returns.
  void happen(wake_up how = wake_up::completed) noexcept;

 private:
  learning_lock lock_;  // of the next two
  peeked<bool> happened_ = false;
  channel_waiter* waits_ = nullptr;
};

/// Waits for one.
class happening_case : public select_case {
 public:
  static const case_layout seen;  // of one that has no other
  bool may_be_ready() const noexcept { return what_.seems_happened(); }
  std::uint32_t changes() const noexcept { return 0; }  // what has happened stays so
  learning_lock& its_lock() noexcept { return what_.lock(); }
  bool try_now() noexcept { return what_.happened(); }
  void finish() noexcept {}
  void prepare(select_wait& of, std::size_t index, root&) noexcept {
    node_.select = &of;
    node_.index = index;
  }
  void enter(const waiter& parked) noexcept final {
    what_.enter(node_);
    node_.share(parked);
  }
  void leave(bool) noexcept override { what_.leave(); }

 protected:
  explicit happening_case(happening& what) noexcept : what_{what} {}
  ~happening_case() = default;

  /// And that whoever made it happen has let go of it, or will have woken the select.
  bool has_happened() const noexcept {
    const std::lock_guard guard{what_.lock()};
    return what_.happened();
  }

  void tell(wait_subjects& into) const noexcept override { into.add("work beside a select", &what_); }

 private:
  struct node final : channel_waiter {
    node() noexcept : channel_waiter{waits_by_select} {}
  };
  happening& what_;
  node node_;
};

WEFT_CASE_LAYOUT(happening_case, of("work beside a select", offsetof(happening_case, what_)));

/// What a select does if nothing is ready.
struct otherwise_case {
  using result_type = std::monostate;
  using state = otherwise_case;
  static constexpr bool begins = false;
  static constexpr bool may_need_no_lock = false;
  static constexpr bool may_be_in_vain = false;
  static constexpr bool ended_stopped() noexcept { return false; }
  static constexpr bool must_wait_again() noexcept { return false; }
  static constexpr bool turn_is_over() noexcept { return false; }
  bool may_be_ready() const noexcept { return false; }
  std::uint32_t changes() const noexcept { return 0; }
  result_type take() noexcept { return {}; }
};

}  // namespace weft::detail
