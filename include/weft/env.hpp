// What work inherits from whoever started it. An env is immutable and lives in the frame that made it; what runs below
// refers to it. Nothing is passed by hand: `current_env()` reads that of the running task.
#pragma once

#include <weft/executor.hpp>
#include <weft/stop.hpp>

namespace weft {

class clock;

struct env {
  weft::executor* executor = nullptr;  ///< where the work resumes; null: where whatever it waited for completed
  stop_token stop{};                   ///< whose stop also stops the work
  weft::clock* clock = nullptr;        ///< what it sleeps by; null: the process's real one
};

/// The environment of the task that runs on this thread; outside of any, an empty one.
/// Lifetime  until that task ends or changes its environment. Cost: two loads behind a call.
const env& current_env() noexcept;

}  // namespace weft
