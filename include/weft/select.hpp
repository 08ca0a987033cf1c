// Waiting for whichever of several is first: a send, a receive, a time, a stop, a lock, or whatever else can be awaited.
//
//     auto got = co_await w::select(w::on_receive(orders), w::on_receive(cancels), w::after(5ms));
//     if (got.index == 0) serve(std::get<0>(got.value));
//
// Cases of channels, times and stops are in select_cases.hpp, of whatever else can be awaited in select_on.hpp, those that may
// be missing in select_holes.hpp; any_case.hpp has one of any kind, for a vector of them. How a select chooses, and select()
// itself, is in select_core.hpp, which is where to begin.
#pragma once

#include <weft/detail/channel/any_case.hpp>
#include <weft/detail/channel/select_beside.hpp>
#include <weft/detail/channel/select_cases.hpp>
#include <weft/detail/channel/select_core.hpp>
#include <weft/detail/channel/select_holes.hpp>
#include <weft/detail/channel/select_on.hpp>
