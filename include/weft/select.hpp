// select: waits for the first of several cases: sends, receives, times, stops, locks, or anything else that can be awaited.
//
//     auto got = co_await w::select(w::on_receive(orders), w::on_receive(cancels), w::after(5ms));
//     if (got.index == 0) serve(std::get<0>(got.value));
//
// Cases of channels, times and stops are in select_cases.hpp; of other awaitables, in select_on.hpp; cases that may be missing,
// in select_holes.hpp; a type-erased case for vectors, in any_case.hpp. How a select chooses is described in
// channel/select_core.hpp, for vectors in channel/select_many.hpp.
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

/// Which case a select has chosen, and what that gave: alternative `index` of `value`.
template <class... Results>
struct selected {
  std::size_t index;
  std::variant<Results...> value;
};

/// Chooses one case, the first that is ready, and performs it. If several are ready, each is equally likely to be chosen, also
/// where one event makes several ready at once. A case gives what its operation gives alone; a chosen send to a closed channel
/// throws.
///
///     auto got = co_await select(on_receive(numbers), after(5ms));
///     if (got.index == 0) use(std::get<0>(got.value));
///
/// Suspends  where none is ready, and there is no `otherwise`; resumes on its own executor.
/// Cancel    leaves all lines, and ends stopped. If a case was chosen before, the select completes with it.
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

/// The same for a number of cases that is known at run time, all of one type: gives {index, value}. With no case it waits until
/// it is stopped.
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

/// The same for cases of any types, each with its function: gives the index of the chosen one. See any_case.
///
/// Suspends, Cancel, Fails, Lifetime and Threads as above; never waits where `otherwise` is among them.
/// Cost      four allocations and a frame more, besides those of the cases.
inline auto select(std::vector<any_case> cases) { return detail::select_many(std::move(cases)); }

}  // namespace weft
