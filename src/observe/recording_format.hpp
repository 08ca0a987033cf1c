// The parts of a recording, as they lie in the file: see recording.hpp. The `weft` program writes such files, too, of processes
// that it reads from outside; it does not link the library for that, so this header calls nothing of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include <weft/recorded_event.hpp>

#include "trace/stamp_pair.hpp"

namespace weft::detail {

struct file_header {
  char magic[8] = {'w', 'e', 'f', 't', 'r', 'e', 'c', '\0'};
  std::uint32_t version = 1;
  std::uint32_t bytes = 128;
  std::uint32_t event_bytes = sizeof(recorded_event);
  std::uint32_t why = 0;
  std::uint64_t process = 0;
  std::uint64_t signal = 0;
  std::uint64_t address = 0;
  stamp_pair began, written;
  std::uint64_t unused[4] = {};
};
static_assert(sizeof(file_header) == 128);

enum class section : std::uint32_t { events = 1, text = 2, maps = 3, name = 4, thread = 5, end = 9 };

struct section_header {
  std::uint32_t kind = 0;
  std::uint32_t unused = 0;
  std::uint64_t size = 0;
};
static_assert(sizeof(section_header) == 16);

struct ring_part {
  std::uint32_t thread = 0;
  std::uint32_t ring = 0;
  std::uint64_t first = 0;
};
static_assert(sizeof(ring_part) == 16);

/// What of a process an event names by the address in `second`, and a file has the text of.
enum class named : std::uint8_t { nothing, text, function };
constexpr named named_by(event_kind kind) noexcept {
  switch (kind) {
    case event_kind::stop:
    case event_kind::deadline:
    case event_kind::io_error:
    case event_kind::trace_begins:
    case event_kind::wake: return named::text;
    case event_kind::turn_begins:
    case event_kind::stall:
    case event_kind::sample: return named::function;
    default: return named::nothing;
  }
}

inline constexpr std::size_t longest_text = 256;  // of texts that events name

inline std::string hexadecimal(std::uint64_t number) {
  std::string digits;
  do digits.insert(digits.begin(), "0123456789abcdef"[number & 15]);
  while ((number >>= 4) != 0);
  return "0x" + digits;
}

}  // namespace weft::detail
