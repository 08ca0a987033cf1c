// Writes strings of JSON. Names of functions come from symbol tables and from files of others, so each string is escaped, and bytes
// that are no UTF-8 are replaced. Inline, since the libraries and the program `weft` that use it do not link each other's symbols.
#pragma once

#include <cstddef>
#include <cstdio>
#include <string>
#include <string_view>

namespace weft::detail {

/// How many bytes the UTF-8 character has that `text`, which is not empty, begins with; 0: it begins with none. As Unicode's table
/// 3-7 says.
inline std::size_t length_of_character(std::string_view text) noexcept {
  const auto at = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const auto goes_on = [&](std::size_t i, unsigned char least = 0x80, unsigned char most = 0xbf) {
    return i < text.size() && at(i) >= least && at(i) <= most;
  };
  const unsigned char first = at(0);
  if (first < 0x80) return 1;
  if (first >= 0xc2 && first <= 0xdf) return goes_on(1) ? 2 : 0;
  if (first >= 0xe0 && first <= 0xef) {
    const unsigned char least = first == 0xe0 ? 0xa0 : 0x80;
    const unsigned char most = first == 0xed ? 0x9f : 0xbf;
    return goes_on(1, least, most) && goes_on(2) ? 3 : 0;
  }
  if (first >= 0xf0 && first <= 0xf4) {
    const unsigned char least = first == 0xf0 ? 0x90 : 0x80;
    const unsigned char most = first == 0xf4 ? 0x8f : 0xbf;
    return goes_on(1, least, most) && goes_on(2) && goes_on(3) ? 4 : 0;
  }
  return 0;
}

/// Appends a string with its quotation marks. `<` is escaped, too: so no text ends an element where JSON lies in HTML.
inline void append_json(std::string& to, std::string_view text) {
  to += '"';
  while (!text.empty()) {
    const std::size_t length = length_of_character(text);
    const char first = text.front();
    if (length == 0) {
      to += "\xef\xbf\xbd";  // U+FFFD, the replacement character
    } else if (length > 1) {
      to += text.substr(0, length);
    } else if (first == '"' || first == '\\') {
      to += '\\';
      to += first;
    } else if (first == '\n') {
      to += "\\n";
    } else if (static_cast<unsigned char>(first) < 0x20 || first == 0x7f || first == '<') {
      char escaped[8];
      std::snprintf(escaped, sizeof escaped, "\\u%04x", static_cast<unsigned>(first));
      to += escaped;
    } else {
      to += first;
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
  to += '"';
}

/// The same as a string of its own.
inline std::string json_string(std::string_view text) {
  std::string all;
  append_json(all, text);
  return all;
}

}  // namespace weft::detail
