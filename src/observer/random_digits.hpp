// Random digits that nobody can guess.
#pragma once

#include <sys/random.h>

#include <cerrno>
#include <cstddef>
#include <string>
#include <system_error>
#include <weft/error.hpp>

namespace weft::detail {

/// `count` random bytes of the system's, 256 at most, as hexadecimal digits. Throws error.
inline std::string random_digits(std::size_t count) {
  std::string bytes(count, '\0');
  if (::getrandom(bytes.data(), count, 0) != static_cast<ssize_t>(count))
    throw error{std::error_code{errno, std::generic_category()}, "make", "a token"};
  std::string digits;
  for (const char one : bytes) {
    constexpr const char* digit = "0123456789abcdef";
    digits += digit[static_cast<unsigned char>(one) >> 4];
    digits += digit[static_cast<unsigned char>(one) & 15];
  }
  return digits;
}

}  // namespace weft::detail
