// An ELF file: its segments, notes, functions, build id. The file is not trusted: whatever does not lie in it, aligned, is
// taken for absent.
#pragma once

#include <elf.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace weft_tool {

// The machine that this program is for, as ELF files name it: those of others are refused.
#if defined(__x86_64__)
inline constexpr Elf64_Half this_machine = EM_X86_64;
#elif defined(__aarch64__)
inline constexpr Elf64_Half this_machine = EM_AARCH64;
#elif defined(__riscv)
inline constexpr Elf64_Half this_machine = EM_RISCV;
#endif

/// A file, mapped to read; without bytes if it can't be.
class mapped_file {
 public:
  explicit mapped_file(const std::string& path) noexcept;
  mapped_file(const mapped_file&) = delete;
  ~mapped_file();
  std::span<const std::byte> bytes() const noexcept { return bytes_; }

 private:
  std::span<const std::byte> bytes_;
};

/// A note, in whatever bytes it lies.
struct elf_note {
  std::string_view owner;
  std::uint32_t type;
  std::span<const std::byte> content;
  std::size_t at;  // of the content, in those bytes
};
void for_each_note(std::span<const std::byte> notes, std::uint64_t alignment,
                   const std::function<void(const elf_note&)>& call);

struct elf_function {
  std::uint64_t begin, size;
  std::string_view name;  // mangled
};

class elf_file {
 public:
  /// Looks at bytes, which stay where they are.
  explicit elf_file(std::span<const std::byte> bytes) noexcept;
  elf_file() = default;

  /// Whether it is a 64-bit ELF file of this kind of machine: registers and stacks of others lie differently.
  bool is_valid() const noexcept { return header_ != nullptr; }
  const Elf64_Ehdr& header() const noexcept { return *header_; }
  std::span<const std::byte> bytes() const noexcept { return bytes_; }

  std::span<const Elf64_Phdr> segments() const noexcept;
  std::span<const Elf64_Shdr> sections() const noexcept;
  /// What of a segment is in the file.
  std::span<const std::byte> content(const Elf64_Phdr& of) const noexcept;
  std::span<const std::byte> content(const Elf64_Shdr& of) const noexcept;
  std::span<const std::byte> section(std::string_view name) const noexcept;
  std::string build_id() const;  // in hexadecimal
  bool has_symbols() const noexcept;
  /// All functions, by their begin.
  std::vector<elf_function> functions() const;

 private:
  std::span<const std::byte> bytes_;
  const Elf64_Ehdr* header_ = nullptr;
};

std::string hexadecimal(std::span<const std::byte> bytes);

/// Where a distribution puts the symbols of a stripped file.
std::string debug_file_of(const std::string& build_id);

/// The C++ name of what the mangled name of a function, or of the parts that a compiler makes of a coroutine, stands for.
std::string readable(std::string_view mangled);

}  // namespace weft_tool
