// How far a fork is: what its handle says. Part of fork.hpp.
#pragma once

namespace weft {

/// How far a fork is.
enum class fork_status : unsigned char {
  running,    ///< it has not ended
  succeeded,  ///< with a value
  failed,     ///< with an exception
  stopped,
};

}  // namespace weft
