// Waiting for whichever of several is first: a send, a receive, a time, a stop, a lock, or whatever else can be awaited.
//
//     auto got = co_await w::select(w::on_receive(orders), w::on_receive(cancels), w::after(5ms));
//     if (got.index == 0) serve(std::get<0>(got.value));
//
// Cases of channels, times and stops are in select_cases.hpp, of whatever else can be awaited in select_on.hpp, those that may
// be missing in select_holes.hpp; any_case.hpp has one of any kind, for a vector of them. How a select chooses stands
// in channel/select_core.hpp, and of a vector in channel/select_many.hpp.
#pragma once

#include <cstddef>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>
#include <weft/any_case.hpp>
#include <weft/detail/channel/select_beside.hpp>
#include <weft/detail/channel/select_core.hpp>
#include <weft/detail/channel/select_many.hpp>
#include <weft/select_cases.hpp>
#include <weft/select_holes.hpp>
#include <weft/select_on.hpp>

namespace weft {

/// Which case of a select was done, and what it gave: alternative `index` of `value`.
template <class... Results>
struct selected {
  std::size_t index;
  std::variant<Results...> value;
};

/// Does one of the cases, whichever is ready first; if several are, any of them, each as likely, also where one event makes
/// several of them ready while it waits. Each gives what it gives alone; a send to a closed channel that was chosen throws.
///
///     auto got = co_await select(on_receive(numbers), after(5ms));
///     if (got.index == 0) use(std::get<0>(got.value));
///
/// Suspends  where none is ready, and there is no `otherwise`; resumes on its own executor.
/// Cancel    leaves all lines, and ends stopped. A case that was chosen before wins: what it received is there.
/// Fails     as the case that was chosen.
/// Lifetime  the channels outlive it.
/// Threads   any.
/// Cost      a lock where one is ready, none where none is and there is `otherwise`, else one for each channel; no memory;
///           with an operation on a socket, a frame; with an on() that runs, the frames of a scope and of a fork for each.
template <class... Cases>
  requires(sizeof...(Cases) > 0)
auto select(Cases... cases) {
  if constexpr ((detail::runs_beside<Cases> || ...)) {
    static_assert(
        !(std::is_same_v<typename detail::select_case_of<Cases>::type, detail::otherwise_case> || ...),
        "a select with otherwise never waits, so what runs beside it could not end: fork it, and give the fork by "
        "its name, on(f)");
    using selection = detail::selection_beside<Cases...>;
    return selection::run(typename selection::parts{std::move(cases)...});
  } else {
    return detail::select_each(std::move(cases)...);
  }
}

/// The same where only the run knows how many there are, all of one kind: gives {index, value}. Of none, it
/// waits until it is stopped.
///
///     std::vector<receive_case<int>> all;
///     for (auto& one : channels) all.push_back(on_receive(one));
///     auto [index, value] = co_await select(std::move(all));
///
/// Suspends, Cancel, Fails, Lifetime and Threads as above.
/// Cost      four allocations more.
template <class Case>
  requires std::is_base_of_v<detail::select_case, typename Case::state>
auto select(std::vector<Case> cases) {
  return detail::select_many(std::move(cases));
}
template <class T>
auto select(std::vector<on_case<T>> cases) {
  return detail::range_selection_beside<T>::run(std::move(cases));
}

/// The same of cases of any kind, each with its function: gives the index of the one that was done. See any_case.
///
/// Suspends, Cancel, Fails, Lifetime and Threads as above; never waits where `otherwise` is among them.
/// Cost      four allocations and a frame more, besides those of the cases.
inline auto select(std::vector<any_case> cases) { return detail::select_many(std::move(cases)); }

}  // namespace weft
