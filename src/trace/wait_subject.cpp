#include <weft/wait_subject.hpp>

#include <ostream>
#include <string_view>

namespace weft {

bool operator==(const wait_subject& a, const wait_subject& b) noexcept {
  return std::string_view{a.what} == b.what && a.at == b.at && a.held_by == b.held_by;
}

std::ostream& operator<<(std::ostream& out, const wait_subject& what) {
  out << what.what;
  if (what.at != nullptr) out << ' ' << what.at;
  if (what.held_by != nullptr) out << " held by root " << what.held_by;
  return out;
}

}  // namespace weft
