// Files of the flight recorder with any bytes in any place: each is read or refused, and what is made of it is JSON.
#include <cstring>
#include <sstream>
#include <string>
#include <vector>
#include <weft/error.hpp>
#include <weft/recording.hpp>

#include "observe/recording_format.hpp"
#include "support/fuzz.hpp"
#include "support/json.hpp"

namespace {

using namespace weft::detail;

void put(std::vector<std::byte>& file, const void* from, std::size_t size) {
  const auto* const bytes = static_cast<const std::byte*>(from);
  file.insert(file.end(), bytes, bytes + size);
}

// A number that is mostly small, and sometimes as large as can be.
std::uint64_t number(test::choices& chosen) {
  std::uint64_t one = chosen.up_to(255);
  if (chosen.one_in(8)) one = ~one;
  if (chosen.one_in(8)) one <<= 40;
  return one;
}

}  // namespace

WEFT_FUZZ(recording, 20'000, 200) {
  std::vector<std::byte> file;
  file_header head;
  head.began = {.stamp = number(chosen), .steady = number(chosen), .real = 0};
  head.written = {.stamp = number(chosen), .steady = number(chosen), .real = 0};
  if (chosen.one_in(50)) head.version = static_cast<std::uint32_t>(chosen.up_to(3));
  put(file, &head, sizeof head);
  while (chosen.are_left()) {
    section_header next{.kind = static_cast<std::uint32_t>(chosen.up_to(10)), .size = 0};
    std::vector<std::byte> inside;
    if (next.kind == 1) {
      const ring_part part{.thread = static_cast<std::uint32_t>(chosen.up_to(3)),
                           .ring = static_cast<std::uint32_t>(chosen.up_to(3))};
      put(inside, &part, sizeof part);
      for (std::size_t i = chosen.up_to(6); i != 0; --i) {
        const auto kind = static_cast<weft::event_kind>(chosen.one_in(2) ? chosen.up_to(12) : 32 + chosen.up_to(6));
        const weft::recorded_event one{.when = number(chosen),
                                       .kind = kind,
                                       .flags = static_cast<std::uint16_t>(chosen.up_to(15)),
                                       .number = static_cast<std::uint32_t>(number(chosen)),
                                       .first = number(chosen),
                                       .second = number(chosen)};
        put(inside, &one, sizeof one);
      }
    } else {
      const std::uint64_t address = number(chosen);
      put(inside, &address, chosen.one_in(20) ? 3 : sizeof address);
      for (std::size_t i = chosen.up_to(30); i != 0; --i) {
        const char letter = next.kind == 3 ? chosen.of("0123456789abcdef- \n/x") : static_cast<char>(chosen.up_to(255));
        put(inside, &letter, 1);
      }
    }
    next.size = chosen.one_in(30) ? number(chosen) : inside.size();
    put(file, &next, sizeof next);
    file.insert(file.end(), inside.begin(), inside.end());
  }
  if (chosen.one_in(4)) file.resize(file.size() / 2);
  try {
    const weft::recording all = weft::recording::parse(file);
    std::ostringstream out;
    all.write_chrome_trace(out);
    static_cast<void>(test::json::parse(out.str()));
    for (std::size_t i = 1; i < all.events().size(); ++i)
      test::must(all.events()[i - 1].thread < 4, "a thread that was not in the file");
  } catch (const weft::error&) {  // refused, as most are
  }
}
