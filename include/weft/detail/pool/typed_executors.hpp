// The executors that with_executors of executor_set.hpp has bound: a list of pairs, of a type and an executor.
//
// A set is bound for all below, as a local is: in the frame of with_executors. A set further in hides those of its types
// further out, and no others.
//
// Rejected: a table of executors in each env, which every scope would copy.
#pragma once

#include <concepts>
#include <cstddef>
#include <type_traits>
#include <weft/env.hpp>
#include <weft/executor.hpp>

namespace weft::detail {

/// Its address stands for the type. Not const: a linker may fold constants that are equal.
template <class E>
inline char type_mark = 0;
template <class E>
const void* type_of_executor() noexcept {
  return &type_mark<std::remove_const_t<E>>;
}

struct typed_executor {
  const void* type;
  executor* one;
};

struct typed_executors {
  const typed_executor* first;
  std::size_t count;
  const typed_executors* outer;  // bound further out; null: none
};

/// Their key among an env's bindings.
extern const char executors_key;
/// The innermost ones; null: none are bound.
inline const typed_executors* bound_executors() noexcept {
  return static_cast<const typed_executors*>(find_binding(&executors_key));
}

/// The innermost one of that type; null: none is bound.
executor* find_typed_executor(const void* type) noexcept;
/// The same; ends the program with a sentence where none is bound.
executor& bound_executor(const void* type) noexcept;

template <class E>
executor& as_executor(E& one) noexcept {
  if constexpr (std::derived_from<E, executor>)
    return one;
  else
    return one.executor();
}

}  // namespace weft::detail
