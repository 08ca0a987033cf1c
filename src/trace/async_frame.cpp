#include <weft/async_frame.hpp>

#include <ostream>
#include <sstream>

#include "trace/symbols.hpp"

namespace weft {

std::string async_frame::function() const {
  detail::symbolizer symbols;
  const std::string_view mangled = detail::function_of(symbols.find(address_).symbol);
  const auto readable = detail::demangle(mangled);
  return readable ? std::string{readable.get()} : std::string{mangled};
}

std::string async_frame::module() const { return std::string{detail::symbolizer{}.find(address_).module}; }

std::uintptr_t async_frame::offset() const { return detail::symbolizer{}.find(address_).offset; }

std::ostream& operator<<(std::ostream& out, std::span<const async_frame> stack) {
  detail::symbolizer symbols;
  for (std::size_t depth = 0; depth != stack.size(); ++depth) {
    out << '#' << depth << (depth < 10 ? "  " : " ");
    detail::describe(symbols.find(stack[depth].address()), true, [&](std::string_view text) { out << text; });
    out << '\n';
  }
  return out;
}

std::string to_string(std::span<const async_frame> stack) {
  std::ostringstream out;
  out << stack;
  return std::move(out).str();
}

}  // namespace weft
