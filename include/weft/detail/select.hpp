// Waiting for whichever of several is first. Part of channel.hpp.
//
// First it looks, without any lock, which cases seem to be ready, and tries one of those, whichever, under its own lock
// alone: what is ready is done there, and what is not needs nothing of the others. Where there is `otherwise`, and nothing
// was ready at that moment, that is all.
//
// If nothing was, it locks all its channels in the order of their addresses, looks once more, from any place on, and gets in
// line everywhere at once; whoever claims its one wait has chosen. So nobody is asked twice, and a select that meets a
// select is no different from one that meets a send.
//
// A case is a description; what it waits with is made in the awaiter, and most of that only where it waits.
//
// What is no channel runs beside it, see the end.
//
// Source: the order of select is that of Go's runtime; there, too, all channels are locked.
//
// Long because it has all the cases, of which each is short.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <coroutine>
#include <cstddef>
#include <cstdint>
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
#include <weft/detail/peeked.hpp>
#include <weft/detail/root.hpp>
#include <weft/detail/waiter.hpp>
#include <weft/scope.hpp>
#include <weft/task.hpp>

namespace weft {

namespace detail {

/// One thing that a select can do. What there is of each kind besides, none of it virtual:
///   bool may_be_ready() const  under its lock, whether it may be; without it, false: at some moment since the select
///                              was begun it was not
///   std::uint32_t changes() const  the same twice: if it was ready in between, it is so ever since
///   learning_lock& its_lock()
///   bool try_now()             under its lock: does it, if it is ready
///   void finish()              when the locks are free, by the one that was done: wakes the other side
///   void prepare(of, index, self)  where it has to wait, before the locks are taken
///   waiter& enter()            under its lock: gets in line
class select_case {
 public:
  /// Out of the line again, if it is still there. Where it was in line, takes its lock: waits for who is on the way out.
  virtual void leave(bool was_in_line) noexcept = 0;
  /// What it waits for: as wait_type::tell.
  virtual void tell(wait_subjects& into) const noexcept = 0;

 protected:
  select_case() = default;
  select_case(const select_case&) = default;
  ~select_case() = default;
};

/// The one wait of a select. What all kinds of select have in common is in `of`:
///   each(f)                    calls f(state, index) for all
///   bool try_ready<Try>()      tries those that may be ready, from any one on, until one is done: `chosen`
///   finish_chosen()
class select_wait : public waiter {
 public:
  select_wait(select_case** cases, learning_lock** locks, std::size_t count) noexcept
      : waiter{type}, cases_{cases}, locks_{locks}, count_{count} {}

  /// Gets in line everywhere. False: one was ready by now.
  template <class Select>
  bool suspend(root& self, Select& of) noexcept;
  /// When it goes on.
  template <class Select>
  void end(Select& of) noexcept;
  /// By one that never waits: tries all of them at one moment.
  template <class Select>
  static bool try_all(learning_lock** locks, Select& of) noexcept;

  /// A number below `count`, another one each time.
  static std::size_t any_of(std::size_t count) noexcept;

  static constexpr std::size_t none = std::size_t(-1);
  std::size_t chosen = none;  // by whoever has claimed the wait

 private:
  static on_stop leave(waiter& self) noexcept;
  static void tell(const waiter& self, const char* what, wait_subjects& into) noexcept;
  static constexpr wait_type type{leave, "select", tell};
  void leave_all() noexcept;
  // Gives how many are left of them, each once.
  static std::size_t lock_all(learning_lock** locks, std::size_t count) noexcept;
  static void unlock_all(learning_lock** locks, std::size_t count) noexcept;

