// matmul: the product of two matrices of 512 x 512 floats by halving whichever of the three sides is the longest; halves
// of a row or a column are forked, those of a sum follow each other. Below 64 it is three loops. On a pool of --size
// threads. What comes out is compared with the plain product at each call: the numbers are small and whole, so sums are
// exact. One item is the whole of it.
#pragma once

#include <cstddef>
#include <vector>

namespace bench {

inline constexpr std::size_t matrix_side = 512;
inline constexpr std::size_t matrix_grain = 64;

using matrix = std::vector<float>;

struct product {
  const float* a;
  const float* b;
  float* c;
  std::size_t rows, inner, columns;

  bool is_small() const noexcept { return rows <= matrix_grain && inner <= matrix_grain && columns <= matrix_grain; }

  [[gnu::noinline]] void add() const noexcept {  // the same code for all
    for (std::size_t i = 0; i != rows; ++i)
      for (std::size_t k = 0; k != inner; ++k) {
        const float factor = a[i * matrix_side + k];
        for (std::size_t j = 0; j != columns; ++j) c[i * matrix_side + j] += factor * b[k * matrix_side + j];
      }
  }

  /// The two halves; `in_turn`: both add to the same numbers.
  struct halves_of;
  halves_of halves() const noexcept;
};

struct product::halves_of {
  product first, second;
  bool in_turn;
};

inline product::halves_of product::halves() const noexcept {
  product one = *this, other = *this;
  if (rows >= inner && rows >= columns) {
    one.rows = rows / 2, other.rows = rows - one.rows;
    other.a += one.rows * matrix_side, other.c += one.rows * matrix_side;
    return {one, other, false};
  }
  if (columns >= inner) {
    one.columns = columns / 2, other.columns = columns - one.columns;
    other.b += one.columns, other.c += one.columns;
    return {one, other, false};
  }
  one.inner = inner / 2, other.inner = inner - one.inner;
  other.a += one.inner, other.b += one.inner * matrix_side;
  return {one, other, true};
}

struct matrices {
  matrix a, b, c, expected;

  matrices() : a(matrix_side * matrix_side), b(a.size()), c(a.size()), expected(a.size()) {
    for (std::size_t i = 0; i != a.size(); ++i)
      a[i] = static_cast<float>(i * 7 % 13), b[i] = static_cast<float>(i * 5 % 11);
    whole(expected).add();
  }
  product whole(matrix& into) const noexcept {
    return {a.data(), b.data(), into.data(), matrix_side, matrix_side, matrix_side};
  }
  /// Of a matrix of zeros, for the next call.
  product next() {
    c.assign(c.size(), 0);
    return whole(c);
  }
  bool is_right() const noexcept { return c == expected; }
};

}  // namespace bench
