// The memory of a process, alive or dead, by address; and what was wrong, as a sentence for people.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>

namespace weft_tool {

using address = std::uint64_t;

/// Without control characters: names and paths of a program that is looked at may be chosen to be commands to a terminal.
inline std::string printable(std::string_view text) {
  std::string all;
  for (std::size_t i = 0; i != text.size(); ++i) {
    const auto byte = [&](std::size_t at) { return at < text.size() ? static_cast<unsigned char>(text[at]) : 0U; };
    const bool is_of_two = byte(i) == 0xc2 && byte(i + 1) >= 0x80 && byte(i + 1) < 0xa0;  // U+0080 to U+009F
    all += byte(i) < 0x20 || byte(i) == 0x7f || is_of_two ? '?' : text[i];
    if (is_of_two) ++i;
  }
  return all;
}

/// What a user is told, and the program ends with.
struct problem : std::runtime_error {
  explicit problem(std::string_view sentence) : std::runtime_error{printable(sentence)} {}
};

class memory {
 public:
  virtual ~memory() = default;

  /// Copies what is there from `at` on, up to `bytes`. Gives how much that was.
  virtual std::size_t read(address at, void* into, std::size_t bytes) const noexcept = 0;

  template <class T>
    requires std::is_trivially_copyable_v<T>
  std::optional<T> get(address at) const noexcept {
    T value;
    if (read(at, &value, sizeof value) != sizeof value) return std::nullopt;
    return value;
  }
  /// The same; 0 where nothing is.
  template <class T = std::uint64_t>
  T word(address at) const noexcept {
    return get<T>(at).value_or(T{});
  }

  /// Text that ends with a zero.
  std::string text(address at, std::size_t most = 256) const {
    std::string all(most, '\0');
    all.resize(read(at, all.data(), most));
    all.resize(::strnlen(all.data(), all.size()));
    return all;
  }

 protected:
  memory() = default;
  memory(const memory&) = default;
  memory& operator=(const memory&) = default;
};

}  // namespace weft_tool
