// What the compiler is asked for, once, so that no other header asks.
//
// Nothing here depends on NDEBUG, on a sanitizer or on an option in a way that changes a layout: translation units
// built differently link against one library. What can't be mixed (another layout of weft's, or other strings of the
// standard library's) fails at link time, since every translation unit refers to a symbol, `weft_abi_N`, that only a
// matching library defines. No standard container crosses the library's border: see WEFT_CONTAINERS.
#pragma once

#include <cstddef>
#include <type_traits>
#include <weft/version.hpp>

#if !defined(__linux__)
#error "weft runs on Linux only"
#endif
#if !defined(__cpp_exceptions)
#error "weft needs exceptions: a task carries what its body threw to whoever awaits it (remove -fno-exceptions)"
#endif
#if !defined(__cpp_impl_coroutine) && !defined(__cpp_coroutines)
#error "weft needs C++20 coroutines (-std=c++20, g++ 12 or clang 19 and later)"
#endif

// WEFT_ELIDABLE marks a type whose coroutine may live in the frame of the coroutine that awaits it at once;
// WEFT_ELIDABLE_ARGUMENT a parameter that is awaited in place. clang 20 and later; elsewhere nothing is elided.
#if defined(__has_cpp_attribute) && __has_cpp_attribute(clang::coro_await_elidable)
#define WEFT_ELIDABLE [[clang::coro_await_elidable]]
#define WEFT_ELIDABLE_ARGUMENT [[clang::coro_await_elidable_argument]]
#define WEFT_HAS_ELISION 1
#else
#define WEFT_ELIDABLE
#define WEFT_ELIDABLE_ARGUMENT
#define WEFT_HAS_ELISION 0
#endif

// With WEFT_CHECK_LIFETIMES, clang warns where an argument, or the closure behind a lambda, dies before the coroutine.
// A choice of each translation unit, since clang then refuses a function that returns a task and is no coroutine, be it
// a lambda or inside std::function<task<>()>, unless it is marked WEFT_COROUTINE_WRAPPER. One that TAKES_OVER moves its
// arguments into the coroutine's frame. Attributes only: no layout changes.
#ifndef WEFT_CHECK_LIFETIMES
#define WEFT_CHECK_LIFETIMES 0
#endif
#if defined(__has_cpp_attribute) && __has_cpp_attribute(clang::coro_lifetimebound)
#define WEFT_COROUTINE_WRAPPER [[clang::coro_wrapper]]
#define WEFT_COROUTINE_TAKES_OVER [[clang::coro_wrapper, clang::coro_disable_lifetimebound]]
#define WEFT_COROUTINE_WRAPPER_LAMBDA __attribute__((coro_wrapper))  // behind the parameters, where C++20 has no [[…]]
#else
#define WEFT_COROUTINE_WRAPPER
#define WEFT_COROUTINE_TAKES_OVER
#define WEFT_COROUTINE_WRAPPER_LAMBDA
#endif
#if WEFT_CHECK_LIFETIMES && defined(__has_cpp_attribute) && __has_cpp_attribute(clang::coro_lifetimebound)
#define WEFT_COROUTINE_TYPE [[clang::coro_return_type, clang::coro_lifetimebound]]
#else
#define WEFT_COROUTINE_TYPE
#endif

// WEFT_TO_BE_AWAITED marks a type that does nothing until it is awaited. The compiler warns, and says `sentence`, where a call's
// value is dropped; and it warns of an unused variable where the value is kept in one that nothing mentions again, as in
// `auto held = m.lock();`. Without the second attribute a destructor would count as a use.
#define WEFT_TO_BE_AWAITED(sentence) [[nodiscard(sentence)]] [[gnu::warn_unused]]

// Where a symmetric transfer is not a guaranteed tail call (g++ below -O2 and under sanitizers, which no macro can
// tell), every N-th transfer returns to the run loop, so that the machine stack stays bounded at all levels.
#if defined(__clang__)
#define WEFT_BOUNDED_TRANSFER 0
#else
#define WEFT_BOUNDED_TRANSFER 1
#endif

// 1 in a translation unit that a sanitizer watches, else 0.
#if defined(__SANITIZE_ADDRESS__)
#define WEFT_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define WEFT_ASAN 1
#endif
#endif
#ifndef WEFT_ASAN
#define WEFT_ASAN 0
#endif
#if defined(__SANITIZE_THREAD__)
#define WEFT_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define WEFT_TSAN 1
#endif
#endif
#ifndef WEFT_TSAN
#define WEFT_TSAN 0
#endif

// Before what is on the path of each await, frame or call. A sanitizer multiplies each inlined copy by its checks: without
// them a test of a thousand lines compiles in a third of the time (37 s for 124), and nobody measures such a build.
#ifndef WEFT_ALWAYS_INLINE
#if WEFT_ASAN || WEFT_TSAN
#define WEFT_ALWAYS_INLINE
#else
#define WEFT_ALWAYS_INLINE [[gnu::always_inline]]
#endif
#endif

// What every co_await repeats. clang folds most of it away once it is inlined; with g++ a chain of distinct coroutines,
// which is bound by fetching its code, took 106 ns a level inlined and 134 called. It also stands before each function
// whose body depends on the compiler: called, a program of both compilers' objects would have one copy for all of them.
#define WEFT_PER_AWAIT WEFT_ALWAYS_INLINE

// g++ 12 copies, or moves, an awaiter that it is given by reference.
#if defined(__clang__)
#define WEFT_COPIES_AWAITERS 0
#else
#define WEFT_COPIES_AWAITERS 1
#endif

// g++ 12 destroys by-value captures and temporaries inside a co_await expression twice.
#if !defined(__clang__) && defined(__GNUC__) && __GNUC__ < 13
#define WEFT_DESTROYS_TEMPORARIES_TWICE 1
#else
#define WEFT_DESTROYS_TEMPORARIES_TWICE 0
#endif

