// Names of functions, as people read them, from those of symbols. Inline, since the `weft` program reads them as well, and does not
// link the library.
#pragma once

#include <cxxabi.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdlib>
#include <iterator>
#include <memory>
#include <string_view>
#include <system_error>
#include <utility>

namespace weft::detail {

/// The mangled name of the function whose resume function is called `symbol`:
/// `_Z3foov` for clang's `_Z3foov.resume` and for g++'s `_Z3fooPZ3foovE7_Z3foov.Frame.actor`.
//
// g++ names the frame's type by the function's mangled name and `.Frame`. The mangled name of the actor contains that type
// name as the ABI does: the length in digits, then the name.
inline std::string_view function_of(std::string_view symbol) noexcept {
  constexpr std::string_view frame = ".Frame";
  if (const std::size_t at = symbol.rfind(frame); at != symbol.npos) {
    const std::size_t end = at + frame.size();
    for (std::size_t begin = symbol.rfind("_Z", at); begin != symbol.npos && begin != 0;
         begin = symbol.rfind("_Z", begin - 1)) {
      char length[20];
      const char* last = std::to_chars(length, std::end(length), end - begin).ptr;
      if (symbol.substr(0, begin).ends_with({length, static_cast<std::size_t>(last - length)}))
        return symbol.substr(begin, at - begin);
    }
  }
  return symbol.substr(0, symbol.find('.'));
}

struct free_text {
  void operator()(char* text) const noexcept { std::free(text); }
};
using readable_text = std::unique_ptr<char, free_text>;

/// `weft::pool::run<...>` for a template that has a constrained parameter: clang names it by what the C++ library can't read (`Tk`,
/// `TQ` of the Itanium C++ ABI). Null where it is no template, or its name does not begin with names.
inline readable_text outline_of(std::string_view mangled) noexcept {
  constexpr std::string_view unnamed = "_GLOBAL__N_1", end = "<...>";
  readable_text text{
      static_cast<char*>(std::malloc(2 * mangled.size() + 32))};  // a name takes two letters more than it had
  if (!text || !mangled.starts_with("_Z")) return nullptr;
  char* to = text.get();
  const auto put = [&](std::string_view what) { to += what.copy(to, what.size()); };
  mangled.remove_prefix(2);
  if (mangled.starts_with('N')) mangled.remove_prefix(std::min(mangled.find_first_not_of("rVKRO", 1), mangled.size()));
  if (mangled.starts_with("St")) {
    mangled.remove_prefix(2);
    put("std");
  }
  std::size_t length = 0;
  for (;;) {
    const auto [last, error] = std::from_chars(mangled.data(), mangled.data() + mangled.size(), length);
    if (error != std::errc{}) break;
    mangled.remove_prefix(static_cast<std::size_t>(last - mangled.data()));
    if (length == 0 || length > mangled.size()) return nullptr;
    const std::string_view name = mangled.substr(0, length);
    mangled.remove_prefix(length);
    if (to != text.get()) put("::");
    put(name == unnamed ? "(anonymous namespace)" : name);
  }
  if (to == text.get() || !mangled.starts_with('I')) return nullptr;
  put(end);
  *to = '\0';
  return text;
}

/// The C++ name behind a mangled one; null if it is none.
inline readable_text demangle(std::string_view mangled) noexcept {
  const readable_text name{
      static_cast<char*>(std::malloc(mangled.size() + 1))};  // the demangler wants a zero at the end
  if (!name) return nullptr;
  name.get()[mangled.copy(name.get(), mangled.size())] = '\0';
  int status = 0;
  readable_text text{abi::__cxa_demangle(name.get(), nullptr, nullptr, &status)};
  return text ? std::move(text) : outline_of(mangled);
}

}  // namespace weft::detail
