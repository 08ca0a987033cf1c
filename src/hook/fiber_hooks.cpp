// The guard hooks, by which a fiber's calls are hooked.
#include <weft/hook.hpp>

#include "core/worker.hpp"
#include "hook/waiting.hpp"

namespace weft {

namespace detail {
// A member of a static library is linked only if something refers to it. This table refers to one symbol of each source file,
// so that a program which uses hooks::hooks() gets all hooks.
extern const char hooks_sleep, hooks_locks, hooks_statics, hooks_streams, hooks_receiving, hooks_sockets, hooks_poll,
    hooks_names, hooks_files;
namespace {
[[gnu::used]] const char* const all_sources[] = {&hooks_sleep,   &hooks_locks,     &hooks_statics,
                                                 &hooks_streams, &hooks_receiving, &hooks_sockets,
                                                 &hooks_poll,    &hooks_names,     &hooks_files};
}  // namespace
}  // namespace detail

hooks::hooks(const hook_options& options) noexcept : state_{.kinds = options}, fiber_{detail::fiber::running()} {
  const executor* const home = current_env().executor;
  WEFT_EXPECTS(
      home != nullptr && !home->runs_in_parallel(),
      "a fiber whose calls are hooked must stay on one thread, since C code keeps the addresses of thread-locals: "
      "start it on one worker, rt.workers().worker(i) or that of a worker_group, not on a pool");
  fiber_.stay();
  state_.outer = fiber_.hooks();
  if (state_.outer != nullptr) state_.locks = state_.outer->locks;
  fiber_.set_hooks(&state_);
}

hooks::~hooks() {
  if (state_.outer != nullptr) state_.outer->locks = state_.locks;
  fiber_.set_hooks(nullptr);
  if (state_.outer != nullptr && state_.outer->watched_by == nullptr)
    state_.outer->watched_by = state_.watched_by;  // the service goes on counting this fiber
  else if (!state_.is_over)
    detail::end_idle_watches(state_);
  fiber_.set_hooks(state_.outer);
  fiber_.may_leave();
}

}  // namespace weft
