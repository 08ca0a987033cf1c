// uts: the unbalanced tree search of Olivier et al. (2006), on a pool. Each node gets a random state from a hash (SHA-1) of
// its parent's, and a number of children that is drawn by it. One item is a node; a node's result is how many there are below
// it, itself counted. --size is the number of threads, and 100 more for the tree T3, 200 more for T3L.
//
// Each library has a vector of a node's counts, but where its way of forking needs none (citor's halves); weft.sink and
// libfork.stack show what going without one saves.
//
// T1 is geometric: four children in the mean, down to a depth of 10. T3 and T3L are binomial: of the 2000 children of the
// root each, and each below, has eight or five children, or mostly none; they are 1572 and 17,844 deep.
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>

namespace bench {

using digest = std::array<std::uint32_t, 5>;

/// SHA-1 of what fits into one block of 16 words with its end mark and length.
constexpr digest sha1(const std::array<std::uint32_t, 16>& block) noexcept {
  const auto turn = [](std::uint32_t x, int n) { return x << n | x >> (32 - n); };
  std::array<std::uint32_t, 80> w{};
  for (std::size_t i = 0; i != 16; ++i) w[i] = block[i];
  for (std::size_t i = 16; i != 80; ++i) w[i] = turn(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1);
  std::uint32_t a = 0x67452301, b = 0xefcdab89, c = 0x98badcfe, d = 0x10325476, e = 0xc3d2e1f0;
  const auto step = [&](std::uint32_t mixed, std::uint32_t constant, std::uint32_t word) {
    const std::uint32_t next = turn(a, 5) + mixed + e + constant + word;
    e = d, d = c, c = turn(b, 30), b = a, a = next;
  };
  for (std::size_t i = 0; i != 20; ++i) step((b & c) | (~b & d), 0x5a827999, w[i]);
  for (std::size_t i = 20; i != 40; ++i) step(b ^ c ^ d, 0x6ed9eba1, w[i]);
  for (std::size_t i = 40; i != 60; ++i) step((b & c) | (b & d) | (c & d), 0x8f1bbcdc, w[i]);
  for (std::size_t i = 60; i != 80; ++i) step(b ^ c ^ d, 0xca62c1d6, w[i]);
  return {0x67452301 + a, 0xefcdab89 + b, 0x98badcfe + c, 0x10325476 + d, 0xc3d2e1f0 + e};
}

/// That of a root: 16 zero bytes and the seed.
constexpr digest seeded(std::uint32_t seed) noexcept {
  return sha1({0, 0, 0, 0, seed, 0x80000000, 0, 0, 0, 0, 0, 0, 0, 0, 0, 20 * 8});
}
static_assert(sha1({0x61626380, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 24}) ==
              digest{0xa9993e36, 0x4706816a, 0xba3e2571, 0x7850c26c, 0x9cd0d89d});  // of "abc", as FIPS 180 has it

struct uts_tree {
  std::uint32_t seed;
  std::size_t nodes;
  double chance;      // that a node has children, below the root; 0: the tree is geometric
  unsigned children;  // if so
};

inline constexpr uts_tree uts_trees[]{
    {19, 4'130'071, 0, 0}, {42, 4'112'897, 0.124875, 8}, {7, 111'345'631, 0.200014, 5}};
inline constexpr double uts_width = 4;
inline constexpr int uts_depth = 10;
inline constexpr unsigned uts_binomial_width = 2000;

inline const uts_tree* uts = uts_trees;  // the one that is searched

/// By --size: sets the tree, and gives the number of threads.
inline std::size_t uts_threads(std::size_t size) noexcept {
  uts = &uts_trees[size / 100];
  return size % 100;
}

struct uts_node {
  digest state;
  int depth = 0;

  uts_node child(unsigned which) const noexcept {
    return {sha1({state[0], state[1], state[2], state[3], state[4], which, 0x80000000, 0, 0, 0, 0, 0, 0, 0, 0, 24 * 8}),
            depth + 1};
  }

  unsigned children() const noexcept {
    const double chance = (state[4] & 0x7fffffff) / 2147483648.0;
    if (uts->chance != 0) return depth == 0 ? uts_binomial_width : chance < uts->chance ? uts->children : 0;
    if (depth == uts_depth) return 0;
    const auto count = static_cast<unsigned>(std::log(1 - chance) / std::log(1 - 1 / (1 + uts_width)));
    return count < 100 ? count : 100;
  }
};

inline uts_node uts_root() noexcept { return {seeded(uts->seed), 0}; }

}  // namespace bench
