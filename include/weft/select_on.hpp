// Whatever can be awaited, as a case of a select. What such a case waits with is in channel/select_on.hpp. Part of select.hpp.
#pragma once

#include <type_traits>
#include <utility>
#include <weft/detail/channel/select_on.hpp>
#include <weft/future.hpp>
#include <weft/select_cases.hpp>
#include <weft/task.hpp>

namespace weft {

/// Anything that can be awaited, as a case, which gives what it gives.
///
///     auto got = co_await select(on_receive(orders), on(work), on(door.wait()));  // `work` is a fork
///
/// What weft has to wait for has no effect where another case is chosen: each function of mutex, shared_mutex, semaphore,
/// event, auto_event and guarded, latch::wait, what channels, broadcasts and watches send and receive, a fork or a view,
/// given by its name, and what sockets do: read, receive, write_some, accept, ready, and all of datagrams. So it may stand beside
/// `otherwise`, too: `select(on(work), otherwise)` asks whether the fork has ended.
///
/// All else (a task, sleep_for, what others have made) runs, beside the other cases, from the moment at which the select is
/// awaited, several started in any order, and is chosen when it has ended, if no other was before. Where another is chosen it is told to stop, and joined.
/// What it has done until then is done: a task that has received a value has it, and what it gives although another case was
/// chosen is destroyed. So give it what may be done in vain; else fork it, and give the fork by its name, whose result is
/// still there. A shared_task that nobody else awaits is stopped so, too, and a future that is moved into it is used up:
/// give it by its name.
///
/// What can't stand for that does not compile: a latch's and a barrier's arrive_and_wait(), which have arrived whichever case
/// is chosen; a stream's write, of which a part may be sent; a timeout of what would be a case by itself (after(d) is the
/// time); a select, whose cases the other one takes.
///
/// Suspends  until those that run and were not chosen have ended, too.
/// Cancel    a stop goes to all that run; all else leaves its line. One that ends stopped by itself, and is chosen, ends the
///           select stopped.
/// Fails     as what is awaited. What one that runs and was not chosen throws all the same goes to the handler of lost errors;
///           not if it was given by its name, as it throws that again.
/// Lifetime  a primitive, a fork, a view or the like outlives the select.
/// Cost      a lock for each, and no allocation; with one that runs, the frames of a scope for all of them, and of a fork for
///           each.
template <awaitable Awaitable>
auto on(Awaitable&& work);

/// The same of a future that stays, given by its name: it has its outcome still where another case is chosen, and is empty
/// where this one is.
///
///     auto got = co_await select(on(answer), after(5ms));  // and once more, if it is late
///
/// Suspends  until the promise was set.
/// Cancel    leaves the future as it is, also where another case is chosen: its promise can still be set.
/// Fails     as the future. One that was set to stopped, and is chosen, ends the select stopped. One that is empty, or that
///           somebody waits for by now, ends the program with a sentence.
/// Lifetime  the future stays where it is, and outlives the select; nobody else waits for it meanwhile.
/// Threads   the promise may be set on any; a select that leaves while it is being set waits for that, some instructions.
/// Cost      no memory. The lock of one word, as other cases have; two read-modify-writes more where it waits.
template <class T>
detail::future_case<T> on(future<T>& answer);

/// Something that runs, as a case of a select, which gives what it gives: see on().
template <class T>
class on_case {
 public:
  /// `kept`: whoever gave it by its name has what comes of it.
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
