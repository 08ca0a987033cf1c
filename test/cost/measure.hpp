// What the programs in test/cost/ are written with. They print figures; `check` compares those with the budgets.
//
//     int main() {
//       cost::instructions("await", 1000, [] { sync_wait(thousand_awaits()); });
//       cost::figure("frame bytes", frame_size);
//     }
//
// Each program is run under callgrind, which counts instructions and atomic read-modify-writes between two client
// requests. Run by hand, without valgrind, the requests do nothing.
#pragma once

#include <valgrind/callgrind.h>

#include <cstdio>

namespace cost {

/// What lies between is counted; it performed so many operations. For what is no function: a coroutine on a pool.
inline void begin() { CALLGRIND_ZERO_STATS; }
inline void end(const char* name, unsigned long operations) {
  CALLGRIND_DUMP_STATS_AT(name);
  std::printf("instructions\t%s\t%lu\n", name, operations);
}

/// Counts the instructions of `body`, and its read-modify-writes; it performs `operations` operations. Runs it once
/// before that, so that what is paid once (caches that fill, symbols that are bound) is not counted.
template <class Body>
void instructions(const char* name, unsigned long operations, Body&& body) {
  body();
  begin();
  body();
  end(name, operations);
}

/// Reports a figure that the program has counted itself: allocations, bytes of a frame, read-modify-writes.
inline void figure(const char* name, double value) { std::printf("figure\t%s\t%g\n", name, value); }

}  // namespace cost
