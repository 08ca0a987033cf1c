// endpoint::parse of random texts, most of them nearly right, beside a parser that is written from the documents.
#include <arpa/inet.h>
#include <net/if.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <vector>
#include <weft/net.hpp>

#include "support/fuzz.hpp"

namespace {

struct parsed {
  bool is_v6 = false;
  std::array<std::uint8_t, 16> bytes{};
  std::uint32_t scope = 0;
  std::uint16_t port = 0;
};

bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::optional<std::uint64_t> number(std::string_view text, std::uint64_t last) {
  if (text.empty()) return std::nullopt;
  std::uint64_t value = 0;
  for (const char c : text) {
    if (!is_digit(c)) return std::nullopt;
    value = value * 10 + static_cast<std::uint64_t>(c - '0');
    if (value > last) return std::nullopt;
  }
  return value;
}

std::vector<std::string_view> split(std::string_view text, char at) {
  std::vector<std::string_view> parts;
  for (;;) {
    const std::size_t end = text.find(at);
    parts.push_back(text.substr(0, end));
    if (end == text.npos) return parts;
    text.remove_prefix(end + 1);
  }
}

// Four numbers without needless zeros.
std::optional<std::array<std::uint8_t, 4>> dotted(std::string_view text) {
  const auto parts = split(text, '.');
  if (parts.size() != 4) return std::nullopt;
  std::array<std::uint8_t, 4> bytes{};
  for (std::size_t i = 0; i != 4; ++i) {
    const auto value = number(parts[i], 255);
    if (!value || parts[i].size() > 3 || (parts[i].size() > 1 && parts[i][0] == '0')) return std::nullopt;
    bytes[i] = static_cast<std::uint8_t>(*value);
  }
  return bytes;
}

// Groups of up to four hexadecimal digits, of which the last two may be a dotted address. False: it is none.
bool groups(std::string_view text, bool may_end_dotted, std::vector<std::uint8_t>& into) {
  if (text.empty()) return true;
  const auto parts = split(text, ':');
  for (std::size_t i = 0; i != parts.size(); ++i) {
    if (i + 1 == parts.size() && may_end_dotted)
      if (const auto end = dotted(parts[i])) {
        into.insert(into.end(), end->begin(), end->end());
        continue;
      }
    if (parts[i].empty() || parts[i].size() > 4) return false;
    unsigned value = 0;
    for (const char c : parts[i]) {
      if (!std::isxdigit(static_cast<unsigned char>(c))) return false;
      value = value * 16 + static_cast<unsigned>(is_digit(c) ? c - '0' : (c | 0x20) - 'a' + 10);
    }
    into.push_back(static_cast<std::uint8_t>(value >> 8));
    into.push_back(static_cast<std::uint8_t>(value));
  }
  return true;
}

// RFC 4291, 2.2: eight groups, or fewer with one "::" for those that are zero.
std::optional<std::array<std::uint8_t, 16>> v6(std::string_view text) {
  std::array<std::uint8_t, 16> bytes{};
  std::vector<std::uint8_t> front, back;
  const std::size_t gap = text.find("::");
  if (gap == text.npos) {
    if (text.empty() || !groups(text, true, front) || front.size() != 16) return std::nullopt;
  } else {
    const std::string_view behind = text.substr(gap + 2);
    if (behind.find("::") != behind.npos || !groups(text.substr(0, gap), false, front) || !groups(behind, true, back))
      return std::nullopt;
    if (front.size() + back.size() > 14) return std::nullopt;
  }
  std::copy(front.begin(), front.end(), bytes.begin());
  std::copy(back.begin(), back.end(), bytes.end() - static_cast<std::ptrdiff_t>(back.size()));
  return bytes;
}

std::optional<parsed> parse(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  if (colon == text.npos) return std::nullopt;
  parsed it;
  const auto port = number(text.substr(colon + 1), 65535);
  if (!port) return std::nullopt;
  it.port = static_cast<std::uint16_t>(*port);
  std::string_view address = text.substr(0, colon);
  if (!address.starts_with('[')) {
    const auto four = dotted(address);
    if (!four) return std::nullopt;
    std::copy(four->begin(), four->end(), it.bytes.begin());
    return it;
  }
  if (!address.ends_with(']')) return std::nullopt;
  address = address.substr(1, address.size() - 2);
  it.is_v6 = true;
  if (const std::size_t percent = address.find('%'); percent != address.npos) {
    const std::string_view name = address.substr(percent + 1);
    if (const auto value = number(name, 0xffffffff))
      it.scope = static_cast<std::uint32_t>(*value);
    else if (name.find('\0') == name.npos)
      it.scope = ::if_nametoindex(std::string{name}.c_str());  // a name with a colon, too: an alias of an interface
    if (it.scope == 0 && !number(name, 0)) return std::nullopt;
    address = address.substr(0, percent);
  }
  const auto six = v6(address);
  if (!six) return std::nullopt;
  it.bytes = *six;
  return it;
}

// Parts that are right, and what may be wrong with them.
std::string text_of(test::choices& chosen) {
  using namespace std::string_view_literals;
  static constexpr std::string_view parts[] = {
      "127.0.0.1"sv, "::1"sv,   "["sv,   "]"sv,    ":"sv,       "%"sv,     "lo"sv,  "1"sv,     "0"sv,
      "65535"sv,     "65536"sv, "::"sv,  "fe80"sv, "1.2.3.4"sv, "."sv,     "256"sv, "255"sv,   "00"sv,
      "+1"sv,        "-1"sv,    " "sv,   "\0"sv,   "x"sv,       "aBcD"sv,  "]:"sv,  "12345"sv, "lo\0"sv,
      "eth77"sv,     "%1]"sv,   ":80"sv, "[::"sv,  "0:0:"sv,    "1:2:3:"sv};
  std::string text;
  if (chosen.one_in(2)) {
    text = '[';
    for (std::size_t i = 0, count = chosen.up_to(9); i != count; ++i) {
      text.append(chosen.up_to(4), chosen.of("0123456789abcdefABCDEF"));
      if (!chosen.one_in(6)) text += ':';
      if (chosen.one_in(6)) text += ':';
    }
    if (chosen.one_in(4)) text += "10.0.0.9";
    static constexpr std::string_view scopes[] = {"%lo"sv, "%3"sv, "%lo\0"sv, "%4294967296"sv};
    if (chosen.one_in(4)) text += scopes[chosen.up_to(std::size(scopes) - 1)];
    text += "]:80";
  } else if (chosen.one_in(2)) {
    for (int i = 0; i != 4; ++i) (text += std::to_string(chosen.up_to(255))) += i == 3 ? ':' : '.';
    text += std::to_string(chosen.up_to(255) * 258);
  }
  for (std::size_t i = 0, count = chosen.up_to(text.empty() ? 8 : 1); i != count; ++i) {
    const std::string_view part = parts[chosen.up_to(std::size(parts) - 1)];
    text.insert(text.empty() ? 0 : chosen.up_to(text.size() < 255 ? text.size() : 255), part);
  }
  if (!text.empty() && chosen.one_in(4)) text.erase(chosen.up_to(text.size() - 1), 1);
  return text;
}

WEFT_FUZZ(endpoint, 40'000, 40) {
  using weft::net::endpoint;
  const std::string text = text_of(chosen);
  const std::optional<parsed> expected = parse(text);
  std::optional<endpoint> got;
  try {
    got = endpoint::parse(text);
  } catch (const weft::error&) {  // and nothing else
  }
  test::must(got.has_value() == expected.has_value(), (got ? "takes " : "refuses ") + text);
  if (!got) return;

  test::must(got->port() == expected->port && got->is_v6() == expected->is_v6, "takes for something else: " + text);
  std::array<std::uint8_t, 16> bytes{};
  const std::string address = got->address();
  const std::string numbers = address.substr(0, address.find('%'));
  test::must(::inet_pton(got->is_v6() ? AF_INET6 : AF_INET, numbers.c_str(), bytes.data()) == 1, "writes " + numbers);
  test::must(bytes == expected->bytes, "takes " + text + " for " + address);
  const std::string scope = expected->scope != 0 ? '%' + std::to_string(expected->scope) : "";
  test::must(address == numbers + scope, "has another scope: " + text);
  test::must(endpoint::parse(got->to_string()) == *got, "does not take what it writes: " + got->to_string());
  test::must(endpoint(address, got->port()) == *got, "does not take its own address: " + address);
}

}  // namespace
