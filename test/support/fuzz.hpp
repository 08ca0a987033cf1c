// What the fuzzers are written with: a function that makes something of bytes, and throws where that is wrong.
//
//     WEFT_FUZZ(endpoint, 20'000, 40) { ... }  // of `chosen`; a test: so many inputs, of so many bytes at most
//
// As a test, inputs are random, one a seed; WEFT_SEED=<n> makes the one that has failed again. The same source is a program of
// libFuzzer's, which looks for inputs that go new ways: `./dev fuzz`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#if !defined(WEFT_LIBFUZZER)
#include <weft/test.hpp>

#include "support/weft_test.hpp"
#endif

namespace test {

/// What an input decides, a byte each time. Behind its end, 0.
class choices {
 public:
  explicit choices(std::span<const std::uint8_t> input) noexcept : left_{input} {}

  bool are_left() const noexcept { return !left_.empty(); }
  /// 0 to `last`, which is below 256.
  std::size_t up_to(std::size_t last) noexcept {
    if (left_.empty()) return 0;
    const std::uint8_t one = left_.front();
    left_ = left_.subspan(1);
    return one % (last + 1);
  }
  /// True in one of so many.
  bool one_in(std::size_t count) noexcept { return up_to(count - 1) == count - 1; }
  char of(std::string_view those) noexcept { return those[up_to(those.size() - 1)]; }

 private:
  std::span<const std::uint8_t> left_;
};

inline void must(bool holds, const std::string& what) {
  if (!holds) throw std::logic_error{what};
}

#if defined(WEFT_LIBFUZZER)
#define WEFT_FUZZ(name, count, longest)                                                     \
  static void fuzz_one(::test::choices chosen);                                             \
  extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {       \
    fuzz_one(::test::choices{{data, size}}); /* what it throws ends the program, with it */ \
    return 0;                                                                               \
  }                                                                                         \
  static void fuzz_one([[maybe_unused]] ::test::choices chosen)
#else
inline std::vector<std::uint8_t> random_input(std::uint64_t seed, std::size_t longest) {
  std::mt19937_64 random{seed};
  std::vector<std::uint8_t> input(1 + random() % longest);
  for (std::uint8_t& one : input) one = static_cast<std::uint8_t>(random());
  return input;
}
#define WEFT_FUZZ(name, count, longest)                                         \
  static void fuzz_one(::test::choices chosen);                                 \
  TEST(fuzz, name) {                                                            \
    ::weft::test::for_each_seed(::test::rounds(count), [](std::uint64_t seed) { \
      const auto input = ::test::random_input(seed, longest);                   \
      fuzz_one(::test::choices{input});                                         \
    });                                                                         \
  }                                                                             \
  static void fuzz_one([[maybe_unused]] ::test::choices chosen)
#endif

}  // namespace test
