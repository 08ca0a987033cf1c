// For libraries that keep the path to a node on their threads' stacks: room for 17,844 calls. Part of adapters.
#pragma once

#include <pthread.h>

#include <cstddef>
#include <exception>
#include <thread>

namespace bench {

inline constexpr std::size_t deep_stack = std::size_t{1} << 30;  // only what is used takes memory

/// Calls `f` on a thread with such a stack. Those that it starts have one, too.
template <class F>
void on_deep_stack(F f) {
  pthread_attr_t deep;
  pthread_attr_init(&deep);
  pthread_attr_setstacksize(&deep, deep_stack);
  pthread_setattr_default_np(&deep);
  pthread_attr_destroy(&deep);
  std::exception_ptr failure;
  std::thread{[&] {
    try {
      f();
    } catch (...) {
      failure = std::current_exception();
    }
  }}.join();
  if (failure) std::rethrow_exception(failure);
}

}  // namespace bench
