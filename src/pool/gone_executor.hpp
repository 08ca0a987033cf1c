// What is left where a strand was: it says so to whoever posts.
//
// Nobody counts the tasks that wait on a strand, so its destructor does not know of them; but each finds the strand by its
// address when it is woken. So the destructor leaves an object there whose post() ends the program. That is a guess about
// memory that is nobody's: whatever is put there next takes its place, and the address sanitizer says more.
//
// Rejected: a count of the tasks of each strand (an atomic read-modify-write at the begin and at the end of each).
#pragma once

#include <weft/executor.hpp>

namespace weft::detail {

/// By a strand's destructor, last. Whoever posts to it later ends the program with a sentence.
void leave_gone_strand(executor& one) noexcept;

}  // namespace weft::detail
