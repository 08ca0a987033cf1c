// The library itself, with the model's atomics: tasks, what they wait for, and plain threads that block until they have
// ended. For models of what is made of several protocols.
#pragma once

#include "base/lock.cpp"
#include "core/end_causes.cpp"
#include "core/letting_go.cpp"
#include "core/root.cpp"
#include "core/run_loop.cpp"
#include "core/stop.cpp"
#include "core/stopped.cpp"
#include "core/top_root.cpp"
#include "core/waiter.cpp"
#include "task/shared_task.cpp"
//
#include "base/error.cpp"
#include "task/future.cpp"
#include "task/task.cpp"
//
#include "model.hpp"

// What the library has besides: memory, and no stacks.
namespace weft {
void inline_executor::post(job& work) noexcept { work.run(work); }
namespace detail {
void* allocate_small_frame(std::size_t size, std::size_t) { return operator new(size); }
void* allocate_large_frame(std::size_t size) { return operator new(size); }
void frame_source::enter(const executor*, const worker&) noexcept {}
void free_large_frame(void* frame, std::size_t size) noexcept {
  listed::end_all_in(frame, size);
  operator delete(frame);
}
void free_small_frame(void* frame, std::size_t size, std::size_t) noexcept { free_large_frame(frame, size); }
#if !defined(MODEL_JOINS)
root& promote_borrowers(root& self) noexcept { return self; }  // no root is lent: nobody joins here
#endif
void top_root::list() noexcept {}  // no model walks
void top_root::unlist() noexcept {}
const void* stack_walk::next() noexcept { return nullptr; }       // nobody here waits for itself
letting_go*& lets_go_in(class fiber&) noexcept { std::abort(); }  // no model has fibers
std::exception_ptr exception_leaving(promise_base&) noexcept { return std::current_exception(); }
}  // namespace detail
}  // namespace weft

namespace model {

using weft::detail::plain;

/// A value of which every access is checked, also its end.
class watched {
 public:
  explicit watched(int value) : value_{value} {}
  watched(watched&& other) noexcept : value_{static_cast<int>(other.value_)} { other.value_ = 0; }
  watched(const watched& other) noexcept : value_{static_cast<int>(other.value_)} {}
  watched& operator=(watched&& other) noexcept {
    value_ = static_cast<int>(other.value_);
    return *this;
  }
  ~watched() { value_ = -1; }

  int get() const { return value_; }

 private:
  plain<int> value_;
};

/// sync_wait without exceptions, which a switch of the model's threads can't stand: false if it ended stopped.
template <class T>
bool run(weft::task<T>&& work, weft::stop_token stop = {}) {
  weft::detail::blocking_root root{stop};
  const std::coroutine_handle<weft::detail::task_promise<T>> frame =
      weft::detail::task_access::release(std::move(work));
  root.adopt(frame, frame.promise());
  if (!root.run()) return false;
  frame.destroy();
  return true;
}

/// What a scenario derives from, to be run: each execution begins with workers that nobody has used.
struct world {
  weft::detail::bed bed;
  void begin() {
    weft::detail::bed::all = &bed;
    for (auto& one : weft::detail::workers) one = {};
  }
};

}  // namespace model
