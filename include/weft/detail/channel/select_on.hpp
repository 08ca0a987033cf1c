// What waits for whatever else can be awaited, as a case of a select. Part of select_on.hpp; how it works is in select_core.hpp.
//
// What weft has to wait for is a case as a channel's send is: a primitive, a fork, a send to all. It has a place in the line,
// and whoever takes it out claims the select's one wait; so it has no effect where another case is chosen. What is left, a
// task or what others have made, can only be run: beside the other cases (channel/select_beside.hpp), and told to stop when
// one of them is chosen.
//
// A mutex is given to a select directly, under its lock, by whoever gives it back; a task that waits for it is called, and
// may find it taken by then (note 0016). A select that was called would have left its other lines already.
//
// Rejected: a party of a barrier that leaves when another case is chosen, as it does when it is stopped. The others may have
// passed with it by then, and so it has done something all the same. It is refused, with what does the same.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <type_traits>
#include <utility>
#include <variant>
#include <weft/broadcast.hpp>
#include <weft/channel.hpp>
#include <weft/detail/channel/select_cases.hpp>
#include <weft/detail/channel/select_wait.hpp>
#include <weft/detail/core/root.hpp>
#include <weft/detail/join/group.hpp>
#include <weft/detail/sync/gate.hpp>
#include <weft/future.hpp>
#include <weft/scope.hpp>
#include <weft/task.hpp>

namespace weft::detail {

/// A place in the line of what knows nothing of selects.
template <class Waiter>
struct node_of_select : Waiter {
  template <class... Args>
  explicit node_of_select(Args&&... args) noexcept : Waiter{std::forward<Args>(args)...}, alone{&this->become(type)} {}

  static void claimed(waiter& self) noexcept {
    const auto& mine = static_cast<node_of_select&>(self);
    mine.select->chosen = mine.index;
  }
  static void ends_stopped(waiter& self) noexcept { static_cast<node_of_select&>(self).select->leave_all(); }
  static constexpr wait_type type{.name = "select", .on_claimed = claimed, .on_stopped = ends_stopped};

  const wait_type* alone;  // what it does where it is no case
  select_wait* select = nullptr;
  std::size_t index = 0;
};

/// A primitive.
template <class Awaiter, class Primitive, class Argument>
class gate_case final : public select_case {
  using given = decltype(std::declval<Awaiter&>().await_resume());

 public:
  using result_type = element<given>;
  using state = gate_case;
  gate_case(Primitive& at, Argument with) noexcept : at_{at}, with_{with}, node_{at, with} {}
  gate_case(const gate_case& other) noexcept : gate_case{other.at_, other.with_} {}  // before it is awaited

  bool may_be_ready() const noexcept { return true; }  // it takes the lock to know
  std::uint32_t changes() const noexcept { return 0; }
  tiny_lock& its_lock() noexcept { return static_cast<gate_waiter&>(node_).gate_->lock_; }
  bool try_now() noexcept { return node_.try_locked(by_); }
  void finish() noexcept {}
  void prepare(select_wait& of, std::size_t index, root& self) noexcept {
    by_ = holder::is(&self);
    node_.select = &of;
    node_.index = index;
  }
  void enter(const waiter& parked) noexcept override {
    node_.enter_locked();
    node_.share(parked);
  }
  void leave(bool was_in_line) noexcept override {
    if (was_in_line) node_.alone->leave(node_);
  }
  result_type take() noexcept {
    if constexpr (std::is_void_v<given>)
      return (node_.await_resume(), std::monostate{});
    else
      return node_.await_resume();
  }

 private:
  void tell(wait_subjects& into) const noexcept override { node_.alone->tell(node_, node_.alone->name, into); }

  Primitive& at_;
  Argument with_;
  std::uintptr_t by_ = holder::somebody;  // until it waits
  node_of_select<Awaiter> node_;

