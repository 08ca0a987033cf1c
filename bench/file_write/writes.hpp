// What the programs of this folder in C++ share: what they are told, where a write goes, and what it writes.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "../file_read/reads.hpp"

namespace bench {

struct write_options : read_options {
  bool syncs = false;

  write_options(int count, char** words) : read_options{count, words}, syncs{std::strcmp(words[5], "sync") == 0} {}
  int flags() const noexcept { return O_WRONLY | O_CLOEXEC; }
};

/// By that write; the rest is as it was.
inline void fill(void* piece, std::uint64_t number) noexcept { std::memcpy(piece, &number, sizeof number); }

/// Zeroes, so that nothing is written that was never set.
inline void* make_piece(const write_options& how) {
  void* const piece = std::aligned_alloc(4096, how.bytes);
  std::memset(piece, 0, how.bytes);
  return piece;
}

}  // namespace bench
