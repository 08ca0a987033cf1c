// corral needs an event loop to run anything. Nothing here waits for an event.
#pragma once

#include <corral/corral.h>

namespace bench {
struct no_events {};
}  // namespace bench

namespace corral {
template <>
struct EventLoopTraits<bench::no_events> {
  static EventLoopID eventLoopID(bench::no_events& loop) { return EventLoopID{&loop}; }
  static void run(bench::no_events&) {}
  static void stop(bench::no_events&) {}
};
}  // namespace corral
