#include <weft/on_scope_exit.hpp>

#include <cstdio>
#include <new>

#include "core/end_causes.hpp"

namespace weft::detail {
namespace {

[[noreturn]] void fail_throwing_cleanup(const std::exception_ptr& failure) noexcept {
  char sentence[256];
  const char* what = "no std::exception";
  try {
    std::rethrow_exception(failure);
  } catch (const std::exception& thrown) {
    what = thrown.what();
    std::snprintf(sentence, sizeof sentence, "a cleanup given to on_scope_exit threw, and nobody could catch it: %s",
                  what);
    fail(sentence);
  } catch (...) {  // it has no text
    fail("a cleanup given to on_scope_exit threw, and nobody could catch it");
  }
}

/// Stands between a task and its continuation, until the task has ended and the cleanup after it.
class exit_boundary final : boundary, frame_allocated {
 public:
  static void interpose(std::coroutine_handle<> watched, task<>&& cleanup) {
    promise_base& promise = promise_base::of(watched);
    auto* self = new exit_boundary{watched, promise};
    self->cleanup_ = task_access::release(std::move(cleanup));
    promise.continuation = self->handle();
  }

 private:
  exit_boundary(std::coroutine_handle<> watched, promise_base& promise) noexcept
      : boundary{task_returned, task_stopped, promise.continuation, promise.owner}, watched_{watched} {}

  static void task_returned(frame* self) { of(self).clean_up(); }
  static void task_stopped(boundary& self) noexcept {
    auto& mine = static_cast<exit_boundary&>(self);
    mine.watched_stopped_ = true;
    ::new (&mine.causes_) cause_list{this_worker().ends};
    mine.clean_up();
  }

  void clean_up() noexcept {
    was_shielded_ = take_over_root(*owner).shield(true);
    resume = cleanup_returned;
    stopped_here = cleanup_stopped;
    enter_root(*owner, cleanup_, handle());
    run_next(cleanup_);
  }

  static void cleanup_returned(frame* self) {
    exit_boundary& mine = of(self);
    const task_promise<void>& promise = mine.cleanup_.promise();
    if (promise.is_exception()) fail_throwing_cleanup(promise.exception());
    mine.cleanup_.destroy();
    mine.go_on();
  }
  // What it waited for ended stopped: that ends a cleanup, too.
  static void cleanup_stopped(boundary& self) noexcept { static_cast<exit_boundary&>(self).go_on(); }

  void go_on() noexcept {
    root& self = *owner;
    const std::coroutine_handle<> ended = watched_, outer = continuation;
    const bool stopped = watched_stopped_;
    self.shield(was_shielded_);
    if (stopped) note_end(self, causes_.of_root(self));
    delete this;
    if (stopped) return unwind_on(self, ended, outer);
    promise_base& promise = promise_base::of(ended);
    promise.continuation = outer;
    promise.owner =
        &self;  // which is another one since `ended` has ended, if that was a child of a join in its parent's root
    self.top = outer;
    run_next(outer);
  }

  static exit_boundary& of(frame* self) noexcept { return static_cast<exit_boundary&>(*static_cast<boundary*>(self)); }

  std::coroutine_handle<> watched_;
  std::coroutine_handle<task_promise<void>> cleanup_;
  union {
    cause_list causes_;  // where that was stopped
  };
  bool watched_stopped_ = false;
  bool was_shielded_ = false;
};

}  // namespace

void run_at_exit(std::coroutine_handle<> self, task<>&& cleanup) { exit_boundary::interpose(self, std::move(cleanup)); }

}  // namespace weft::detail
