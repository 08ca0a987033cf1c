// A select of what runs beside it. Part of select.hpp.
//
// One with an on() among its cases is a scope with a fork for each of those. Once one is chosen the others are told to
// stop; the scope's end joins them. So a case may be chosen while another one ends, too: what that gave is destroyed, and
// what it threw is told to the handler of lost errors, as by when_any. A fork that was given by its name has both still.
//
// They are started in any order, since those that wait for the same are served in the order in which they come to wait.
//
// A case of one that has ended stopped ends the body's own select stopped; the others are told first.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>
#include <weft/detail/channel/select_cases.hpp>
#include <weft/detail/channel/select_many.hpp>
#include <weft/detail/channel/select_wait.hpp>
#include <weft/detail/join/group.hpp>
#include <weft/scope.hpp>
#include <weft/select_on.hpp>
#include <weft/task.hpp>

namespace weft::detail {

/// One that runs, and what came of it. The select that waits for it ends before it.
template <class T>
class on_state : public happening {
 public:
  explicit on_state(on_case<T>&& from) noexcept : work_{std::move(from.work_)}, kept_{from.kept_} {}
  on_state(on_state&& other) noexcept
      : happening{}, work_{std::move(other.work_)}, kept_{other.kept_} {}  // before it runs
  ~on_state() {
    if (!kept_ && ended_ && ended_->exception()) lose_error("select", ended_->exception());
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
  bool kept_;
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

/// Why those run no longer that were not chosen.
inline stop_cause another_was_chosen() noexcept {
  return {.reason = "another case of the select was chosen", .where = {}};
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
    return select_each(case_of_part(std::get<I>(of))...);
  }
  template <std::size_t... I>
  static void start(scope& s, parts& of, std::array<fork<>, sizeof...(Cases)>& running, std::index_sequence<I...>) {
    std::array<std::size_t, sizeof...(Cases)> order{I...};
    shuffle(order.data(), order.size());
    for (const std::size_t next : order)
      static_cast<void>(((I == next && (start_part(s, std::get<I>(of), running[I]), true)) || ...));
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
    result<given> got = co_await as_result(std::move(first));
    for (fork<>& one : running)
      if (one) one.request_stop(another_was_chosen());
    if (got.is_stopped()) co_await ends_stopped{};
    co_return *std::move(got);
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
    std::vector<std::size_t> order(parts.size());
    for (std::size_t i = 0; i != order.size(); ++i) order[i] = i;
    shuffle(order.data(), order.size());
    for (const std::size_t next : order) start_part(s, parts[next], running[next]);
    std::vector<ended_case<T>> cases;
    cases.reserve(parts.size());
    for (on_state<T>& one : parts) cases.emplace_back(one);
    auto first = selecting_of<ended_case<T>>{std::move(cases)};
    const auto got = co_await std::move(first);
    for (fork<>& one : running) one.request_stop(another_was_chosen());
    co_return got.index;
  }
};

}  // namespace weft::detail
