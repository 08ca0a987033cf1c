// The state of a fork, as its handle gives it. Part of fork.hpp.
#pragma once

namespace weft {

/// The state of a fork.
enum class fork_status {
  running,    ///< it has not ended
  succeeded,  ///< with a value
  failed,     ///< with an exception
  stopped,
};

}  // namespace weft
