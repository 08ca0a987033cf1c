// The report when a stack has overflowed.
#pragma once

#include <string>
#include <weft/detail/stack/stack_header.hpp>

namespace weft::detail {

enum class naming {
  demangled,
  mangled,  // allocates nothing: the overflow may be inside malloc, which holds its lock
};

/// Ends the program: `one` has overflowed, and would have needed `bytes`, or more.
[[noreturn, gnu::cold]] void fail_overflow(const stack_header& one, std::size_t bytes, naming how) noexcept;

/// The function, or the type of callable, for people.
std::string name_of(const stack_user& who);

}  // namespace weft::detail