 public:
  static const case_layout seen;
};
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Winvalid-offsetof"
template <class Awaiter, class Primitive, class Argument>
inline constexpr case_layout gate_case<Awaiter, Primitive, Argument>::seen = case_layout::of_waiter(
    offsetof(gate_case, node_.linked) - offsetof(waiter, linked), offsetof(gate_case, node_.alone));
#pragma GCC diagnostic pop

/// A send to all.
template <class T>
class broadcast_send_case final : public select_case {
 public:
  using result_type = std::monostate;
  using state = broadcast_send_case;
  broadcast_send_case(broadcast<T>& to, T&& value) noexcept : to_{to}, value_(std::move(value)) {}
  broadcast_send_case(broadcast_send_case&& other) noexcept
      : broadcast_send_case{other.to_, std::move(other.value_)} {}  // before it is awaited

  bool may_be_ready() const noexcept { return true; }  // it takes the lock to know
  std::uint32_t changes() const noexcept { return 0; }
  learning_lock& its_lock() noexcept { return to_.lock; }
  bool try_now() noexcept {
    const auto how = to_.try_send_now(value_, dropped_, through_.emplace());
    node_.closed = how == broadcast<T>::sent::closed;
    return how != broadcast<T>::sent::must_wait;
  }
  void finish() noexcept {
    through_.reset();
    dropped_.reset();
  }
  void prepare(select_wait& of, std::size_t index, root&) noexcept {
    node_.select = &of;
    node_.index = index;
  }
  void enter(const waiter& parked) noexcept override {
    to_.senders.push(node_);
    ++to_.waits;
    node_.share(parked);
  }
  channel_waiter* place_at(const channel_core& one) noexcept override { return &to_ == &one ? &node_ : nullptr; }
  void leave(bool was_in_line) noexcept override {
    if (was_in_line) to_.channel_core::leave(node_, to_.senders);
  }
  result_type take() {
    if (node_.closed) throw channel_closed<T>{std::move(value_)};
    return {};
  }

 private:
  void tell(wait_subjects& into) const noexcept override { into.add("broadcast, to send", &to_); }

  broadcast<T>& to_;
  T value_;
  std::optional<typename broadcast<T>::slot> dropped_;  // as the next one, from the lock on
  std::optional<let_through> through_;
  typename broadcast<T>::sender node_{waits_by_select, value_};

 public:
  static const case_layout seen;
};
WEFT_CASE_LAYOUT_IN(T, broadcast_send_case<T>, of("broadcast, to send", offsetof(broadcast_send_case, to_)));

/// A fork that stays, by its handle or a view. Of a view that is a temporary, perhaps the last handle, the value is copied.
template <class T, bool of_view, bool copied = false>
class fork_case final : public select_case {
  using reader = fork_reader<T, of_view>;
  using given = std::conditional_t<copied, T, decltype(std::declval<reader&>().await_resume())>;
  struct nothing_kept {};

 public:
  using result_type = element<given>;
  using state = fork_case;
  explicit fork_case(const fork<T>& of) noexcept : of_{scope_access::word_of(of)} { expect_one(); }
  explicit fork_case(fork_view<T> of) noexcept : of_{scope_access::word_of(of)}, kept_{std::move(of)} { expect_one(); }
  fork_case(const fork_case& other) noexcept : of_{other.of_}, kept_{other.kept_} {}  // before it is awaited

  bool may_be_ready() const noexcept { return status() != fork_status::running; }
  std::uint32_t changes() const noexcept { return 0; }  // one that has ended stays so
  case_lock its_lock() noexcept { return of_.has_record() ? case_lock{of_.record().of().lock_of_ends()} : case_lock{}; }
  bool try_now() const noexcept { return may_be_ready(); }
  bool ended_stopped() const noexcept { return status() == fork_status::stopped; }
  void finish() noexcept {}
  void prepare(select_wait& of, std::size_t index, root&) noexcept {
    node_.select = &of;
    node_.index = index;
  }
  void enter(const waiter& parked) noexcept override {
    of_.record().of().enter_line(of_.record(), node_);
    node_.share(parked);
  }
  void leave(bool was_in_line) noexcept override {
    if (was_in_line) of_.record().of().leave(of_.record(), node_);
  }
  result_type take() {
    reader ended{of_};
    if constexpr (std::is_void_v<given>)
      return (ended.await_resume(), std::monostate{});
    else
      return ended.await_resume();
  }

