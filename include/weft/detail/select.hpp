// Waiting for whichever of several is first. Part of channel.hpp.
//
// A select locks all its channels in the order of their addresses, looks for one that is ready, from a place that differs
// each time, and if none is gets in line everywhere at once; whoever claims its one wait has chosen. So nobody is asked
// twice, and a select that meets a select is no different from one that meets a send.
//
// What is no channel runs beside it, see the end.
//
// Source: the order of select is that of Go's runtime; there, too, all channels are locked.
//
// Long because it has all the cases, of which each is short.
#pragma once

#include <array>
#include <coroutine>
#include <cstddef>
#include <new>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>
#include <weft/channel.hpp>
#include <weft/clock.hpp>
#include <weft/detail/group.hpp>
#include <weft/detail/learning_lock.hpp>
#include <weft/detail/root.hpp>
#include <weft/detail/waiter.hpp>
#include <weft/scope.hpp>
#include <weft/task.hpp>

namespace weft {

namespace detail {

/// One thing that a select can do.
class select_case {
 public:
  virtual learning_lock* its_lock() noexcept = 0;  // null: it is never waited for
  /// Before the locks are taken.
  virtual void prepare(select_wait& of, std::size_t index, root& self) noexcept = 0;
  /// Under its lock: does it, if it is ready.
  virtual bool try_now() noexcept = 0;
  /// Under its lock: gets in line.
  virtual waiter* enter() noexcept = 0;
  /// Out of the line again, if it is still there. Where it was in line, takes its lock: waits for who is on the way out.
  virtual void leave(bool was_in_line) noexcept = 0;
  /// When the locks are free, by the one that was done at once: wakes the other side.
  virtual void finish() noexcept = 0;
  /// What it waits for: as wait_type::tell.
  virtual void tell(wait_subjects& into) const noexcept = 0;

 protected:
  select_case() = default;
  select_case(const select_case&) = default;
  ~select_case() = default;
};

/// The one wait of a select.
class select_wait : public waiter {
 public:
  select_wait(select_case* const* cases, learning_lock** locks, std::size_t count, bool never_waits) noexcept
      : waiter{type}, cases_{cases}, locks_{locks}, count_{count}, never_waits_{never_waits} {}

  /// False: one was done, or none and it never waits; `chosen` says which.
  bool suspend(root& self) noexcept;
  /// When it goes on.
  void end() noexcept;

  static constexpr std::size_t none = std::size_t(-1);
  std::size_t chosen = none;  // by whoever has claimed the wait

 private:
  static on_stop leave(waiter& self) noexcept;
  static void tell(const waiter& self, const char* what, wait_subjects& into) noexcept;
  static constexpr wait_type type{leave, "select", tell};
  void leave_all() noexcept;
  std::size_t sort_locks() noexcept;

  select_case* const* cases_;
  learning_lock** locks_;
  std::size_t count_;
  bool never_waits_;
  bool waited_ = false;   // all are prepared
  bool in_line_ = false;  // and in line, or were
};

}  // namespace detail

namespace detail {

/// Of a case, for which the select waits.
inline constexpr wait_type waits_by_select{nullptr, "select"};

/// What a send and a receive have in common as cases of a select: a place in a line of a channel.
class channel_case : public select_case {
 protected:
  channel_case(channel_core& at, waiter_line& line, channel_waiter& node) noexcept
      : at_{at}, line_{line}, node_{node} {}
  ~channel_case() = default;

  channel_waiter* to_wake_ = nullptr;  // the other side of what was done at once

 private:
  learning_lock* its_lock() noexcept final { return &at_.lock; }
  void prepare(select_wait& of, std::size_t index, root&) noexcept final {
    node_.select = &of;
    node_.index = index;
  }
  waiter* enter() noexcept final;
  void leave(bool was_in_line) noexcept final {
    if (was_in_line) at_.leave(node_, line_);
  }
  void finish() noexcept final {
    if (to_wake_ != nullptr) std::exchange(to_wake_, nullptr)->wake();
  }
  void tell(wait_subjects& into) const noexcept final {
    into.add(&line_ == &at_.senders ? "channel, to send" : "channel, to receive", &at_);
  }

