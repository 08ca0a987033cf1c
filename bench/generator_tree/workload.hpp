// generator_tree: the sum over a recursive generator that walks a perfect binary tree in order. One item is one value.
//
// A value at depth d passes through d generators. A library that resumes each of them for it pays d times; one with
// recursive generators goes straight to the leaf.
#pragma once

#include <cstdint>

namespace bench {

inline constexpr unsigned tree_depth = 16;
inline constexpr std::uint64_t tree_values = (std::uint64_t{1} << tree_depth) - 1;
inline constexpr std::uint64_t tree_result = tree_values * (tree_values + 1) / 2;  // the nodes are 1, 2, …, in order

/// Yields first, first + 1, … for the nodes of a tree of that depth. `nested` turns a generator into what the library
/// yields to delegate to it: the generator itself, or elements_of(generator).
template <template <class> class Generator, class Nested>
Generator<std::uint64_t> walk(std::uint64_t first, unsigned depth, Nested nested) {
  if (depth == 0) co_return;
  std::uint64_t middle = first + (std::uint64_t{1} << (depth - 1)) - 1;
  co_yield nested(walk<Generator>(first, depth - 1, nested));
  co_yield middle;
  co_yield nested(walk<Generator>(middle + 1, depth - 1, nested));
}

/// For a library whose generators don't nest: each level passes on what the level below yields.
template <template <class> class Generator>
Generator<std::uint64_t> walk_by_hand(std::uint64_t first, unsigned depth) {
  if (depth == 0) co_return;
  std::uint64_t middle = first + (std::uint64_t{1} << (depth - 1)) - 1;
  for (auto&& value : walk_by_hand<Generator>(first, depth - 1)) co_yield value;
  co_yield middle;
  for (auto&& value : walk_by_hand<Generator>(middle + 1, depth - 1)) co_yield value;
}

}  // namespace bench