  select_case** cases_;
  learning_lock** locks_;
  std::size_t count_;
  bool in_line_ = false;  // all of them are, or were
};

/// How a select tries one that may be ready: alone, or where it has all the locks.
struct try_alone {
  template <class State>
  static bool now(State& one) noexcept {
    one.its_lock().lock();
    const bool done = one.try_now();
    one.its_lock().unlock();
    if (done) one.finish();
    return done;
  }
};
struct try_locked {
  template <class State>
  static bool now(State& one) noexcept {
    return one.try_now();
  }
};

template <class Select>
bool select_wait::suspend(root& self, Select& of) noexcept {
  of.each([&](auto& one, std::size_t i) {
    one.prepare(*this, i, self);
    cases_[i] = &one;
    locks_[i] = &one.its_lock();
  });
  const std::size_t locks = lock_all(locks_, count_);
  if (of.template try_ready<try_locked>()) {
    unlock_all(locks_, locks);
    of.finish_chosen();
    chosen = of.chosen;
    return false;
  }
  in_line_ = true;  // before it is known: whoever ends the wait reads it
  const bool parked = self.park(*this);
  if (parked) of.each([&](auto& one, std::size_t) { one.enter().share(*this); });
  unlock_all(locks_,
             locks);  // who goes on takes each but that of the case that was chosen, so this is here until the last
  if (!parked) {
    in_line_ = false;
    leave_all();
    end_stopped(self);
  }
  return true;
}

template <class Select>
bool select_wait::try_all(learning_lock** locks, Select& of) noexcept {
  std::size_t count = 0;
  of.each([&](auto& one, std::size_t) { locks[count++] = &one.its_lock(); });
  count = lock_all(locks, count);
  const bool done = of.template try_ready<try_locked>();
  unlock_all(locks, count);
  if (done) of.finish_chosen();
  return done;
}

// Whoever finds one of those that were not chosen meanwhile can't claim it, and goes on to the next. The one that was is
// out of its line, and who took it out has given its lock back before it woke us.
template <class Select>
void select_wait::end(Select& of) noexcept {
  of.each([&](auto& one, std::size_t i) { one.leave(in_line_ && i != chosen); });
}

/// Of a case, for which the select waits.
inline constexpr wait_type waits_by_select{nullptr, "select"};

/// What a send and a receive have in common as cases of a select: a place in a line of a channel.
class channel_case : public select_case {
 public:
  learning_lock& its_lock() noexcept { return at_.lock; }
  void finish() noexcept {
    if (to_wake_ != nullptr) to_wake_->wake();
  }
  waiter& enter() noexcept {
    line_->push(*node_);
    ++at_.waits;
    return *node_;
  }
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
};

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
};

}  // namespace detail

/// A receive as a case of a select, which gives std::optional<T>: see channel::receive.
template <class T>
class receive_case {
 public:
  using result_type = std::optional<T>;
  using state = detail::receive_state<T>;
  explicit receive_case(channel<T>& from) noexcept : from_{&from} {}

 private:
  friend state;
  channel<T>* from_;
};

/// A send as a case of a select: see channel::send. The value stays where it is until it is sent.
template <class T>
class send_case {
 public:
  using result_type = std::monostate;
  using state = detail::send_state<T>;
  send_case(channel<T>& to, T&& value) noexcept : to_{&to}, value_(std::move(value)) {}

 private:
  friend state;
  channel<T>* to_;
  T value_;
};

namespace detail {

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
  }
  waiter& enter() noexcept {
    by_.from_->line().push(node_);
    ++by_.from_->waits;
    return node_;
  }
  void leave(bool was_in_line) noexcept override {
    if (was_in_line) by_.from_->channel_core::leave(node_, by_.from_->line());
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
};

/// Something that happens once, outside of any channel, and for which one select waits.
class happening {
 public:
  learning_lock& lock() noexcept { return lock_; }
  bool happened() const noexcept { return happened_; }  // under the lock
  bool seems_happened() const noexcept { return happened_.peek(); }
  void enter(channel_waiter& one) noexcept { waits_ = &one; }  // under the lock
  void leave() noexcept;
  /// Both may be gone when this returns.
  void happen() noexcept;

 private:
  learning_lock lock_;  // of the next two
  peeked<bool> happened_ = false;
  channel_waiter* waits_ = nullptr;
};

/// Waits for one.
class happening_case : public select_case {
 public:
  bool may_be_ready() const noexcept { return what_.seems_happened(); }
  std::uint32_t changes() const noexcept { return 0; }  // what has happened stays so
  learning_lock& its_lock() noexcept { return what_.lock(); }
  bool try_now() noexcept { return what_.happened(); }
  void finish() noexcept {}
  void prepare(select_wait& of, std::size_t index, root&) noexcept {
    node_.select = &of;
    node_.index = index;
  }
  waiter& enter() noexcept {
    what_.enter(node_);
    return node_;
  }
  void leave(bool) noexcept override { what_.leave(); }

