// The functions that the hooks interpose: those of the C library, or of whichever library comes next in the dynamic linker's
// symbol order.
//
// Each is looked up on its first call, which may come before any constructor has run: a static's constructor may call read(),
// and malloc may lock a mutex even earlier. So the pointer is constant-initialized; a local static is no choice, since its
// guard may take a lock. A sanitizer that is linked into the program has an interceptor under another name, which is called
// instead.
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
  constexpr next_function(const char* name, pointer of_sanitizer) noexcept : name_{name}, of_sanitizer_{of_sanitizer} {}

  template <class... Given>
  Result operator()(Given... args) {
    return get()(args...);
  }
  pointer get() noexcept {
    pointer found = found_.load(std::memory_order_relaxed);  // it points to code, so it publishes no data
    if (found == nullptr) [[unlikely]] {
      found = of_sanitizer_ != nullptr ? of_sanitizer_ : reinterpret_cast<pointer>(::dlsym(RTLD_NEXT, name_));
      found_.store(found, std::memory_order_relaxed);  // every thread finds the same function
    }
    return found;
  }

 private:
  const char* name_;
  pointer of_sanitizer_;
  std::atomic<pointer> found_{nullptr};
};
// glibc declares some of the functions noexcept.
template <class Result, class... Args>
class next_function<Result(Args...) noexcept> : public next_function<Result(Args...)> {
 public:
  using next_function<Result(Args...)>::next_function;
};

}  // namespace weft::detail

// Defines next_NAME, which calls the function that NAME of this library interposes. Used in namespace weft::detail.
// NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming): the sanitizers' names
#define WEFT_HOOK_NEXT(NAME)                                      \
  extern "C" [[gnu::weak]] decltype(::NAME) __interceptor_##NAME; \
  inline constinit next_function<decltype(::NAME)> next_##NAME { #NAME, &__interceptor_##NAME }
// NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming)
