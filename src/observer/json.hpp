// JSON, as far as it is written here: by appending to a string. Names of functions are whatever a symbol table says, so each
// string is escaped, and what is no UTF-8 is replaced.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace weft::detail {

/// Appends a string with its quotation marks. `<` is escaped, too: so no text ends an element where JSON lies in HTML.
void append_json(std::string& to, std::string_view text);

/// How many bytes the UTF-8 character has that `text`, which is not empty, begins with; 0: it begins with none.
std::size_t length_of_character(std::string_view text) noexcept;

}  // namespace weft::detail