  channel_core& at_;
  waiter_line& line_;
  channel_waiter& node_;  // never asked to leave: the select's own wait is
};

}  // namespace detail

/// A receive as a case of a select, which gives std::optional<T>: see channel::receive.
template <class T>
class receive_case final : public detail::channel_case {
 public:
  using result_type = std::optional<T>;
  explicit receive_case(channel<T>& from) noexcept : channel_case{from, from.receivers, node_}, from_{from} {}
  receive_case(const receive_case& other) noexcept : receive_case{other.from_} {}  // before it is awaited

  result_type take() noexcept { return std::move(value_); }

 private:
  bool try_now() noexcept override { return from_.try_receive_now(value_, to_wake_) != channel<T>::outcome::must_wait; }

  channel<T>& from_;
  std::optional<T> value_;
  typename channel<T>::receive_node node_{detail::waits_by_select, value_};
};

/// A send as a case of a select: see channel::send. The value stays where it is until it is sent.
template <class T>
class send_case final : public detail::channel_case {
 public:
  using result_type = std::monostate;
  send_case(channel<T>& to, T&& value) noexcept
      : channel_case{to, to.senders, node_}, to_{to}, value_(std::move(value)) {}
  send_case(send_case&& other) noexcept : send_case{other.to_, std::move(other.value_)} {}  // before it is awaited

  result_type take() {
    if (closed_ || node_.closed) throw channel_closed<T>{std::move(value_)};
    if (no_memory_) throw std::bad_alloc{};
    return {};
  }

 private:
  bool try_now() noexcept override {
    no_memory_ = !to_.closed && !to_.make_room();  // under the locks of all: rare, as the ring doubles
    if (no_memory_) return true;
    const auto how = to_.try_send_now(value_, this->to_wake_);
    closed_ = how == channel<T>::outcome::closed;
    return how != channel<T>::outcome::must_wait;
  }

  channel<T>& to_;
  T value_;
  bool closed_ = false;
  bool no_memory_ = false;
  typename channel<T>::send_node node_{detail::waits_by_select, value_};
};

namespace detail {

template <class Source>
class subscriber_case final : public select_case {
 public:
  using result_type = std::optional<typename Source::value_type>;
  explicit subscriber_case(receiver_of<Source>& by) noexcept : by_{by} {
    WEFT_EXPECTS(by.from_ != nullptr, "a receiver that has left was told to receive");
  }
  subscriber_case(const subscriber_case& other) noexcept : subscriber_case{other.by_} {}  // before it is awaited

  result_type take() {
    if (too_slow_) throw receiver_too_slow{};
    return std::move(value_);
  }

 private:
  learning_lock* its_lock() noexcept override { return &by_.from_->lock; }
  void prepare(select_wait& of, std::size_t index, root&) noexcept override {
    node_.select = &of;
    node_.index = index;
  }
  bool try_now() noexcept override {
    const receipt how = by_.from_->try_receive_now(by_.at_, value_, through_.emplace());
    too_slow_ = how == receipt::too_slow;
    return how != receipt::must_wait;
  }
  waiter* enter() noexcept override {
    by_.from_->line().push(node_);
    ++by_.from_->waits;
    return &node_;
  }
  void leave(bool was_in_line) noexcept override {
    if (was_in_line) by_.from_->channel_core::leave(node_, by_.from_->line());
  }
  void finish() noexcept override { through_.reset(); }
  void tell(wait_subjects& into) const noexcept override { into.add(Source::to_receive, by_.from_); }

  receiver_of<Source>& by_;
  std::optional<typename Source::value_type> value_;
  std::optional<let_through> through_;  // those that wait to send, and have room now
  bool too_slow_ = false;
  subscriber<Source> node_{waits_by_select, by_.at_, value_};
};

}  // namespace detail

namespace detail {

/// Something that happens once, outside of any channel, and for which one select waits.
class happening {
 public:
  learning_lock& lock() noexcept { return lock_; }
  bool happened() const noexcept { return happened_; }         // under the lock
  void enter(channel_waiter& one) noexcept { waits_ = &one; }  // under the lock
  void leave() noexcept;
  /// Both may be gone when this returns.
  void happen() noexcept;

 private:
  learning_lock lock_;  // of the next two
  bool happened_ = false;
  channel_waiter* waits_ = nullptr;
};

/// Waits for one.
class happening_case : public select_case {
 protected:
  explicit happening_case(happening& what) noexcept : what_{what} {}
  ~happening_case() = default;

