// What guards a stack. It is an option of a stack_pool.
#pragma once

namespace weft {

/// What stands below a stack and faults when it runs over.
enum class stack_guard {
  automatic,  ///< the best that works here
  madvise,    ///< MADV_GUARD_INSTALL: Linux 6.13 and later; any number of stacks
  mprotect,   ///< mprotect: any Linux; as many stacks as half of vm.max_map_count
  none,       ///< nothing; a canary tells afterwards
};

}  // namespace weft