// Stands in every function that takes a callable and returns something to await: `Callable` is the type of a forwarding
// reference, so that a named one is an lvalue reference and passes.
#define WEFT_EXPECTS_NO_DOOMED_TEMPORARY(Callable)                                \
  static_assert(                                                                  \
      !WEFT_DESTROYS_TEMPORARIES_TWICE || std::is_lvalue_reference_v<Callable> || \
          std::is_trivially_destructible_v<Callable>,                             \
      "this compiler destroys a lambda that is written inside a co_await expression twice: name it, pass the lvalue")

// Before a function that only the library's sources call, and seldom, from where every instruction counts: its callers save
// no registers for it. Not before one that a header calls: g++ does not know this, and objects of both go together.
#if defined(__clang__) && (defined(__x86_64__) || defined(__aarch64__))
#define WEFT_SELDOM __attribute__((preserve_most, noinline))
#else
#define WEFT_SELDOM __attribute__((noinline))
#endif

// 1: where a coroutine's frame is made and freed, the thread's newest block is taken and put back without a call. 0 calls the
// library for each, so that frames can be counted; both go together in one program. Elsewhere no way is known to read a
// thread-local that no compiler keeps over a suspension.
#ifndef WEFT_INLINES_FRAMES
#if defined(__x86_64__) && defined(__LP64__)
#define WEFT_INLINES_FRAMES 1
#else
#define WEFT_INLINES_FRAMES 0
#endif
#endif

// 1: a frame that ends is filled with 0xdd, so that what uses it afterwards fails soon. Where nothing is optimized and
// asserts are on, unless it is set; a choice of each translation unit.
#ifndef WEFT_FILLS_FRAMES
#if !defined(NDEBUG) && !defined(__OPTIMIZE__)
#define WEFT_FILLS_FRAMES 1
#else
#define WEFT_FILLS_FRAMES 0
#endif
#endif

// Inside of a promise's operator new and delete, which are inlined into the coroutine: what its frame must be aligned to. clang
// says so. g++ does not, but the size of a frame is a multiple of its alignment, so one with an object that is aligned to 64
// is among those whose size is a multiple of that. Not beyond 64: each of these pays for the few with such an object.
#if defined(__has_builtin)
#if __has_builtin(__builtin_coro_align)
#define WEFT_FRAME_ALIGNMENT(size) __builtin_coro_align()
#endif
#endif
#ifndef WEFT_FRAME_ALIGNMENT
#define WEFT_FRAME_ALIGNMENT(size) (std::size_t{(size) % 64 == 0 ? 64U : (size) % 32 == 0 ? 32U : 16U})
#endif

// Stands in a class that has a standard container as a member, or gives one to who awaits it, and before a function whose
// mangled name does not say that such a class, or a container, is its result: one that is no template, or returns `auto`.
// With libstdc++'s debug mode, a choice of each translation unit, containers have another layout, and so these are other
// classes and functions, of which the linker keeps both. What the library's own functions touch has no container.
#if defined(_GLIBCXX_DEBUG)
#define WEFT_CONTAINERS [[gnu::abi_tag("debug_containers")]]
#else
#define WEFT_CONTAINERS
#endif

// 0 leaves out what each task stores for async stacks, so that its cost can be measured; stacks then lack frames.
#ifndef WEFT_ASYNC_STACK
#define WEFT_ASYNC_STACK 1
#endif

#define WEFT_CONCAT_(a, b) a##b
#define WEFT_CONCAT(a, b) WEFT_CONCAT_(a, b)

/// The layout that this header describes, and the strings that it is described with. A test may set another one to see the
/// link fail.
#ifndef WEFT_ABI
#define WEFT_ABI 1
#endif
#if defined(_LIBCPP_VERSION)
#define WEFT_ABI_SYMBOL WEFT_CONCAT(WEFT_CONCAT(weft_abi_, WEFT_ABI), _with_libcxx)
#elif defined(_GLIBCXX_USE_CXX11_ABI) && !_GLIBCXX_USE_CXX11_ABI
#define WEFT_ABI_SYMBOL WEFT_CONCAT(WEFT_CONCAT(weft_abi_, WEFT_ABI), _with_old_strings)  // _GLIBCXX_USE_CXX11_ABI=0
#else
#define WEFT_ABI_SYMBOL WEFT_CONCAT(weft_abi_, WEFT_ABI)
#endif

extern "C" const char WEFT_ABI_SYMBOL;  // "undefined reference to `weft_abi_1'": headers and library don't match

namespace weft::detail {
namespace { [[gnu::used]] const char* const abi_of_this_translation_unit = &WEFT_ABI_SYMBOL; }

/// Ends the program with a sentence that says who broke what, after the async stack of the running task, if any.
[[noreturn, gnu::cold]] void fail(const char* sentence) noexcept;
/// The same in a handler of exceptions: what was thrown follows the sentence.
[[noreturn, gnu::cold]] void fail_thrown(const char* sentence) noexcept;

/// Calls what must not throw, where nobody could catch it.
template <class Function>
void call_no_throw(Function& function, [[maybe_unused]] const char* sentence) noexcept {
  if constexpr (std::is_nothrow_invocable_v<Function&>) {
    static_cast<void>(function());
  } else {
    try {
      static_cast<void>(function());
    } catch (...) {
      fail_thrown(sentence);
    }
  }
}
}  // namespace weft::detail

// A broken contract that costs nothing worth mentioning to see is checked in every build.
#define WEFT_EXPECTS(condition, sentence) \
  do {                                    \
    if (!(condition)) [[unlikely]]        \
      ::weft::detail::fail(sentence);     \
  } while (false)