  void prepare(select_wait& of, std::size_t index, root& self) noexcept override;
  void leave(bool) noexcept override { what_.leave(); }
  void tell(wait_subjects& into) const noexcept override { into.add("work beside a select", &what_); }

 private:
  learning_lock* its_lock() noexcept final { return &what_.lock(); }
  bool try_now() noexcept final { return what_.happened(); }
  waiter* enter() noexcept final {
    what_.enter(node_);
    return &node_;
  }
  void finish() noexcept final {}

  struct node final : channel_waiter {
    node() noexcept : channel_waiter{waits_by_select} {}
  };
  happening& what_;
  node node_;
};

}  // namespace detail

/// A time after which a select goes on with this.
class after_case final : public detail::happening_case, timer {
 public:
  using result_type = std::monostate;
  explicit after_case(clock::duration d) noexcept : happening_case{passed_}, timer{fire_now}, for_{d} {}
  after_case(const after_case& other) noexcept : after_case{other.for_} {}

  result_type take() noexcept { return {}; }

 private:
  void prepare(detail::select_wait& of, std::size_t index, detail::root& self) noexcept override;
  void leave(bool was_in_line) noexcept override;
  void tell(detail::wait_subjects& into) const noexcept override { into.add("clock", clock_); }
  static void fire_now(timer& self) noexcept;

  clock::duration for_;
  clock* clock_ = nullptr;
  detail::happening passed_;
};

/// What a select does if nothing is ready.
class otherwise_case final : public detail::select_case {
 public:
  using result_type = std::monostate;
  result_type take() noexcept { return {}; }

 private:
  detail::learning_lock* its_lock() noexcept override { return nullptr; }
  void prepare(detail::select_wait&, std::size_t, detail::root&) noexcept override {}
  bool try_now() noexcept override { return false; }
  detail::waiter* enter() noexcept override { return nullptr; }
  void leave(bool) noexcept override {}
  void finish() noexcept override {}
  void tell(detail::wait_subjects&) const noexcept override {}
};

template <class T>
class fork;

namespace detail {
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
}  // namespace detail

/// Something to await, as a case of a select, which gives what it gives: see on().
template <class T>
class on_case {
 public:
  explicit on_case(task<T>&& work) noexcept : work_{std::move(work)} {}

 private:
  template <class>
  friend class detail::on_state;
  task<T> work_;
};
namespace detail {
template <class T>
inline constexpr bool runs_beside<on_case<T>> = true;
}  // namespace detail

template <class T>
receive_case<T> on_receive(channel<T>& from) noexcept {
  return receive_case<T>{from};
}
/// Of a broadcast or a watch.
template <class Source>
auto on_receive(receiver_of<Source>& by) noexcept {
  return detail::subscriber_case<Source>{by};
}
template <class T, class U = T>
  requires std::is_constructible_v<T, U&&>
send_case<T> on_send(channel<T>& to, U&& value) {
  return send_case<T>{to, T(std::forward<U>(value))};
}
/// Anything that can be awaited, as a case: the join of a fork, a lock, a task. It runs beside the other cases, and is
/// chosen when it has ended, if no other was before.
///
///     auto got = co_await select(on_receive(orders), on(work), on(door.wait()));  // `work` is a fork
///
/// Suspends  until those that were not chosen have ended, too: they are told to stop.
/// Cancel    a stop goes to all that run. One that ends stopped by itself, and is chosen, ends the select stopped.
/// Fails     as what is awaited. What one that was not chosen throws all the same goes to the handler of lost errors.
/// Lifetime  a fork, view or the like is given by its name, and is still there to be awaited if it was not chosen: its
///           result is not lost. What is given as an rvalue is used up; what a task gives that ends although another case was
///           chosen, and what it was told to stop, is destroyed. on(c.receive()) and on(c.send(v)) are on_receive(c) and
///           on_send(c, v), which lose nothing.
template <awaitable Awaitable>
auto on(Awaitable&& work) {
  if constexpr (requires { std::forward<Awaitable>(work).as_case(); }) {
    return std::forward<Awaitable>(work).as_case();
  } else {
    static_assert(std::is_lvalue_reference_v<Awaitable> || !detail::is_fork<std::remove_cvref_t<Awaitable>>,
                  "a select that does not choose a fork would lose its result: give the fork by its name, on(f)");
    return on_case<await_result<Awaitable>>{detail::as_task(std::forward<Awaitable>(work))};
  }
}
template <class Rep, class Period>
after_case after(std::chrono::duration<Rep, Period> d) noexcept {
  return after_case{detail::saturated(d)};
}
inline constexpr struct {
} otherwise{};

/// Which case of a select was done, and what it gave: alternative `index` of `value`.
template <class... Results>
struct selected {
  std::size_t index;
  std::variant<Results...> value;
};

namespace detail {

template <class Case>
struct select_case_of {
  using type = Case;
};
template <>
struct select_case_of<std::remove_const_t<decltype(otherwise)>> {
  using type = otherwise_case;
};

template <class Case>
typename select_case_of<Case>::type as_case(Case& one) {
  if constexpr (std::is_same_v<typename select_case_of<Case>::type, Case>)
    return std::move(one);
  else
    return {};
}

template <class... Cases>
class select_awaiter : public gate_awaiter<select_awaiter<Cases...>> {
  using result_type = selected<typename Cases::result_type...>;

