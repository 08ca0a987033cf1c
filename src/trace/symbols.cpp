#include "trace/symbols.hpp"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>

namespace weft::detail {

// ---- files ------------------------------------------------------------------------------------------------------------

void mapped_file::open(const char* path) noexcept {
  close();
  const int file = ::open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return;
  struct stat about{};
  if (::fstat(file, &about) == 0 && about.st_size > 0) {
    const auto size = static_cast<std::size_t>(about.st_size);
    void* first = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file, 0);
    if (first != MAP_FAILED) bytes_ = {static_cast<const std::byte*>(first), size};
  }
  ::close(file);
}

void mapped_file::close() noexcept {
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
  bytes_ = {};
}

// ---- ELF --------------------------------------------------------------------------------------------------------------

namespace {

static_assert(sizeof(void*) == 8, "weft runs on 64-bit systems");

// The file is not trusted: a table that does not lie in it, aligned, is empty.
template <class T>
std::span<const T> table(std::span<const std::byte> file, std::uint64_t offset, std::uint64_t bytes) noexcept {
  if (offset > file.size() || bytes > file.size() - offset || offset % alignof(T) != 0) return {};
  return {reinterpret_cast<const T*>(file.data() + offset), static_cast<std::size_t>(bytes / sizeof(T))};
}

std::span<const Elf64_Shdr> sections_of(std::span<const std::byte> file) noexcept {
  const auto header = table<Elf64_Ehdr>(file, 0, sizeof(Elf64_Ehdr));
  if (header.empty()) return {};
  const Elf64_Ehdr& elf = header[0];
  if (std::memcmp(elf.e_ident, ELFMAG, SELFMAG) != 0 || elf.e_ident[EI_CLASS] != ELFCLASS64) return {};
  if (elf.e_shentsize != sizeof(Elf64_Shdr)) return {};
  return table<Elf64_Shdr>(file, elf.e_shoff, std::uint64_t{elf.e_shnum} * sizeof(Elf64_Shdr));
}

// Text that ends at a zero inside of `strings`.
std::string_view text_at(std::span<const char> strings, std::size_t at) noexcept {
  if (at >= strings.size()) return {};
  const auto rest = strings.subspan(at);
  const auto end = std::ranges::find(rest, '\0');
  return end == rest.end() ? std::string_view{}
                           : std::string_view{rest.data(), static_cast<std::size_t>(end - rest.begin())};
}

}  // namespace

bool has_full_symbols(std::span<const std::byte> file) noexcept {
  return std::ranges::any_of(sections_of(file), [](const Elf64_Shdr& one) { return one.sh_type == SHT_SYMTAB; });
}

std::string_view symbol_at(std::span<const std::byte> file, std::uintptr_t offset) noexcept {
  const auto sections = sections_of(file);
  for (const Elf64_Shdr& section : sections) {
    if (section.sh_type != SHT_SYMTAB && section.sh_type != SHT_DYNSYM) continue;
    if (section.sh_link >= sections.size()) continue;
    const Elf64_Shdr& names = sections[section.sh_link];
    if (names.sh_type == SHT_NOBITS) continue;  // it is in no file
    const auto strings = table<char>(file, names.sh_offset, names.sh_size);
    for (const Elf64_Sym& one : table<Elf64_Sym>(file, section.sh_offset, section.sh_size))
      if (ELF64_ST_TYPE(one.st_info) == STT_FUNC && one.st_shndx != SHN_UNDEF && offset >= one.st_value &&
          offset - one.st_value < one.st_size)
        return text_at(strings, one.st_name);
  }
  return {};
}

// ---- modules ----------------------------------------------------------------------------------------------------------

code_place symbolizer::find(const void* code) noexcept {
  const auto address = reinterpret_cast<std::uintptr_t>(code);
  if (!covers(address)) enter_module(code);
  if (!covers(address)) return {{}, address, {}};
  return {path_, address - base_, symbol_at(file_.bytes(), address - base_)};
}

// Looks for the module that has `code` in one of its segments.
void symbolizer::enter_module(const void* code) noexcept {
  struct search {
    std::uintptr_t address;
    symbolizer& found;
  } wanted{reinterpret_cast<std::uintptr_t>(code), *this};
  begin_ = end_ = 0;
  file_.close();

  ::dl_iterate_phdr(
      [](dl_phdr_info* module, std::size_t, void* argument) {
        auto& [address, found] = *static_cast<search*>(argument);
        const std::span headers{module->dlpi_phdr, module->dlpi_phnum};
        for (const auto& one : headers)
          if (const std::uintptr_t begin = module->dlpi_addr + one.p_vaddr;
              one.p_type == PT_LOAD && begin <= address && address - begin < one.p_memsz) {
            found.base_ = module->dlpi_addr;
            found.begin_ = begin;
            found.end_ = begin + one.p_memsz;
          }
        if (!found.covers(address)) return 0;
        std::snprintf(found.path_, sizeof found.path_, "%s", module->dlpi_name);
        found.build_id_ = {};
        for (const auto& one : headers) {
          if (one.p_type != PT_NOTE) continue;
          std::span<const std::byte> notes{reinterpret_cast<const std::byte*>(module->dlpi_addr + one.p_vaddr),
                                           one.p_memsz};
          for (auto note = table<Elf64_Nhdr>(notes, 0, sizeof(Elf64_Nhdr)); !note.empty();
               note = table<Elf64_Nhdr>(notes, 0, sizeof(Elf64_Nhdr))) {
            const auto padded = [](std::size_t size) { return (size + 3) / 4 * 4; };
            const std::size_t text = sizeof(Elf64_Nhdr) + padded(note[0].n_namesz);
            const auto content = table<std::byte>(notes, text, note[0].n_descsz);
            if (note[0].n_type == NT_GNU_BUILD_ID) found.build_id_ = content;
            notes = notes.subspan(std::min(notes.size(), text + padded(note[0].n_descsz)));
          }
        }
        return 1;
      },
      &wanted);
  if (end_ != 0) open_symbols();
}

void symbolizer::open_symbols() noexcept {
  constexpr const char* self = "/proc/self/exe";  // the program has no name in the loader's list
  if (path_[0] == '\0') {
    file_.open(self);
    const ssize_t length = ::readlink(self, path_, sizeof path_ - 1);
    path_[std::max<ssize_t>(length, 0)] = '\0';
  } else {
    file_.open(path_);
  }
  if (has_full_symbols(file_.bytes()) || build_id_.size() < 2) return;

  char debug_path[sizeof "/usr/lib/debug/.build-id/xx/.debug" + 2 * 64];
  int length = std::snprintf(debug_path, sizeof debug_path, "/usr/lib/debug/.build-id/%02x/", unsigned(build_id_[0]));
  for (const std::byte digit : build_id_.subspan(1, std::min<std::size_t>(build_id_.size(), 64) - 1))
    length += std::snprintf(debug_path + length, sizeof debug_path - length, "%02x", unsigned(digit));
  std::snprintf(debug_path + length, sizeof debug_path - length, ".debug");
  if (::access(debug_path, R_OK) == 0) file_.open(debug_path);
}

}  // namespace weft::detail
