#include "test/memory.hpp"

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>
#include <weft/detail/core/async_stack.hpp>
#include <weft/observe.hpp>

namespace weft::test::detail {

allocation_faults& faults_of_thread() noexcept {
  static constinit thread_local allocation_faults mine;
  return mine;
}

// Lies before the frame's memory. Has the async stack that allocated the frame, as addresses; names are looked up for a report.
struct alignas(weft::detail::foreign_frame_alignment) frame_tracker::block {
  static constexpr std::size_t kept = 8;

  block* older = nullptr;
  block* newer = nullptr;
  const void* made_in[kept]{};
  std::size_t bytes = 0;

  void* memory() noexcept { return this + 1; }
  // The coroutine frame. Its first two words are its resume and destroy functions; a frame that has ended has the second alone.
  // If the frame lies further inside the block, the block's first word points to it.
  const void* const* frame() noexcept {
    const auto* const first =
        reinterpret_cast<const void* const*>(static_cast<weft::detail::foreign_frame_header*>(memory()) + 1);
    const auto leads_to = reinterpret_cast<std::uintptr_t>(*first), from = reinterpret_cast<std::uintptr_t>(first);
    return leads_to > from && leads_to < from + bytes ? static_cast<const void* const*>(*first) : first;
  }
  static block& of(void* memory) noexcept { return static_cast<block*>(memory)[-1]; }
};

void* frame_tracker::do_allocate(std::size_t bytes, std::size_t alignment) {
  if (faults_of_thread().next()) throw std::bad_alloc{};
  const std::size_t whole = (sizeof(block) + bytes + alignof(block) - 1) & ~(alignof(block) - 1);
  void* room = alignment <= alignof(block) ? std::aligned_alloc(alignof(block), whole) : nullptr;
  if (room == nullptr) throw std::bad_alloc{};
  block& one = *::new (room) block;
  one.bytes = bytes;
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
  std::memset(memory, 0xdd, bytes);  // makes a use after free visible
  std::free(&one);
}

std::size_t frame_tracker::live() const noexcept {
  const std::lock_guard guard{lock_};
  return live_;
}

// A frame whose allocation was elided lies in the frame of its caller.
bool frame_tracker::find_maker(const void* frame, const void*& maker) const noexcept {
  const std::lock_guard guard{lock_};
  const auto at = reinterpret_cast<std::uintptr_t>(frame);
  for (block* one = newest_; one != nullptr; one = one->older) {
    const auto from = reinterpret_cast<std::uintptr_t>(one->memory());
    if (at < from || at >= from + one->bytes) continue;
    maker = one->frame() == frame ? one->made_in[0] : one->frame()[0];
    return true;
  }
  return false;
}

std::string frame_tracker::describe() const {
  const std::lock_guard guard{lock_};
  std::string text;
  for (block* one = newest_; one != nullptr; one = one->older) {
    const void* const* const frame = one->frame();
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
