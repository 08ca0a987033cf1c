// Waiting for whichever of several is first: cases of channels, clocks, stops, locks, futures and whatever is awaitable.
//
//     auto got = co_await w::select(w::on_receive(orders), w::on_receive(cancels), w::after(5ms));
//     if (got.index() == 0) serve(got.get<0>());
//
// The cases: on_receive, on_send, on (what is awaited), after, at, on_stop, otherwise (select_cases, select_on); on_if, on_each
// and never, for cases that may be missing (select_holes); any_case, for as many as are known at run time; what can only be
// run is run beside it (select_beside). How it chooses stands in weft/detail/channel/select_core.hpp.
#pragma once

#include <weft/detail/channel/any_case.hpp>
#include <weft/detail/channel/select_beside.hpp>
#include <weft/detail/channel/select_cases.hpp>
#include <weft/detail/channel/select_core.hpp>
#include <weft/detail/channel/select_holes.hpp>
#include <weft/detail/channel/select_on.hpp>
