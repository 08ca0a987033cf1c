// weft takes frames that don't elide from its own frame memory, which malloc does not see. So the linker puts a counter
// before each of its two ways in (--wrap, see bench/CMakeLists.txt), and no frame is made without a call: weft itself has no
// counter, and pays for none. One that is too large to be cached is an allocation besides.
#include "workload.hpp"

#include "../harness/harness.hpp"

#include <weft/task.hpp>

namespace {
std::uint64_t frames = 0;
std::uint64_t frame_bytes = 0;
}  // namespace

extern "C" {
void* real_allocate_small(std::size_t size,
                          std::size_t bytes) __asm__("__real__ZN4weft6detail20allocate_small_frameEmm");
void* real_allocate_large(std::size_t size) __asm__("__real__ZN4weft6detail20allocate_large_frameEm");
void* counted_allocate_small(std::size_t size,
                             std::size_t bytes) __asm__("__wrap__ZN4weft6detail20allocate_small_frameEmm");
void* counted_allocate_large(std::size_t size) __asm__("__wrap__ZN4weft6detail20allocate_large_frameEm");

void* counted_allocate_small(std::size_t size, std::size_t bytes) {
  ++frames;
  frame_bytes += size;
  return real_allocate_small(size, bytes);
}
void* counted_allocate_large(std::size_t size) {
  ++frames;
  frame_bytes += size;
  return real_allocate_large(size);
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