 private:
  struct place : waiter {
    place() noexcept : waiter{node_of_select<place>::type} {}
  };
  void expect_one() const noexcept {
    if (!of_) fail_empty_fork();
  }
  // One without a record ran through.
  fork_status status() const noexcept { return of_.has_record() ? of_.record().status() : fork_status::succeeded; }
  void tell(wait_subjects& into) const noexcept override {
    const sleeper* const runs = of_.has_record() ? &of_.record() : nullptr;
    into.add("fork", runs, runs);
  }

  fork_word of_;
  [[no_unique_address]] std::conditional_t<of_view, fork_view<T>, nothing_kept> kept_;
  node_of_select<place> node_;

 public:
  static const case_layout seen;
};
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Winvalid-offsetof"
template <class T, bool of_view, bool copied>
inline constexpr case_layout fork_case<T, of_view, copied>::seen =
    case_layout::of("fork", offsetof(fork_case, of_), 1, WEFT_ROOT_IN(fork_record)).held_by_it();
#pragma GCC diagnostic pop

/// A future that stays, whatever its value is.
class outcome_case : public happening_case {
 public:
  bool may_be_ready() const noexcept { return from_.is_ready(); }
  bool try_now() const noexcept { return from_.is_ready(); }
  bool ended_stopped() const noexcept { return from_.is_ready() && from_.is_stopped(); }
  void prepare(select_wait& of, std::size_t index, root& self) noexcept;
  void leave(bool was_in_line) noexcept override;

 protected:
  explicit outcome_case(handed& from) noexcept : happening_case{there_}, from_{from} {}
  ~outcome_case() = default;

 private:
  struct place : waiter {
    explicit place(happening& what) noexcept : waiter{type}, there{what} {}
    happening& there;
  };
  void tell(wait_subjects& into) const noexcept override;
  static void completed(waiter& self, wake_up how) noexcept;
  static constexpr wait_type type{.name = "future", .complete = completed};

  handed& from_;
  happening there_;
  place place_{there_};
  bool entered_ = false;

 public:
  static const case_layout seen;
};
WEFT_CASE_LAYOUT(outcome_case, of("future", offsetof(outcome_case, from_)));

template <class T>
class future_case final : public outcome_case {
  using given = decltype(std::declval<future_awaiter<T>&>().await_resume());

 public:
  using result_type = element<given>;
  using state = future_case;
  explicit future_case(future<T>& of) : outcome_case{of.state()}, of_{of} {}
  future_case(const future_case& other) : future_case{other.of_} {}  // before it is awaited

  result_type take() {
    future_awaiter<T> ended{of_.take()};
    if constexpr (std::is_void_v<given>)
      return (ended.await_resume(), std::monostate{});
    else
      return ended.await_resume();
  }

 private:
  future<T>& of_;
};

template <class T>
class on_state;
template <class... Cases>
struct selection_beside;
template <class T>
struct range_selection_beside;
template <class Case>
inline constexpr bool runs_beside = false;
template <class T>
inline constexpr bool is_fork = false;
template <class T>
inline constexpr bool is_fork<fork<T>> = true;
template <class T>
inline constexpr bool is_fork_view = false;
template <class T>
inline constexpr bool is_fork_view<fork_view<T>> = true;
/// Of a timeout: that of what would be a case by itself.
template <class Awaitable>
inline constexpr bool limits_a_case = requires { typename Awaitable::limits_a_case; };
/// Of a write that sends all of it.
template <class Awaitable>
inline constexpr bool is_whole_write = requires { typename Awaitable::is_whole_write; };
template <class Awaitable>
inline constexpr bool is_select = requires { typename Awaitable::is_select; };

}  // namespace weft::detail
