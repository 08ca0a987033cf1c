// The parallel sort: all that was there is there, in order, however it is cut and whoever runs first; and without memory it ends.
// Nothing in it waits, so there is no place for a stop but before it.
#include <gtest/gtest.h>
#include <weft/test.hpp>
#include <weft/weft.hpp>

#define main program
#include "../../examples/recipes/parallel_sort.cpp"
#undef main

namespace {

std::vector<std::uint32_t> numbers_below(std::uint32_t limit, std::size_t size) {
  std::vector<std::uint32_t> data(size);
  std::uint32_t random = 1;
  for (std::uint32_t& one : data) one = (random = random * 1664525 + 1013904223) % limit;
  return data;
}

TEST(parallel_sort, sorts_what_it_is_given) {
  w::test::for_each_seed(20, [](std::uint64_t seed) {
    w::test::run({.seed = seed}, []() -> w::task<> {
      for (piece = 2; piece != 6; ++piece)
        for (const std::size_t size : {0U, 1U, 2U, 3U, 100U, 257U})
          for (const std::uint32_t limit : {1U, 3U, 1U << 31}) {
            auto data = numbers_below(limit, size), sorted = data, room = data;
            std::ranges::sort(sorted);
            co_await merge_sort(data, room);
            EXPECT_EQ(data, sorted) << "in pieces of " << piece;
          }
    });
  });
}

struct has_no_memory {
  std::vector<std::uint32_t> data = numbers_below(1000, 40), room = data;
  w::task<> run() {
    piece = 8;
    co_await merge_sort(data, room);
  }
  void check(const w::result<void>& how) const {
    w::test::require(!how || std::ranges::is_sorted(data), "it is in disorder");
  }
};
TEST(parallel_sort, ends_without_memory) { w::test::allocation_sweep<has_no_memory>("parallel sort"); }

}  // namespace
