// Async stacks: which function waits for which. The machine's stack below a resumed task shows a run loop; who awaits the
// task stands in its frame. A frame begins with the address of its function, and behind that knows the frame that awaits
// it; its root knows the innermost one. So nothing is recorded while tasks run, but for `root::top`, which each task
// stores when it starts.
//
// The last words. A program that ends by a broken contract, by std::terminate or by abort(), which is what a failed
// assert calls, prints once the async stack of the task that does it. An exception that leaves sync_wait has left its
// tasks behind, so where it was thrown is noted as it leaves the first of them.
//
// A fiber also has calls of plain functions, on its own stack. They are listed before the coroutine that awaits the fiber.
// The stack of a running fiber is unwound by the caller, on that very stack. A waiting fiber unwinds its own: the caller
// switches to it, and it waits again afterwards. So the unwinder is the one that exceptions use, and knows nothing of
// contexts.
//
// Rejected: a source location at every await, which would give the line, too: 5 to 14 % of the chain workload.
#pragma once

#include <coroutine>
#include <exception>
#include <weft/detail/core/root.hpp>

namespace weft::detail {

/// The plain functions that a fiber is in, innermost first: where each of them goes on.
struct call_list {
  const void* after = nullptr;  // calls before this return address are the caller's own; null: none are
  bool ask = true;              // fibers that wait, too; not in a signal handler
  const void* code[64]{};
  std::size_t count = 0;  // of a stack that is deeper, the innermost
};

/// Lists them, if `one` is a fiber's frame: of the one that runs on this stack, and of one that waits. Else none. Defined
/// where fibers are.
void list_calls(const frame& one, call_list& into) noexcept;
/// Whether `one` is a fiber's frame, or a copy of one. Defined where fibers are.
bool is_of_fiber(const frame& one) noexcept;

/// Goes over the functions in a root, innermost first, and on in the root that waits for it. Boundaries are passed over:
/// they stand for as_result and the like, which are no functions of the program.
///
/// The root must not run on meanwhile: walk on its own thread, or while its wait is held. The roots that wait for it don't
/// run either, with one exception: where the root is a child of a when_all that was stolen, a frame further out may be given
/// a root of its own at that time (promote_borrowers). So a walk asks each frame what comes behind it, and no frame for its
/// root.
class stack_walk {
 public:
  explicit stack_walk(const root& from) noexcept : root_{&from}, at_{from.innermost()} {}

  /// The same, with the plain functions of fibers, which are put into `calls`.
  stack_walk(const root& from, call_list& calls) noexcept : root_{&from}, at_{from.innermost()}, calls_{&calls} {}

  /// The same, from one of its frames outward.
  stack_walk(const root& from, std::coroutine_handle<> innermost) noexcept : root_{&from}, at_{innermost} {}

  /// The resume function of the next frame, or another one that the compiler made of it, or the call that a plain function
  /// of a fiber is in; null at the end.
  const void* next() noexcept;

  /// The address of the last one, if that was a frame.
  std::uintptr_t last_frame() const noexcept { return frame_; }

  /// Whether the last one was in `root`.
  bool is_in(const root& root) const noexcept { return root_ == &root; }

 private:
  const root* root_;  // null: that of a child's parent, which may change
  std::coroutine_handle<> at_;
  call_list* calls_ = nullptr;
  std::uintptr_t frame_ = 0;
  std::size_t shown_ = 0;  // of the calls of the fiber that is passed now
};

/// std::current_exception(), as it leaves the body of the coroutine with this promise. Notes where, if it was thrown there.
std::exception_ptr exception_leaving(promise_base& promise) noexcept;

/// Notes that `exception` was made in the coroutine with this promise, and leaves it.
void note_failure(promise_base& promise, const std::exception_ptr& exception) noexcept;

/// The resume function of the coroutine that threw it; null where that is not known: of the last 64 or so, most are.
const void* thrown_in(const std::exception_ptr& exception) noexcept;

/// Has std::terminate and abort() print the stack of the running task. Once a process, with the first worker.
void prepare_last_words() noexcept;

}  // namespace weft::detail
