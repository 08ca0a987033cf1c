#include <weft/with.hpp>

#include <vector>

#include "core/causes.hpp"
#include "core/run_loop.hpp"
#include "core/worker.hpp"

namespace weft {
namespace detail {

changed_env::changed_env() noexcept : now{current_env()}, self_{own_root()}, outer_{self_.env} {}

void changed_env::apply() noexcept {
  self_.env = &now;
  self_.has_default_memory = false;
  enter(this_worker(), &self_);
}

// Where a stop unwinds the frame, too: it runs then as well.
changed_env::~changed_env() {
  self_.env = outer_;
  self_.has_default_memory = false;
  enter(this_worker(), &self_);
}

// An env that is given has no stop of its own but what it names, and counts frames anew where it names other memory.
scope_options options_for(const weft::env& wanted) noexcept {
  const weft::env& outside = current_env();
  scope_options options;
  options.executor = wanted.executor;
  options.deadline = wanted.deadline;
  if (wanted.stop != outside.stop) options.stop = wanted.stop;
  if (wanted.memory != nullptr && (wanted.memory != outside.memory || wanted.frames != outside.frames)) {
    options.memory = wanted.memory;
    options.memory_is_shared = wanted.memory_is_shared;
  }
  return options;
}

frame_source* frames_that_only_count() noexcept {
  frame_source* const frames = current_env().frames;
  return frames != nullptr && frames->resource() == nullptr ? frames : nullptr;
}

bool stop_point::await_ready() const noexcept {
  root* self = current_root();
  if (self == nullptr) return true;
  scope_core::look_at_clock(*self);
  return !self->stop_requested();
}

namespace {

// Whether the stop of `one` began with it: nothing further out was told.
bool is_origin(const root& one) noexcept {
  return one.sleeper::stop_requested() && (one.parent == nullptr || !one.parent->stop_requested());
}

}  // namespace

// A fork, a scope and a token note why they were stopped, and so does a group of what it has ended. What others have told is known
// by this, that nothing around it was told.
items<stop_cause> causes_here() {
  std::vector<stop_cause> chain;
  const stop_cause* last = nullptr;
  for (const root* one = current_root(); one != nullptr; one = one->parent) {
    const std::size_t before = chain.size();
    const bool began_here = is_origin(*one);  // looked at first: whoever tells notes why before
    if (one->is_fork)
      if (const stop_cause own = static_cast<const fork_record*>(one)->told_cause(); own.reason != nullptr)
        chain.push_back(own);
    const stop_cause* cause = one->env != nullptr ? one->env->stop.cause() : nullptr;
    if (cause != nullptr && cause != last) {
      chain.push_back(*cause);
      last = cause;
    }
    if (one->was_told_by(root::told_by_group))
      chain.push_back(cause_by_group(*one));
    else if (chain.size() == before && cause == nullptr && began_here)
      chain.push_back(one->was_told_by(root::told_by_executor) ? cause_by_executor() : stopped_by_nobody());
  }
  return {chain.data(), chain.data() + chain.size()};
}

}  // namespace detail
}  // namespace weft
