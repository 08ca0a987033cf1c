// What weft's protocols between threads are made of. test/model/ compiles the same protocols with another file in the
// place of this one, whose types let a model checker run every interleaving.
#pragma once

#include <atomic>

namespace weft::detail {

template <class T>
using atomic = std::atomic<T>;

/// Not atomic, written by one thread and read by another: an edge lies between, and a model checks that it does.
template <class T>
using plain = T;

}  // namespace weft::detail