 protected:
  explicit happening_case(happening& what) noexcept : what_{what} {}
  ~happening_case() = default;

  void tell(wait_subjects& into) const noexcept override { into.add("work beside a select", &what_); }

 private:
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
  using state = after_case;
  explicit after_case(clock::duration d) noexcept : happening_case{passed_}, timer{fire_now}, for_{d} {}
  after_case(const after_case& other) noexcept : after_case{other.for_} {}

  bool may_be_ready() const noexcept { return for_ <= clock::duration::zero() || passed_.seems_happened(); }
  bool try_now() noexcept { return may_be_ready(); }
  void prepare(detail::select_wait& of, std::size_t index, detail::root& self) noexcept;
  void leave(bool was_in_line) noexcept override;
  result_type take() noexcept { return {}; }

 private:
  void tell(detail::wait_subjects& into) const noexcept override { into.add("clock", clock_); }
  static void fire_now(timer& self) noexcept;

  clock::duration for_;
  clock* clock_ = nullptr;
  detail::happening passed_;
};

namespace detail {

/// What a select does if nothing is ready.
struct otherwise_case {
  using result_type = std::monostate;
  using state = otherwise_case;
  bool may_be_ready() const noexcept { return false; }
  std::uint32_t changes() const noexcept { return 0; }
  result_type take() noexcept { return {}; }
};

}  // namespace detail

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
/// What is done where no other case is ready at one moment: such a select never waits.
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
  using indices = std::index_sequence_for<Cases...>;
  static constexpr std::size_t count = sizeof...(Cases);

 public:
  explicit select_awaiter(std::tuple<Cases...>&& cases) noexcept : states_(std::move(cases)) {}
  select_awaiter(const select_awaiter&) = delete;

  bool suspend(root& self) noexcept {
    if (self.sleeper::stop_requested()) [[unlikely]]
      return (end_stopped(self), true);
    if constexpr (never_waits) {
      if (!none_is_ready() && !try_ready<try_alone>() && !select_wait::try_all(locks_.data(), *this))
        chosen = otherwise_at;
      return false;
    } else {
      if (try_ready<try_alone>()) return false;
      return wait_for_all(self);
    }
  }
  result_type await_resume() {
    if constexpr (!never_waits)
      if (waiting_.wait) {
        chosen = waiting_.wait->chosen;
        waiting_.wait->end(*this);
      }
    return take<0>();
  }

  // For its wait.
  template <class Function>
  void each(Function f) noexcept {
    each(f, indices{});
  }
  template <class Try>
  bool try_ready() noexcept {
    for (std::uint64_t ready = those_that_may_be_ready(indices{}); ready != 0; ready &= ~(std::uint64_t{1} << chosen)) {
      std::uint64_t from = ready;
      if ((ready & (ready - 1)) != 0)
        for (std::size_t i = select_wait::any_of(static_cast<std::size_t>(std::popcount(ready))); i != 0; --i)
          from &= from - 1;
      chosen = static_cast<std::size_t>(std::countr_zero(from));
      if (try_at<Try>(indices{})) return true;
    }
    return false;
  }
  void finish_chosen() noexcept {
    each([this](auto& one, std::size_t i) {
      if (i == chosen) one.finish();
    });
  }
  std::size_t chosen;

 private:
  static constexpr bool never_waits = (std::is_same_v<Cases, otherwise_case> || ...);
  static_assert((0 + ... + int{std::is_same_v<Cases, otherwise_case>}) <= 1, "a select has one otherwise");
  static constexpr std::size_t otherwise_at = [] {
    constexpr bool is_otherwise[] = {std::is_same_v<Cases, otherwise_case>...};
    return static_cast<std::size_t>(std::find(is_otherwise, is_otherwise + count, true) - is_otherwise);
  }();
  static_assert(count <= 64, "a select of more than 64 cases is given them as a vector");

  template <std::size_t... I>
  std::uint64_t those_that_may_be_ready(std::index_sequence<I...>) const noexcept {
    return (... | (std::uint64_t{std::get<I>(states_).may_be_ready()} << I));
  }
  // None was at the moment at which this looked at the first one: each was not when it was looked at, and none has
  // ceased to be ready meanwhile. Then `otherwise` is chosen.
  bool none_is_ready() noexcept {
    const std::uint32_t before = changes(indices{});
    chosen = otherwise_at;
    return those_that_may_be_ready(indices{}) == 0 && changes(indices{}) == before;
  }
  template <std::size_t... I>
  std::uint32_t changes(std::index_sequence<I...>) const noexcept {
    return (... + std::get<I>(states_).changes());
  }
  template <class Try, std::size_t... I>
  bool try_at(std::index_sequence<I...>) noexcept {
    return (... || (I == chosen && try_state<Try>(std::get<I>(states_))));
  }
  template <class Try, class State>
  static bool try_state(State& one) noexcept {
    if constexpr (std::is_same_v<State, otherwise_case>)
      return false;
    else
      return Try::now(one);
  }
  template <class Function, std::size_t... I>
  void each(Function& f, std::index_sequence<I...>) noexcept {
    (each_of(f, std::get<I>(states_), I), ...);
  }
  template <class Function, class State>
  static void each_of(Function& f, State& one, std::size_t i) noexcept {
    if constexpr (!std::is_same_v<State, otherwise_case>) f(one, i);
  }
  [[gnu::noinline]] bool wait_for_all(root& self) noexcept {
    return waiting_.wait.emplace(waiting_.cases.data(), locks_.data(), count).suspend(self, *this);
  }
  template <std::size_t I>
  result_type take() {
    if constexpr (I + 1 != count)
      if (chosen != I) return take<I + 1>();
    return result_type{I, decltype(result_type::value){std::in_place_index<I>, std::get<I>(states_).take()}};
  }

  struct waits {
    std::array<select_case*, count> cases;
    std::optional<select_wait> wait;
  };
  struct waits_not {};

  std::tuple<typename Cases::state...> states_;
  std::array<learning_lock*, count> locks_;
  [[no_unique_address]] std::conditional_t<never_waits, waits_not, waits> waiting_;
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

  explicit select_range_awaiter(std::vector<Case>&& cases) : cases_(cases.size()), locks_(cases.size()) {
    states_.reserve(cases.size());
    for (Case& one : cases) states_.emplace_back(std::move(one));
  }
  select_range_awaiter(const select_range_awaiter&) = delete;

  bool suspend(root& self) noexcept {
    if (self.sleeper::stop_requested()) [[unlikely]]
      return (end_stopped(self), true);
    return !try_ready<try_alone>() && wait_.emplace(cases_.data(), locks_.data(), cases_.size()).suspend(self, *this);
  }
  result_type await_resume() {
    if (wait_) {
      chosen = wait_->chosen;
      wait_->end(*this);
    }
    return {chosen, states_[chosen].take()};
  }

  // For its wait.
  template <class Function>
  void each(Function f) noexcept {
    for (std::size_t i = 0; i != states_.size(); ++i) f(states_[i], i);
  }
  template <class Try>
  bool try_ready() noexcept {
    const auto may_be_ready = [](const auto& one) { return one.may_be_ready(); };
    const auto ready = static_cast<std::size_t>(std::count_if(states_.begin(), states_.end(), may_be_ready));
    if (ready == 0) return false;
    std::size_t first = 0;
    for (std::size_t i = select_wait::any_of(ready); first != states_.size(); ++first)
      if (states_[first].may_be_ready() && i-- == 0) break;
    for (std::size_t i = 0; i != states_.size(); ++i) {
      chosen = (first + i) % states_.size();
      if (states_[chosen].may_be_ready() && Try::now(states_[chosen])) return true;
    }
    return false;
  }
  void finish_chosen() noexcept { states_[chosen].finish(); }
  std::size_t chosen;

 private:
  std::vector<typename Case::state> states_;
  std::vector<select_case*> cases_;
  std::vector<learning_lock*> locks_;
  std::optional<select_wait> wait_;
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
/// Cost  a lock where one is ready, none where none is and there is `otherwise`, else one for each channel; no memory;
///       with an on() the frames of a scope and of a fork for each.
template <class... Cases>
  requires(sizeof...(Cases) > 0)
auto select(Cases... cases) {
  if constexpr ((detail::runs_beside<Cases> || ...)) {
    static_assert(!(std::is_same_v<typename detail::select_case_of<Cases>::type, detail::otherwise_case> || ...),
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
/// Cost  three allocations more.
template <class Case>
  requires std::is_base_of_v<detail::select_case, typename Case::state>
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
  using state = ended_case;
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
