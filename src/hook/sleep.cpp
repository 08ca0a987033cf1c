// sleep, usleep, nanosleep, clock_nanosleep.
#include <time.h>
#include <unistd.h>

#include <chrono>
#include <weft/hop.hpp>

#include "hook/next.hpp"
#include "hook/program_memory.hpp"
#include "hook/waiting.hpp"

namespace weft::detail {
namespace {

WEFT_HOOK_NEXT(sleep);
WEFT_HOOK_NEXT(usleep);
WEFT_HOOK_NEXT(nanosleep);
WEFT_HOOK_NEXT(clock_nanosleep);

// False: a stop ended the sleep.
bool sleep_in_fiber(clock::duration d) noexcept {
  if (d <= clock::duration::zero()) return await_unless_stopped(weft::yield());
  return await_unless_stopped(sleep_for(d));
}

}  // namespace

extern const char hooks_sleep;
const char hooks_sleep = 0;  // makes the linker include this file; see all_sources in fiber_hooks.cpp

}  // namespace weft::detail

using namespace weft::detail;  // NOLINT(google-build-using-namespace): the hooks below belong to weft

extern "C" {

unsigned sleep(unsigned seconds) {
  const hooked_call call{&weft::hook_options::sleep};
  if (!call) return next_sleep(seconds);
  const auto begun = weft::current_clock().now();
  if (!call.is_stopped() && sleep_in_fiber(std::chrono::seconds{seconds})) return static_cast<unsigned>(call.give(0));
  errno = ECANCELED;
  const auto slept = std::chrono::floor<std::chrono::seconds>(weft::current_clock().now() - begun).count();
  return slept >= seconds ? 0 : seconds - static_cast<unsigned>(slept);
}

int usleep(useconds_t microseconds) {
  const hooked_call call{&weft::hook_options::sleep};
  if (!call) return next_usleep(microseconds);
  if (call.is_stopped() || !sleep_in_fiber(std::chrono::microseconds{microseconds})) return call.fail(ECANCELED);
  return call.give(0);
}

int nanosleep(const timespec* wanted, timespec* left) {
  const hooked_call call{&weft::hook_options::sleep};
  weft::clock::duration time{};
  if (!call || !read_time(&time, wanted)) return next_nanosleep(wanted, left);
  if (call.is_stopped() || !sleep_in_fiber(time)) return call.fail(ECANCELED);
  return call.give(0);
}

// Returns the error number instead of setting errno. Suspends for CLOCK_MONOTONIC, and for CLOCK_REALTIME with a relative time.
// Any other sleep blocks the thread: its clock may be set, stand still or count the time for which the system is suspended.
int clock_nanosleep(clockid_t by, int flags, const timespec* wanted, timespec* left) {
  const hooked_call call{&weft::hook_options::sleep};
  weft::clock::duration time{};
  const bool is_absolute = (flags & TIMER_ABSTIME) != 0;
  const bool is_known = by == CLOCK_MONOTONIC || (by == CLOCK_REALTIME && !is_absolute);
  if (!call || !is_known || !read_time(&time, wanted)) return next_clock_nanosleep(by, flags, wanted, left);
  if (is_absolute) {
    timespec now;
    ::clock_gettime(by, &now);
    time -= duration_of(now);
  }
  const bool has_slept = !call.is_stopped() && sleep_in_fiber(time);
  static_cast<void>(call.give(0));  // leaves errno as it was
  return has_slept ? 0 : ECANCELED;
}

}  // extern "C"