 public:
  explicit select_awaiter(std::tuple<Cases...>&& cases) noexcept
      : cases_(std::move(cases)), wait_{at_.data(), locks_.data(), sizeof...(Cases), never_waits} {
    fill(std::index_sequence_for<Cases...>{});
  }
  select_awaiter(const select_awaiter&) = delete;

  bool suspend(root& self) noexcept { return wait_.suspend(self); }
  result_type await_resume() {
    wait_.end();
    return take(std::index_sequence_for<Cases...>{});
  }

 private:
  static constexpr bool never_waits = (std::is_same_v<Cases, otherwise_case> || ...);
  static_assert((0 + ... + int{std::is_same_v<Cases, otherwise_case>}) <= 1, "a select has one otherwise");

  template <std::size_t... I>
  void fill(std::index_sequence<I...>) noexcept {
    ((at_[I] = &std::get<I>(cases_)), ...);
    if constexpr (never_waits) {
      constexpr bool is_otherwise[] = {std::is_same_v<Cases, otherwise_case>...};
      for (std::size_t i = 0; i != sizeof...(Cases); ++i)
        if (is_otherwise[i]) wait_.chosen = i;
    }
  }
  template <std::size_t... I>
  result_type take(std::index_sequence<I...>) {
    std::optional<result_type> result;
    static_cast<void>(((wait_.chosen == I &&
                        (result.emplace(result_type{
                             I, decltype(result_type::value){std::in_place_index<I>, std::get<I>(cases_).take()}}),
                         true)) ||
                       ...));
    return std::move(*result);
  }

  std::tuple<Cases...> cases_;
  std::array<select_case*, sizeof...(Cases)> at_;
  std::array<learning_lock*, sizeof...(Cases)> locks_;
  select_wait wait_;
};

template <class... Cases>
class [[nodiscard("nothing happens until it is awaited")]] selecting : public knows_roots {
 public:
  explicit selecting(Cases&&... cases) noexcept : cases_(std::move(cases)...) {}
  select_awaiter<Cases...> operator co_await() && noexcept { return select_awaiter<Cases...>{std::move(cases_)}; }

 private:
  std::tuple<Cases...> cases_;
};

template <class Case>
class select_range_awaiter : public gate_awaiter<select_range_awaiter<Case>> {
 public:
  struct result_type {
    std::size_t index;
    typename Case::result_type value;
  };

  explicit select_range_awaiter(std::vector<Case>&& cases)
      : cases_(std::move(cases)),
        at_(cases_.size()),
        locks_(cases_.size()),
        wait_{at_.data(), locks_.data(), cases_.size(), false} {
    for (std::size_t i = 0; i != cases_.size(); ++i) at_[i] = &cases_[i];
  }
  select_range_awaiter(const select_range_awaiter&) = delete;

  bool suspend(root& self) noexcept { return wait_.suspend(self); }
  result_type await_resume() {
    wait_.end();
    return {wait_.chosen, cases_[wait_.chosen].take()};
  }

