#include "test/memory.hpp"

#include <cstdlib>
#include <cstring>
#include <new>
#include <weft/detail/async_stack.hpp>
#include <weft/observe.hpp>

namespace weft::test::detail {

allocation_faults& faults_of_thread() noexcept {
  static constinit thread_local allocation_faults mine;
  return mine;
}

// Stands before the frame's memory. What made the frame is kept as addresses; names are looked up for a report.
struct alignas(weft::detail::foreign_frame_alignment) frame_tracker::block {
  static constexpr std::size_t kept = 8;

  block* older = nullptr;
  block* newer = nullptr;
  const void* made_in[kept]{};

  void* memory() noexcept { return this + 1; }
  static block& of(void* memory) noexcept { return static_cast<block*>(memory)[-1]; }
};

void* frame_tracker::do_allocate(std::size_t bytes, std::size_t alignment) {
  if (faults_of_thread().next()) throw std::bad_alloc{};
  const std::size_t whole = (sizeof(block) + bytes + alignof(block) - 1) & ~(alignof(block) - 1);
  void* room = alignment <= alignof(block) ? std::aligned_alloc(alignof(block), whole) : nullptr;
  if (room == nullptr) throw std::bad_alloc{};
  block& one = *::new (room) block;
  if (const auto* running = weft::detail::current_root()) {
    weft::detail::stack_walk walk{*running};
    for (const void*& code : one.made_in)
      if ((code = walk.next()) == nullptr) break;
  }
  const std::lock_guard guard{lock_};
  one.older = newest_;
  if (newest_ != nullptr) newest_->newer = &one;
  newest_ = &one;
  ++live_;
  return one.memory();
}

void frame_tracker::do_deallocate(void* memory, std::size_t bytes, std::size_t) {
  block& one = block::of(memory);
  {
    const std::lock_guard guard{lock_};
    (one.newer != nullptr ? one.newer->older : newest_) = one.older;
    if (one.older != nullptr) one.older->newer = one.newer;
    --live_;
  }
  std::memset(memory, 0xdd, bytes);  // what is used after its end is seen by that
  std::free(&one);
}

std::size_t frame_tracker::live() const noexcept {
  const std::lock_guard guard{lock_};
  return live_;
}

// A block begins with its header, behind which is the frame, whose first two words are its functions; one that has ended
// has the second alone.
std::string frame_tracker::describe() const {
  const std::lock_guard guard{lock_};
  std::string text;
  for (block* one = newest_; one != nullptr; one = one->older) {
    const void* const* frame =
        reinterpret_cast<const void* const*>(static_cast<weft::detail::foreign_frame_header*>(one->memory()) + 1);
    const auto name = [](const void* code) {
      const async_frame function{code};
      const std::string known = function.function();
      return known.empty() ? to_string(std::vector{function}) : known + "\n";
    };
    text += "  the frame of " + name(frame[0] != nullptr ? frame[0] : frame[1]);
    if (one->made_in[0] == nullptr) text += "    made outside of all tasks\n";
    bool innermost = true;
    for (const void* code : one->made_in) {
      if (code == nullptr) break;
      text += (innermost ? "    made in " : "    awaited by ") + name(code);
      innermost = false;
    }
  }
  return text;
}

}  // namespace weft::test::detail
