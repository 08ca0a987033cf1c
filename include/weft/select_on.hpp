// Any awaitable as a case of a select. How such a case waits is in channel/select_on.hpp. Part of select.hpp.
#pragma once

#include <type_traits>
#include <utility>
#include <weft/detail/channel/select_on.hpp>
#include <weft/future.hpp>
#include <weft/select_cases.hpp>
#include <weft/task.hpp>

namespace weft {

/// Makes a case of anything that can be awaited. The case gives what the awaitable gives.
///
///     auto got = co_await select(on_receive(orders), on(work), on(door.wait()));  // `work` is a fork
///
/// There are two kinds of cases. An operation of weft has no effect where another case is chosen: each function of mutex,
/// shared_mutex, semaphore, event, auto_event and guarded; latch::wait(); sends and receives of channels, broadcasts and
/// watches; a fork or a view, passed as an lvalue; and of sockets read, receive, write_some, accept, ready, and all operations
/// of datagrams. Such a case may stand beside `otherwise`: `select(on(work), otherwise)` asks whether the fork has ended.
///
/// Anything else (a task, sleep_for(), an awaitable of another library) runs beside the other cases, from the moment at which
/// the select is awaited; several begin in any order. It is chosen if it ends first. If another case is chosen, it is told to
/// stop, and joined. What it has done by then is not undone: a task that has received a value keeps it, and a result that comes
/// too late is destroyed. So pass only work that may be done in vain. Otherwise fork it, and pass the fork as an lvalue: its
/// result is kept. A shared_task that nobody else awaits is stopped, too. A future that is moved in is used up: pass it as an
/// lvalue.
///
/// What does not fit does not compile: arrive_and_wait() of a latch or a barrier, which arrives whichever case is chosen; a
/// write of a stream, which may send a part; a timeout() of an operation that would be a case by itself (use after(d)); and a
/// select (pass its cases).
///
/// Suspends  until those that run and were not chosen have ended, too.
/// Cancel    stops those that run; the others leave their lines. If the chosen one ends stopped, so does the select.
/// Fails     as the chosen one. What one that runs and was not chosen throws goes to the handler of lost errors, unless it was
///           passed as an lvalue: that throws it again when it is awaited.
/// Lifetime  a primitive, a fork, a view or the like outlives the select.
/// Cost      a lock for each, and no allocation. If any of them runs: the frame of a scope, and of a fork for each that runs.
template <awaitable Awaitable>
auto on(Awaitable&& work);

/// The same for a future that is passed as an lvalue. It keeps its outcome if another case is chosen, and is empty if this one
/// is.
///
///     auto got = co_await select(on(answer), after(5ms));  // and once more, if it is late
///
/// Suspends  until the promise was set.
/// Cancel    leaves the future as it is, as does the choice of another case: its promise can still be set.
/// Fails     as the future. If it was set to stopped, and is chosen, the select ends stopped. An empty one, and one that
///           somebody else waits for, ends the program with a sentence.
/// Lifetime  the future outlives the select, and is not moved. Nobody else waits for it meanwhile.
/// Threads   any thread may set the promise. A select that leaves meanwhile waits for that, some instructions.
/// Cost      no allocation; a lock of one word, as other cases, and two atomic read-modify-writes more where it waits.
template <class T>
detail::future_case<T> on(future<T>& answer);

/// A case that runs beside the others: see on().
template <class T>
class on_case {
 public:
  /// `kept`: it was passed as an lvalue, whose owner gets its result.
  on_case(task<T>&& work, bool kept) noexcept : work_{std::move(work)}, kept_{kept} {}

 private:
  template <class>
  friend class detail::on_state;
  task<T> work_;
  bool kept_;
};

// ---- implementation -----------------------------------------------------------------------------------------------------

namespace detail {
template <class T>
inline constexpr bool runs_beside<on_case<T>> = true;
}  // namespace detail

template <awaitable Awaitable>
auto on(Awaitable&& work) {
  using type = std::remove_cvref_t<Awaitable>;
  constexpr bool by_name = std::is_lvalue_reference_v<Awaitable>;
  if constexpr (requires { std::forward<Awaitable>(work).as_case(); }) {
    return std::forward<Awaitable>(work).as_case();
  } else if constexpr (detail::is_fork_view<type>) {
    return detail::fork_case<typename type::value_type, true, !by_name>{work};
  } else if constexpr (detail::is_fork<type> && by_name) {
    return detail::fork_case<typename type::value_type, false>{work};
  } else {
    static_assert(!detail::is_fork<type>,
                  "a select that does not choose a fork would lose its result: give the fork by its name, on(f)");
    static_assert(
        !detail::arrives<type>,
        "arrive_and_wait() has arrived whichever case a select chooses: of a latch, count_down() before it and give "
        "on(l.wait()); of a barrier, fork it and give the fork by its name, on(f)");
    static_assert(
        !detail::limits_a_case<type>,
        "a timeout runs beside the other cases, and would lose what it has received or taken: give what it limits, "
        "on(c.receive()), and after(d)");
    static_assert(
        !detail::is_whole_write<type>,
        "a write as a case would have sent a part although another case is chosen: fork it, and give the fork by its "
        "name, on(f); or give on(s.write_some(data)), which has sent something or nothing");
    static_assert(
        !detail::is_select<type>,
        "a select as a case would do one of its own although another one is chosen: give its cases to the one "
        "select");
    return on_case<await_result<Awaitable>>{detail::as_task(std::forward<Awaitable>(work)), by_name};
  }
}

template <class T>
detail::future_case<T> on(future<T>& answer) {
  return detail::future_case<T>{answer};
}

}  // namespace weft
