#include "elf_file.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "trace/names.hpp"

namespace weft_tool {

mapped_file::mapped_file(const std::string& path) noexcept {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) return;
  struct stat about{};
  if (::fstat(file, &about) == 0 && S_ISREG(about.st_mode) && about.st_size > 0) {
    const auto size = static_cast<std::size_t>(about.st_size);
    void* const first = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file, 0);
    if (first != MAP_FAILED) bytes_ = {static_cast<const std::byte*>(first), size};
  }
  ::close(file);
}

mapped_file::~mapped_file() {
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

namespace {

std::span<const std::byte> part(std::span<const std::byte> of, std::uint64_t offset, std::uint64_t bytes) noexcept {
  if (offset > of.size() || bytes > of.size() - offset) return {};
  return of.subspan(offset, bytes);
}

template <class T>
std::span<const T> table(std::span<const std::byte> of, std::uint64_t offset, std::uint64_t bytes) noexcept {
  const auto all = part(of, offset, bytes);
  if (reinterpret_cast<std::uintptr_t>(all.data()) % alignof(T) != 0) return {};
  return {reinterpret_cast<const T*>(all.data()), all.size() / sizeof(T)};
}

std::string_view text_at(std::span<const std::byte> strings, std::size_t at) noexcept {
  if (at >= strings.size()) return {};
  const auto* const begin = reinterpret_cast<const char*>(strings.data()) + at;
  const std::size_t length = ::strnlen(begin, strings.size() - at);
  return length == strings.size() - at ? std::string_view{} : std::string_view{begin, length};
}

}  // namespace

void for_each_note(std::span<const std::byte> notes, std::uint64_t alignment,
                   const std::function<void(const elf_note&)>& call) {
  const std::uint64_t unit = alignment == 8 ? 8 : 4;
  const auto padded = [unit](std::uint64_t size) { return (size + unit - 1) / unit * unit; };
  for (std::uint64_t at = 0;;) {
    Elf64_Nhdr note;
    const auto head = part(notes, at, sizeof note);
    if (head.empty()) return;
    std::memcpy(&note, head.data(), sizeof note);
    const auto name = part(notes, at + sizeof note, note.n_namesz);
    const std::uint64_t begin = at + padded(sizeof note + note.n_namesz);
    if (name.size() != note.n_namesz || begin > notes.size() || note.n_descsz > notes.size() - begin) return;
    call({{reinterpret_cast<const char*>(name.data()),
           ::strnlen(reinterpret_cast<const char*>(name.data()), name.size())},
          note.n_type,
          notes.subspan(begin, note.n_descsz),
          begin});
    at = begin + padded(note.n_descsz);
  }
}

elf_file::elf_file(std::span<const std::byte> bytes) noexcept : bytes_{bytes} {
  const auto header = table<Elf64_Ehdr>(bytes, 0, sizeof(Elf64_Ehdr));
  if (header.empty()) return;
  constexpr unsigned char order = std::endian::native == std::endian::little ? ELFDATA2LSB : ELFDATA2MSB;
  const Elf64_Ehdr& is = header[0];
  if (std::memcmp(is.e_ident, ELFMAG, SELFMAG) == 0 && is.e_ident[EI_CLASS] == ELFCLASS64 &&
      is.e_ident[EI_DATA] == order && is.e_machine == this_machine)
    header_ = &is;
}

std::span<const Elf64_Phdr> elf_file::segments() const noexcept {
  if (!is_valid() || header_->e_phentsize != sizeof(Elf64_Phdr)) return {};
  std::uint64_t count = header_->e_phnum;
  if (count == PN_XNUM)  // more than fit there: a core file of a process with many mappings
    if (const auto first = table<Elf64_Shdr>(bytes_, header_->e_shoff, sizeof(Elf64_Shdr)); !first.empty())
      count = first[0].sh_info;
  return table<Elf64_Phdr>(bytes_, header_->e_phoff, count * sizeof(Elf64_Phdr));
}

std::span<const Elf64_Shdr> elf_file::sections() const noexcept {
  if (!is_valid() || header_->e_shentsize != sizeof(Elf64_Shdr)) return {};
  return table<Elf64_Shdr>(bytes_, header_->e_shoff, std::uint64_t{header_->e_shnum} * sizeof(Elf64_Shdr));
}

std::span<const std::byte> elf_file::content(const Elf64_Phdr& of) const noexcept {
  if (of.p_offset > bytes_.size()) return {};
  return bytes_.subspan(of.p_offset, std::min<std::uint64_t>(of.p_filesz, bytes_.size() - of.p_offset));
}

std::span<const std::byte> elf_file::content(const Elf64_Shdr& of) const noexcept {
  return of.sh_type == SHT_NOBITS ? std::span<const std::byte>{} : part(bytes_, of.sh_offset, of.sh_size);
}

std::span<const std::byte> elf_file::section(std::string_view name) const noexcept {
  const auto all = sections();
  if (!is_valid() || header_->e_shstrndx >= all.size()) return {};
  const auto names = content(all[header_->e_shstrndx]);
  for (const Elf64_Shdr& one : all)
    if (text_at(names, one.sh_name) == name) return content(one);
  return {};
}

std::string elf_file::build_id() const {
  std::string found;
  for (const Elf64_Phdr& one : segments())
    if (one.p_type == PT_NOTE)
      for_each_note(content(one), one.p_align, [&](const elf_note& note) {
        if (note.owner == "GNU" && note.type == NT_GNU_BUILD_ID) found = hexadecimal(note.content);
      });
  return found;
}

bool elf_file::has_symbols() const noexcept {
  return std::ranges::any_of(sections(), [](const Elf64_Shdr& one) { return one.sh_type == SHT_SYMTAB; });
}

std::vector<elf_function> elf_file::functions() const {
  std::vector<elf_function> found;
  const auto all = sections();
  for (const Elf64_Shdr& section : all) {
    if ((section.sh_type != SHT_SYMTAB && section.sh_type != SHT_DYNSYM) || section.sh_link >= all.size()) continue;
    const auto names = content(all[section.sh_link]);
    for (const Elf64_Sym& one : table<Elf64_Sym>(bytes_, section.sh_offset, section.sh_size))
      if (ELF64_ST_TYPE(one.st_info) == STT_FUNC && one.st_shndx != SHN_UNDEF && one.st_size != 0)
        found.push_back({one.st_value, one.st_size, text_at(names, one.st_name)});
  }
  std::ranges::sort(found, [](const elf_function& a, const elf_function& b) { return a.begin < b.begin; });
  return found;
}

std::string hexadecimal(std::span<const std::byte> bytes) {
  constexpr char digits[] = "0123456789abcdef";
  std::string text;
  for (const std::byte one : bytes) {
    text += digits[std::to_integer<unsigned>(one) >> 4];
    text += digits[std::to_integer<unsigned>(one) & 15];
  }
  return text;
}

std::string debug_file_of(const std::string& build_id) {
  if (build_id.size() < 4) return {};
  return "/usr/lib/debug/.build-id/" + build_id.substr(0, 2) + "/" + build_id.substr(2) + ".debug";
}

std::string readable(std::string_view mangled) {
  const std::string_view function = weft::detail::function_of(mangled);
  const auto text = weft::detail::demangle(function);
  return text ? text.get() : std::string{function};
}

}  // namespace weft_tool