 private:
  std::vector<Case> cases_;
  std::vector<select_case*> at_;
  std::vector<learning_lock*> locks_;
  select_wait wait_;
};

template <class Case>
class [[nodiscard("nothing happens until it is awaited")]] selecting_of : public knows_roots {
 public:
  explicit selecting_of(std::vector<Case>&& cases) noexcept : cases_(std::move(cases)) {}
  select_range_awaiter<Case> operator co_await() && { return select_range_awaiter<Case>{std::move(cases_)}; }

 private:
  std::vector<Case> cases_;
};

}  // namespace detail

/// Does one of the cases, whichever is ready first; if several are, any of them. Each gives what it gives alone; a send to a
/// closed channel that was chosen throws.
///
///     auto got = co_await select(on_receive(numbers), after(5ms));
///     if (got.index == 0) use(std::get<0>(got.value));
///
/// Cost  a lock for each channel, and no allocation; with an on() the frames of a scope and of a fork for each.
template <class... Cases>
  requires(sizeof...(Cases) > 0)
auto select(Cases... cases) {
  if constexpr ((detail::runs_beside<Cases> || ...)) {
    static_assert(!(std::is_same_v<typename detail::select_case_of<Cases>::type, otherwise_case> || ...),
                  "a select with otherwise never waits, so what on() starts could not end");
    using selection = detail::selection_beside<Cases...>;
    return selection::run(typename selection::parts{std::move(cases)...});
  } else {
    return detail::selecting<typename detail::select_case_of<Cases>::type...>{detail::as_case(cases)...};
  }
}

/// The same where only the run knows how many there are, all of one kind: gives {index, value}. Of none, it
/// waits until it is stopped.
///
///     std::vector<receive_case<int>> all;
///     for (auto& one : channels) all.push_back(on_receive(one));
///     auto [index, value] = co_await select(std::move(all));
///
/// Cost  two allocations more.
template <class Case>
  requires std::is_base_of_v<detail::select_case, Case>
auto select(std::vector<Case> cases) {
  return detail::selecting_of<Case>{std::move(cases)};
}
template <class T>
auto select(std::vector<on_case<T>> cases) {
  return detail::range_selection_beside<T>::run(std::move(cases));
}

}  // namespace weft

// ---- beside what runs -------------------------------------------------------------------------------------------------------

// A select with an on() among its cases is a scope with a fork for each of those. Once one is chosen the others are told to
// stop; the scope's end joins them. So a case may be chosen while another one ends, too: what that gave is destroyed, and
// what it threw is told to the handler of lost errors, as by when_any.
//
// Rejected: to have each primitive's own wait be a case, as a channel's is. A lock needs none of what a fork costs then, but
// each primitive would need a second protocol, and work that waits for several things in a row would be left out.

namespace weft::detail {

/// One that runs, and what came of it. The select that waits for it ends before it.
template <class T>
class on_state : public happening {
 public:
  explicit on_state(on_case<T>&& from) noexcept : work_{std::move(from.work_)} {}
  on_state(on_state&& other) noexcept : happening{}, work_{std::move(other.work_)} {}  // before it runs
  ~on_state() {
    if (ended_ && ended_->exception()) lose_error("select", ended_->exception());
  }

  static task<> run(on_state& self) {
    self.ended_.emplace(co_await as_result(std::move(self.work_)));
    self.happen();
  }
  bool was_stopped() const noexcept { return ended_ && ended_->is_stopped(); }
  element<T> take() {
    result<T> how = *std::exchange(ended_, std::nullopt);
    if constexpr (std::is_void_v<T>)
      return (std::move(how).value(), std::monostate{});
    else
      return std::move(how).value();
  }

 private:
  task<T> work_;
  std::optional<result<T>> ended_;
};

/// Waits for one that runs.
template <class T>
class ended_case final : public happening_case {
 public:
  using result_type = std::monostate;  // what came of it is taken when all have ended
  explicit ended_case(on_state<T>& of) noexcept : happening_case{of}, of_{of} {}
  ended_case(const ended_case& other) noexcept : ended_case{other.of_} {}  // before it is awaited
  result_type take() noexcept { return {}; }

