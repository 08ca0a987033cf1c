// Stackful code: coroutines by hand, the stacks that they run on, and calls on a stack of one's own.
#pragma once

#include <weft/detail/coroutine.hpp>
#include <weft/detail/stack_pool.hpp>
