// SPDX-License-Identifier: BSL-1.0
// What an await costs: elided, not elided, in a loop; and what sync_wait and as_result add to it.
#include <cstddef>
#include <memory_resource>
#include <utility>
#include <weft/task.hpp>

#include "measure.hpp"

namespace {

using weft::sync_wait;
using weft::task;

// A chain of distinct functions, which clang places in one frame.
template <int N>
task<int> chain() {
  if constexpr (N == 0)
    co_return 0;
  else
    co_return N + co_await chain<N - 1>();
}

// One that the compiler can't see through, and so can't elide.
task<int> number(int n) { co_return n; }
task<int> (*volatile hidden)(int) = number;

task<long> loop(int rounds) {
  task<int> (*const opaque)(int) = hidden;
  long sum = 0;
  for (int i = 0; i < rounds; ++i) sum += co_await opaque(i);
  co_return sum;
}
task<long> loop_elided(int rounds) {
  long sum = 0;
  for (int i = 0; i < rounds; ++i) sum += co_await number(i);
  co_return sum;
}
task<long> loop_of_results(int rounds) {
  task<int> (*const opaque)(int) = hidden;
  long sum = 0;
  for (int i = 0; i < rounds; ++i) sum += *co_await weft::as_result(opaque(i));
  co_return sum;
}
// Recursion is never elided: a frame a level.
task<int> deep(int depth) {
  if (depth == 0) co_return 0;
  co_return 1 + co_await deep(depth - 1);
}

// Measures frames: one that holds an await, in bytes. The block is rounded up; the frame's own size is known to whoever
// gives it back.
class counting final : public std::pmr::memory_resource {
 public:
  void* block = nullptr;

 private:
  void* do_allocate(std::size_t size, std::size_t alignment) override {
    return block = std::pmr::new_delete_resource()->allocate(size, alignment);
  }
  void do_deallocate(void* block, std::size_t size, std::size_t alignment) override {
    std::pmr::new_delete_resource()->deallocate(block, size, alignment);
  }
  bool do_is_equal(const memory_resource& other) const noexcept override { return this == &other; }
};
task<int> leaf_frame(std::allocator_arg_t, counting*) { co_return 1; }
task<int> awaiting_frame(std::allocator_arg_t, counting*) { co_return co_await hidden(1); }
task<int> chain_frame(std::allocator_arg_t, counting*) { co_return co_await chain<10>(); }

template <class Make>
void frame_bytes(const char* name, Make make) {
  static std::size_t bytes = 0;
  static weft::detail::foreign_frame_header before;
  counting memory;
  {
    [[maybe_unused]] auto unawaited = make(std::allocator_arg, &memory);
    auto& header = *static_cast<weft::detail::foreign_frame_header*>(memory.block);
    before = header;
    header.release = [](void* resource, void* block, std::size_t frame_size) noexcept {
      bytes = frame_size;
      before.release(resource, block, frame_size);
    };
  }
  cost::figure(name, static_cast<double>(bytes));
}

}  // namespace

int main() {
  cost::instructions("level of a chain of 100", 100, [] { sync_wait(chain<100>()); });
  cost::instructions("level of a recursion of 1000", 1000, [] { sync_wait(deep(1000)); });
  cost::instructions("await in a loop", 1000, [] { sync_wait(loop(1000)); });
  cost::instructions("elidable await in a loop", 1000, [] { sync_wait(loop_elided(1000)); });
  cost::instructions("as_result in a loop", 1000, [] { sync_wait(loop_of_results(1000)); });
  cost::instructions("sync_wait", 1, [] { sync_wait(hidden(1)); });
  cost::instructions("start", 1, [] { weft::start(hidden(1), [](weft::result<int>) {}); });
  frame_bytes("bytes of a frame that awaits nothing", leaf_frame);
  frame_bytes("bytes of a frame that awaits", awaiting_frame);
  frame_bytes("bytes of a frame with ten elided levels", chain_frame);
}
