// Whether a library with weft inside is unloaded (dlclose), so that all that it has goes with it, or its process ends, where
// nothing of that goes: other threads may still use it. Nothing says so, but the order of three kinds of functions does:
//
//   the process ends          at_end()'s | [[gnu::destructor]] | [[gnu::destructor(number)]], the largest first
//   the library is unloaded   [[gnu::destructor]] | at_end()'s | [[gnu::destructor(number)]], the largest first
//
// Destructors of statics come among at_end()'s functions, so those with a number are the last to run.
//
// Hidden, so that each library and program that weft is linked into asks for itself: of two with weft inside, the loader would
// else take one's functions for both.
//
// Rejected: a function of the C library's that on_exit() calls at the end of the process and that leaves a trace: the trace
// itself stays behind at each unloading.
#pragma once

namespace weft::detail {

/// At the end of the process, and before the library is unloaded, `f` is called, once. False: there is no memory for that.
[[gnu::visibility("hidden")]] bool at_end(void (*f)()) noexcept;

/// In a function of at_end(): the library is being unloaded.
[[gnu::visibility("hidden")]] bool is_unloading() noexcept;

/// Called when anything was made that is to go with the library.
[[gnu::visibility("hidden")]] void note_that_something_stays() noexcept;
/// In a destructor with one of the numbers below: what was made goes.
[[gnu::visibility("hidden")]] bool is_unloaded() noexcept;

/// What goes first has the largest number: threads use stacks, stacks' users have frames.
inline constexpr int unloads_stacks = 303, unloads_workers = 302;

}  // namespace weft::detail
