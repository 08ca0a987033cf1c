// Probes for tracers outside of the process, such as bpftrace: a `nop` each, and a note in the ELF file that says where it is and
// where its arguments are. They stand where an event is recorded, which is off all fast paths: of roots, then, only those of
// traced requests have any (traced.hpp). `tools/weft.bt` is an example.
//
//     weft:root__begin  root, function, request     it runs for the first time
//     weft:root__run    root, function, request     it runs again
//     weft:wait         root, request               it waits from now on
//     weft:wake         root, what, request         its wait for `what`, a text, has ended
//     weft:root__end    root, request
//     weft:steal        jobs, thread                this worker has taken so many from that thread
//     weft:sleep        worker                      this worker sleeps
//     weft:wake__up     other                       and no longer; 1: another thread has woken it
//     weft:stall        thread, nanoseconds, where  that thread is at one job for so long
#pragma once

#include <cstdint>
#include <weft/recorded_event.hpp>

#if defined(WEFT_WITH_SDT)
#include <sys/sdt.h>
#else
#define DTRACE_PROBE1(provider, name, a) static_cast<void>(a)
#define DTRACE_PROBE2(provider, name, a, b) static_cast<void>(a), static_cast<void>(b)
#define DTRACE_PROBE3(provider, name, a, b, c) static_cast<void>(a), static_cast<void>(b), static_cast<void>(c)
#endif

namespace weft::detail {

/// Passes the probe of an event, if it has one.
inline void pass_probe(event_kind kind, std::uint16_t flags, std::uint32_t number, std::uint64_t first,
                       std::uint64_t second) noexcept {
  switch (kind) {
    case event_kind::turn_begins:
      if ((flags & turn_flags::first) != 0)
        DTRACE_PROBE3(weft, root__begin, first, second, number);
      else
        DTRACE_PROBE3(weft, root__run, first, second, number);
      break;
    case event_kind::turn_ends:
      if ((flags & turn_flags::ended) != 0)
        DTRACE_PROBE2(weft, root__end, first, number);
      else if ((flags & turn_flags::interrupted) == 0)
        DTRACE_PROBE2(weft, wait, first, number);
      break;
    case event_kind::wake: DTRACE_PROBE3(weft, wake, first, second, number); break;
    case event_kind::steal: DTRACE_PROBE2(weft, steal, number, first); break;
    case event_kind::sleep: DTRACE_PROBE1(weft, sleep, number); break;
    case event_kind::wake_up: DTRACE_PROBE1(weft, wake__up, number); break;
    case event_kind::stall: DTRACE_PROBE3(weft, stall, number, first, second); break;
    default: break;
  }
}

}  // namespace weft::detail
