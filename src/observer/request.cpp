#include "observer/request.hpp"

#include <array>
#include <cstddef>
#include <optional>
#include <utility>

#include "base/json.hpp"

namespace weft::detail {
namespace {

constexpr std::array<std::string_view, 11> names{"snapshot", "text",   "dot",       "deadlocks",   "stalls", "metrics",
                                                 "status",   "access", "subscribe", "unsubscribe", "help"};

std::optional<request_kind> kind_of(std::string_view name) noexcept {
  for (std::size_t i = 0; i != names.size(); ++i)
    if (names[i] == name) return static_cast<request_kind>(i);
  return std::nullopt;
}

// A parser of a flat JSON object whose values are strings and whole numbers: all that requests need.
class flat_object {
 public:
  explicit flat_object(std::string_view text) noexcept : left_{text} {}

  // Calls `take(name, value, is_string)` for each member, until that gives false. Gives whether it was a whole object.
  template <class Take>
  bool read(const Take& take) {
    if (!eat('{')) return false;
    if (eat('}')) return at_end();
    do {
      std::string name, value;
      if (!string(name) || !eat(':')) return false;
      skip();
      const bool is_string = !left_.empty() && left_.front() == '"';
      if (!(is_string ? string(value) : number(value)) || !take(name, value, is_string)) return false;
    } while (eat(','));
    return eat('}') && at_end();
  }

 private:
  void skip() noexcept {
    while (!left_.empty() && (left_.front() == ' ' || left_.front() == '\t' || left_.front() == '\r'))
      left_.remove_prefix(1);
  }
  bool eat(char one) noexcept {
    skip();
    if (left_.empty() || left_.front() != one) return false;
    left_.remove_prefix(1);
    return true;
  }
  bool at_end() noexcept {
    skip();
    return left_.empty();
  }
  // Does not support \u, which no name and no id needs.
  bool string(std::string& to) {
    if (!eat('"')) return false;
    while (!left_.empty()) {
      const char one = left_.front();
      left_.remove_prefix(1);
      if (one == '"') return true;
      if (static_cast<unsigned char>(one) < 0x20) return false;
      if (one != '\\') {
        to += one;
        continue;
      }
      if (left_.empty()) return false;
      constexpr std::string_view escapes = "\"\\/bfnrt", meant = "\"\\/\b\f\n\r\t";
      const std::size_t which = escapes.find(left_.front());
      if (which == std::string_view::npos) return false;
      to += meant[which];
      left_.remove_prefix(1);
    }
    return false;
  }
  // A whole number of at most 18 digits, kept as text, since it is only repeated.
  bool number(std::string& to) {
    if (!left_.empty() && left_.front() == '-') take_one(to);
    const std::size_t before = to.size();
    while (!left_.empty() && left_.front() >= '0' && left_.front() <= '9' && to.size() - before != 19) take_one(to);
    const std::size_t digits = to.size() - before;
    return digits != 0 && digits != 19 && (digits == 1 || to[before] != '0');
  }
  void take_one(std::string& to) {
    to += left_.front();
    left_.remove_prefix(1);
  }

  std::string_view left_;
};

observer_request wrong_request(const char* why) { return {.kind = request_kind::help, .id = {}, .error = why}; }

}  // namespace

std::string_view name_of(request_kind kind) noexcept { return names[static_cast<std::size_t>(kind)]; }

observer_request parse_request(std::string_view line) {
  while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) line.remove_suffix(1);
  while (!line.empty() && line.front() == ' ') line.remove_prefix(1);
  if (line.empty()) return wrong_request("an empty line is no request; \"help\" lists them");
  if (line.front() != '{') {
    if (const auto kind = kind_of(line)) return {.kind = *kind, .id = {}, .error = nullptr};
    return wrong_request("no such request; \"help\" lists them");
  }
  observer_request found;
  bool has_request = false;
  const char* why = "no JSON object of strings and whole numbers";
  const auto take = [&](const std::string& name, const std::string& value, bool is_string) {
    if (name == "request" && is_string && !has_request) {
      const auto kind = kind_of(value);
      if (!kind) return (why = "no such request; \"help\" lists them", false);
      found.kind = *kind;
      return has_request = true;
    }
    if (name != "id" || !found.id.empty())
      return (why = "a member that is neither one \"request\" nor one \"id\"", false);
    if (is_string)
      append_json(found.id, value);
    else
      found.id = value;
    return true;
  };
  if (!flat_object{line}.read(take)) return wrong_request(why);
  if (!has_request) return wrong_request("an object without a \"request\"");
  return found;
}

}  // namespace weft::detail
