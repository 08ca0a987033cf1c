// relacy without the macros by which it takes the place of the standard library: weft's code names that itself.
#pragma once

#include <atomic>
#include <cstdint>
#include <relacy/relacy.hpp>

#undef memory_order_relaxed
#undef memory_order_consume
#undef memory_order_acquire
#undef memory_order_release
#undef memory_order_acq_rel
#undef memory_order_seq_cst
#undef new
#undef delete
#undef malloc
#undef calloc
#undef realloc
#undef free
#undef errno
#undef assert
