// What can be seen of another thread of this process: what it is in, and its calls.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace weft::detail {

struct worker;

/// What the kernel says of a thread at one moment.
struct thread_state {
  bool is_known = false;
  bool can_run = false;  // has a processor, or is in line for one
  long system_call = -1;
  std::uint64_t stack = 0, code = 0;  // its registers, where it is in a system call
};
thread_state state_of(int thread) noexcept;

/// How long a thread has run, and how long it was in line for a processor; in nanoseconds. 0 where that can't be read.
std::uint64_t time_run_by(int thread) noexcept;
std::uint64_t time_in_line_of(int thread) noexcept;

/// The name of a system call, of those that a thread may be in for long; "" else.
const char* name_of_call(long number) noexcept;

struct thread_calls {
  std::array<const void*, 64> native{}, async{};
  std::size_t native_count = 0, async_count = 0;
  std::size_t in_root = 0;  // of the async ones, those of the root that runs
  std::size_t in_fiber =
      static_cast<std::size_t>(-1);  // the first async one that awaits the fiber on whose stack this runs
  std::uint64_t root = 0;            // that runs; 0: none
  bool is_there = false;
};

/// Has the thread list its calls, in a handler of SIGPROF. Waits for that, up to a tenth of a second. Of one that is in a
/// system call, that may end; so it is not called for such. While somebody probes. Any thread; one is asked at a time.
void list_calls_of(int thread, thread_calls& into) noexcept;

/// The same of one that is in a system call, without touching it: `seen` is its state before. What is not there in the end
/// says that it was in another call meanwhile.
void guess_calls_of(int thread, const thread_state& seen, const worker& its, thread_calls& into) noexcept;

/// Of a thread that is in a system call, or the calling one: who awaits what its root is in.
void list_async_calls(const worker& its, thread_calls& into) noexcept;

/// Takes SIGPROF over, until as many have ended probing as have begun. Any thread.
void begin_probing() noexcept;
void end_probing() noexcept;

}  // namespace weft::detail
