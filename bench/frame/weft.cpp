// weft takes frames that don't elide from its own frame memory, which malloc does not see. So the linker puts a counter
// before weft's allocate_small_frame (--wrap, see bench/CMakeLists.txt): weft itself has none, and pays for none.
#include "workload.hpp"

#include "../harness/harness.hpp"

#include <weft/task.hpp>

namespace {
std::uint64_t frames = 0;
std::uint64_t frame_bytes = 0;
}  // namespace

extern "C" {
void* real_allocate_frame(std::size_t bytes,
                          std::size_t small) __asm__("__real__ZN4weft6detail20allocate_small_frameEmm");
void* counted_allocate_frame(std::size_t bytes,
                             std::size_t small) __asm__("__wrap__ZN4weft6detail20allocate_small_frameEmm");

void* counted_allocate_frame(std::size_t bytes, std::size_t small) {
  ++frames;
  frame_bytes += bytes;
  return real_allocate_frame(bytes, small);
}
}

void bench::run(bench::state& state) {
  std::uint64_t calls = 0;
  measure_frames<weft::task>(state, [&](auto task) {
    ++calls;
    return weft::sync_wait(std::move(task));
  });
  const auto awaits = static_cast<double>(calls * frame_awaits);
  state.report("frames from its cache", static_cast<double>(frames) / awaits);
  state.report("cached bytes", static_cast<double>(frame_bytes) / awaits);
}