 private:
  on_state<T>& of_;
};

template <class Case>
struct part_of_select {
  using type = Case;
  using given_type = typename Case::result_type;  // by the select
  using result_type = given_type;
};
template <class T>
struct part_of_select<on_case<T>> {
  using type = on_state<T>;
  using given_type = std::monostate;
  using result_type = element<T>;
};

// Here and now: what it waits for may be there already, and is chosen as often as what is there of the other cases.
template <class T>
void start_part(scope& s, on_state<T>& part, fork<>& running) {
  running = scope_access::fork_here(s, on_state<T>::run(part));
}
template <class Case>
void start_part(scope&, Case&, fork<>&) noexcept {}
template <class T>
ended_case<T> case_of_part(on_state<T>& part) noexcept {
  return ended_case<T>{part};
}
template <class Case>
Case case_of_part(Case& part) {
  return std::move(part);
}
template <class T>
bool part_was_stopped(const on_state<T>& part) noexcept {
  return part.was_stopped();
}
template <class Case>
bool part_was_stopped(const Case&) noexcept {
  return false;
}
template <class T, class Given>
element<T> take_part(on_state<T>& part, Given&) {
  return part.take();
}
template <class Case, class Given>
Given take_part(Case&, Given& given) {
  return std::move(given);
}

template <class... Cases>
struct selection_beside {
  using parts = std::tuple<typename part_of_select<Cases>::type...>;
  using result_type = selected<typename part_of_select<Cases>::result_type...>;

  static task<result_type> run(parts of) {
    auto body = [&of](scope& s) { return in_scope(s, of); };
    given got = co_await with_scope(body);
    if (was_stopped(of, got.index, indices{})) co_await ends_stopped{};
    co_return take(of, got, indices{});
  }

 private:
  using given = selected<typename part_of_select<Cases>::given_type...>;
  using indices = std::index_sequence_for<Cases...>;

  template <std::size_t... I>
  static auto choose(parts& of, std::index_sequence<I...>) {
    return select(case_of_part(std::get<I>(of))...);
  }
  template <std::size_t... I>
  static void start(scope& s, parts& of, std::array<fork<>, sizeof...(Cases)>& running, std::index_sequence<I...>) {
    (start_part(s, std::get<I>(of), running[I]), ...);
  }
  template <std::size_t... I>
  static bool was_stopped(const parts& of, std::size_t chosen, std::index_sequence<I...>) noexcept {
    return ((chosen == I && part_was_stopped(std::get<I>(of))) || ...);
  }
  template <std::size_t... I>
  static result_type take(parts& of, given& got, std::index_sequence<I...>) {
    std::optional<result_type> result;
    static_cast<void>(
        ((got.index == I && (result.emplace(result_type{
                                 I, decltype(result_type::value){std::in_place_index<I>,
                                                                 take_part(std::get<I>(of), std::get<I>(got.value))}}),
                             true)) ||
         ...));
    return std::move(*result);
  }

  static task<given> in_scope(scope& s, parts& of) {
    std::array<fork<>, sizeof...(Cases)> running;
    start(s, of, running, indices{});
    auto first = choose(of, indices{});
    given got = co_await std::move(first);
    for (fork<>& one : running)
      if (one) one.request_stop();
    co_return got;
  }
};

template <class T>
struct range_selection_beside {
  struct result_type {
    std::size_t index;
    element<T> value;
  };

  static task<result_type> run(std::vector<on_case<T>> cases) {
    std::vector<on_state<T>> parts;
    parts.reserve(cases.size());
    for (on_case<T>& one : cases) parts.emplace_back(std::move(one));
    auto body = [&parts](scope& s) { return in_scope(s, parts); };
    const std::size_t chosen = co_await with_scope(body);
    if (parts[chosen].was_stopped()) co_await ends_stopped{};
    co_return result_type{chosen, parts[chosen].take()};
  }

 private:
  static task<std::size_t> in_scope(scope& s, std::vector<on_state<T>>& parts) {
    std::vector<fork<>> running(parts.size());
    std::vector<ended_case<T>> cases;
    cases.reserve(parts.size());
    for (std::size_t i = 0; i != parts.size(); ++i) {
      start_part(s, parts[i], running[i]);
      cases.emplace_back(parts[i]);
    }
    auto first = select(std::move(cases));
    const auto got = co_await std::move(first);
    for (fork<>& one : running) one.request_stop();
    co_return got.index;
  }
};

}  // namespace weft::detail
