// A scoped enumeration where a byte of room is what there is. The enumerations themselves are `int`s in all headers: g++ 12
// passes a scoped one of 8 or 16 bits without extending it to 32, and clang compiles a function that relies on that, so a
// program by the one and a library by the other would disagree about the value.
#pragma once

#include <cstdint>

namespace weft::detail {

/// Stores an `Enum` whose values fit into a `Number`, and converts from it and to it. No bit-field: those of scoped
/// enumerations can't be initialized from a list by g++ 12.
template <class Enum, class Number = std::uint8_t>
class narrow {
 public:
  narrow() = default;
  constexpr narrow(Enum of) noexcept : number_{static_cast<Number>(of)} {}
  constexpr operator Enum() const noexcept { return static_cast<Enum>(number_); }

 private:
  Number number_;
};

}  // namespace weft::detail
