// The functions that the hooks interpose: those of the C library, or of whichever library comes next in the dynamic linker's
// symbol order.
//
// All are looked up while the program is loaded, in constructors that run before most others. Later, dlsym() could wait for
// another thread that is in dlopen(): the loader holds its lock while the library's constructors run, and one of these may wait for
// this thread. A call may come before any constructor has run: a static's constructor may call read(), and malloc may lock a mutex
// even earlier. It looks up its own function. So the pointer is constant-initialized; a local static is no choice, since its guard
// may take a lock. A sanitizer that is linked into the program has an interceptor under another name, which is called instead.
#pragma once

#include <dlfcn.h>

#include <atomic>

namespace weft::detail {

template <class Function>
class next_function;

template <class Result, class... Args>
class next_function<Result(Args...)> {
 public:
  using pointer = Result (*)(Args...);
  /// `otherwise`: what is called where there is no such function.
  constexpr next_function(const char* name, pointer of_sanitizer, pointer otherwise = nullptr) noexcept
      : name_{name}, of_sanitizer_{of_sanitizer}, otherwise_{otherwise} {}

  template <class... Given>
  Result operator()(Given... args) {
    return get()(args...);
  }
  pointer get() noexcept {
    pointer found = found_.load(std::memory_order_relaxed);  // it points to code, so it publishes no data
    if (found == nullptr) [[unlikely]] {
      found = of_sanitizer_ != nullptr ? of_sanitizer_ : reinterpret_cast<pointer>(::dlsym(RTLD_NEXT, name_));
      if (found == nullptr) found = otherwise_;
      found_.store(found, std::memory_order_relaxed);  // every thread finds the same function
    }
    return found;
  }

 private:
  const char* name_;
  pointer of_sanitizer_, otherwise_;
  std::atomic<pointer> found_{nullptr};
};
// glibc declares some of the functions noexcept.
template <class Result, class... Args>
class next_function<Result(Args...) noexcept> : public next_function<Result(Args...)> {
 public:
  using next_function<Result(Args...)>::next_function;
};

}  // namespace weft::detail

// Looks a next_function up while the program is loaded.
#define WEFT_HOOK_LOOK_UP(NEXT)                                                   \
  [[gnu::constructor(101)]] inline void look_up_##NEXT() noexcept { NEXT.get(); } \
  static_assert(true)

// Defines next_NAME, which calls the function that NAME of this library interposes. Used in namespace weft::detail.
// NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming): the sanitizers' names
#define WEFT_HOOK_NEXT(NAME)                                                                  \
  extern "C" [[gnu::weak]] decltype(::NAME) __interceptor_##NAME;                             \
  inline constinit next_function<decltype(::NAME)> next_##NAME{#NAME, &__interceptor_##NAME}; \
  WEFT_HOOK_LOOK_UP(next_##NAME)
// NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming)
