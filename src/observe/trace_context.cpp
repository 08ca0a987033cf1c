#include <weft/trace_context.hpp>

#include <sys/random.h>

#include <algorithm>
#include <cerrno>
#include <span>
#include <system_error>
#include <weft/detail/base/config.hpp>
#include <weft/error.hpp>

namespace weft {
namespace {

constexpr std::size_t size_of_00 = 55;  // of a traceparent of version 00: 2 + 1 + 32 + 1 + 16 + 1 + 2
constexpr std::size_t trace_at = 3, span_at = 36, flags_at = 53;
constexpr std::uint8_t sampled = 1, random = 2;

// Of one digit, in lower case alone; else a number above 15.
constexpr unsigned value_of(char digit) noexcept {
  if (digit >= '0' && digit <= '9') return static_cast<unsigned>(digit - '0');
  if (digit >= 'a' && digit <= 'f') return static_cast<unsigned>(digit - 'a') + 10;
  return 16;
}

bool read(std::string_view digits, std::span<std::byte> into) noexcept {
  for (std::size_t i = 0; i != into.size(); ++i) {
    const unsigned high = value_of(digits[2 * i]), low = value_of(digits[2 * i + 1]);
    if (high > 15 || low > 15) return false;
    into[i] = static_cast<std::byte>(high << 4 | low);
  }
  return true;
}

void write(std::span<const std::byte> bytes, char* to) noexcept {
  constexpr char digits[] = "0123456789abcdef";
  for (const std::byte one : bytes) {
    *to++ = digits[std::to_integer<unsigned>(one) >> 4];
    *to++ = digits[std::to_integer<unsigned>(one) & 15];
  }
}

bool is_any(std::span<const std::byte> bytes) noexcept {
  return std::any_of(bytes.begin(), bytes.end(), [](std::byte one) { return one != std::byte{}; });
}

// Not all zeros, which stand for none.
void fill_with_random(std::span<std::byte> bytes) {
  do {
    ssize_t got;
    do got = ::getrandom(bytes.data(), bytes.size(), 0);  // so few bytes come whole
    while (got < 0 && errno == EINTR);
    if (got != static_cast<ssize_t>(bytes.size()))
      throw error{std::error_code{got < 0 ? errno : EIO, std::generic_category()}, "make a random number"};
  } while (!is_any(bytes));
}

}  // namespace

const local<trace_context> current_trace;

std::optional<trace_context> trace_context::parse(std::string_view text) noexcept {
  if (text.size() < size_of_00 || text[2] != '-' || text[span_at - 1] != '-' || text[flags_at - 1] != '-')
    return std::nullopt;
  std::byte version[1], flags[1];
  trace_context it;
  if (!read(text, version) || !read(text.substr(trace_at), it.trace_id) || !read(text.substr(span_at), it.span_id) ||
      !read(text.substr(flags_at), flags))
    return std::nullopt;
  if (version[0] == std::byte{0xff}) return std::nullopt;
  if (text.size() != size_of_00 && (version[0] == std::byte{0} || text[size_of_00] != '-')) return std::nullopt;
  if (!it.is_valid()) return std::nullopt;
  it.is_sampled = (flags[0] & std::byte{sampled}) != std::byte{};
  it.is_random = (flags[0] & std::byte{random}) != std::byte{};
  return it;
}

trace_context trace_context::make(bool is_sampled) {
  trace_context it{.is_sampled = is_sampled, .is_random = true};
  std::array<std::byte, 24> bytes;
  do {
    fill_with_random(bytes);
    std::copy_n(bytes.begin(), it.trace_id.size(), it.trace_id.begin());
    std::copy_n(bytes.begin() + it.trace_id.size(), it.span_id.size(), it.span_id.begin());
  } while (!it.is_valid());
  return it;
}

trace_context trace_context::child() const {
  if (!is_valid()) return make(is_sampled);
  trace_context it = *this;
  fill_with_random(it.span_id);
  return it;
}

bool trace_context::is_valid() const noexcept { return is_any(trace_id) && is_any(span_id); }

std::string trace_context::to_string() const {
  WEFT_EXPECTS(is_valid(), "a traceparent was asked for where there is no trace: make() begins one");
  std::string text = "00-";
  text.resize(size_of_00, '-');
  write(trace_id, &text[trace_at]);
  write(span_id, &text[span_at]);
  const std::byte flags[]{static_cast<std::byte>((is_sampled ? sampled : 0) | (is_random ? random : 0))};
  write(flags, &text[flags_at]);
  return text;
}

}  // namespace weft
