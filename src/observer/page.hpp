// The page: one HTML text with its styles and its script, which is part of the library. cmake/embed.cmake makes it of the files
// in page/ when the library is built.
#pragma once

#include <string>
#include <string_view>

namespace weft::detail {

extern const std::string_view observer_page;

/// The page, with the nonce by which the answer's content security policy allows its styles and its script.
inline std::string page_with(std::string_view nonce) {
  constexpr std::string_view mark = "@NONCE@";
  std::string page;
  std::string_view left = observer_page;
  for (std::size_t at = left.find(mark); at != std::string_view::npos; at = left.find(mark)) {
    page += left.substr(0, at);
    page += nonce;
    left.remove_prefix(at + mark.size());
  }
  return page += left;
}

}  // namespace weft::detail
