// Tells whether a library that contains weft is unloaded (dlclose), and must free all that it has, or the process ends,
// where it must free nothing, since other threads may still use it. Only the order tells in which three kinds of functions
// are called:
//
//   the process ends          at_end()'s | [[gnu::destructor]] | [[gnu::destructor(number)]], the largest first
//   the library is unloaded   [[gnu::destructor]] | at_end()'s | [[gnu::destructor(number)]], the largest first
//
// Destructors of statics come among at_end()'s functions, so those with a number are the last to run.
//
// Hidden, so that each library and program that weft is linked into has these for itself: else the loader would use the
// functions of one of them for all.
//
// Rejected: to note the end of the process in a function that is registered by on_exit(): the registration would stay
// behind at each unloading.
#pragma once

namespace weft::detail {

/// Has `f` called once, at the end of the process or when the library is unloaded. False: there is no memory for that.
[[gnu::visibility("hidden")]] bool at_end(void (*f)()) noexcept;

/// To be asked in a function of at_end(): whether the library is being unloaded.
[[gnu::visibility("hidden")]] bool is_unloading() noexcept;

/// Called when something was made that is to be destroyed when the library is unloaded.
[[gnu::visibility("hidden")]] void note_that_something_stays() noexcept;
/// To be asked in a destructor with one of the numbers below: whether it is to destroy what was made.
[[gnu::visibility("hidden")]] bool is_unloaded() noexcept;

/// The largest number is destroyed first: threads use stacks, and what runs on stacks has frames. Handlers of crashes may be above
/// other ones, and below: they go in a [[gnu::destructor]], if they are above, and behind the others, if they are below.
inline constexpr int unloads_handlers = 305, unloads_handlers_of_crashes = 304, unloads_stacks = 303,
                     unloads_workers = 302;

}  // namespace weft::detail
