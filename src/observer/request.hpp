// A request on the socket: a line. Either a word, for people,
//
//     deadlocks
//
// or an object of JSON, for programs, which may have an id that the answer repeats:
//
//     {"request": "deadlocks", "id": 7}
//
// Anything else is refused with a sentence, and the connection goes on.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace weft::detail {

enum class request_kind : std::uint8_t {
  snapshot,
  text,
  dot,
  deadlocks,
  stalls,
  metrics,
  status,
  access,
  subscribe,
  unsubscribe,
  help,
};

struct observer_request {
  request_kind kind = request_kind::help;
  std::string id;               ///< as JSON: a number or a string; empty: none
  const char* error = nullptr;  ///< null: it is a valid request
};

/// The name of each request, as it is written in a line.
std::string_view name_of(request_kind kind) noexcept;

/// Parses a line without its end. Allocates no more than the line's length.
observer_request parse_request(std::string_view line);

/// The longest line that is read.
inline constexpr std::size_t longest_request = 1024;

}  // namespace weft::detail
