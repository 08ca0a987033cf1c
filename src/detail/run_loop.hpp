// The run loop and what a nested run leaves as it found it. For the sources that start roots.
#pragma once

#include <utility>
#include <weft/detail/root.hpp>

#include "detail/worker.hpp"

namespace weft::detail {

/// `self` runs from here on; null: nobody. Its frames come from where its env says.
inline void enter(worker& here, root* self) noexcept {
  here.current = self;
  here.memory = self != nullptr && self->env != nullptr ? self->env->frames : nullptr;
  if (here.memory != nullptr) [[unlikely]]
    here.memory->enter(self->env->executor, here);
}

/// The run loop: every resume of a coroutine in a root comes from here, so a coroutine that suspends returns to here,
/// and what it leaves in the worker is where to go on.
void run(worker& here, std::coroutine_handle<> next) noexcept;

/// What a nested run must leave as it found it.
class run_scope {
 public:
  explicit run_scope(worker& here) noexcept
      : here_{here},
        memory_{here.memory},
        current_{here.current},
        outer_{std::exchange(here.outer, here.current)},
        local_{std::exchange(here.local, nullptr)},
        starting_{std::exchange(here.starting, nullptr)},
        unwound_{std::exchange(here.unwound, nullptr)} {}
  run_scope(const run_scope&) = delete;
  ~run_scope() {
    here_.memory = memory_;
    here_.current = current_;
    here_.outer = outer_;
    here_.local = local_;
    here_.starting = starting_;
    here_.unwound = unwound_;
  }

 private:
  worker& here_;
  frame_source* memory_;
  root* current_;
  root* outer_;
  job* local_;
  const root* starting_;
  void* unwound_;
};

}  // namespace weft::detail
