// Damaged ELF files of modules, and files with their symbols, for both that read such: the library, which names functions, and
// the program weft. Each finds less, or nothing, but reads no byte outside of the file, and the two agree on what they find.
#include <elf.h>
#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "elf_file.hpp"
#include "support/fuzz.hpp"
#include "trace/symbols.hpp"

namespace {

using weft_tool::elf_file;
using weft_tool::elf_function;
using weft_tool::this_machine;

// ---- a file ---------------------------------------------------------------------------------------------------------------

void put(std::vector<std::byte>& into, const void* what, std::size_t bytes) {
  const auto* const from = static_cast<const std::byte*>(what);
  into.insert(into.end(), from, from + bytes);
}
void align(std::vector<std::byte>& file) { file.resize((file.size() + 7) / 8 * 8); }

constexpr std::uint64_t first_function = 0x1000, bytes_of_function = 0x20, functions = 12;

// One with a build id, and a full table of symbols behind the loader's, which has every third one. As a file with symbols has
// it, a section without bytes stands between them.
std::vector<std::byte> make_file() {
  std::vector<std::byte> file(sizeof(Elf64_Ehdr) + sizeof(Elf64_Phdr));
  std::vector<Elf64_Shdr> sections(1);
  std::string names(1, '\0');
  const auto add = [&](std::string_view name, Elf64_Word type, std::span<const std::byte> content, Elf64_Word link) {
    Elf64_Shdr one{};
    one.sh_name = static_cast<Elf64_Word>(names.size());
    one.sh_type = type;
    one.sh_link = link;
    one.sh_offset = file.size();
    one.sh_size = content.size();
    names.append(name) += '\0';
    put(file, content.data(), content.size());
    align(file);
    sections.push_back(one);
  };
  const auto add_symbols = [&](std::string_view table, std::string_view texts, Elf64_Word type, std::uint64_t step) {
    std::vector<std::byte> symbols(sizeof(Elf64_Sym));
    std::string strings(1, '\0');
    for (std::uint64_t i = 0; i < functions; i += step) {
      Elf64_Sym one{};
      one.st_name = static_cast<Elf64_Word>(strings.size());
      one.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC);
      one.st_shndx = 1;
      one.st_value = first_function + i * bytes_of_function;
      one.st_size = bytes_of_function;
      put(symbols, &one, sizeof one);
      strings.append("_ZN4weft3fn").append(std::to_string(i)).append("Ev") += '\0';
    }
    add(table, type, symbols, static_cast<Elf64_Word>(sections.size() + 1));
    add(texts, SHT_STRTAB, std::as_bytes(std::span{strings}), 0);
  };
  std::vector<std::byte> note;
  const Elf64_Nhdr head{4, 20, NT_GNU_BUILD_ID};
  put(note, &head, sizeof head);
  put(note, "GNU", 4);
  for (int i = 0; i != 20; ++i) note.push_back(static_cast<std::byte>(i));
  Elf64_Phdr notes{};
  notes.p_type = PT_NOTE;
  notes.p_align = 4;
  notes.p_offset = file.size();
  notes.p_filesz = notes.p_memsz = note.size();
  std::memcpy(file.data() + sizeof(Elf64_Ehdr), &notes, sizeof notes);
  add(".note.gnu.build-id", SHT_NOTE, note, 0);
  add_symbols(".dynsym", ".dynstr", SHT_DYNSYM, 3);
  add(".text", SHT_NOBITS, {}, 0);
  sections.back().sh_size = first_function;
  add_symbols(".symtab", ".strtab", SHT_SYMTAB, 1);
  names.reserve(names.size() + 16);
  const std::string all_names = names + ".shstrtab" + std::string(1, '\0');
  add(".shstrtab", SHT_STRTAB, std::as_bytes(std::span{all_names}), 0);

  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = std::endian::native == std::endian::little ? ELFDATA2LSB : ELFDATA2MSB;
  header.e_type = ET_DYN;
  header.e_machine = this_machine;
  header.e_phoff = sizeof header;
  header.e_phentsize = sizeof(Elf64_Phdr);
  header.e_phnum = 1;
  header.e_shoff = file.size();
  header.e_shentsize = sizeof(Elf64_Shdr);
  header.e_shnum = static_cast<Elf64_Half>(sections.size());
  header.e_shstrndx = static_cast<Elf64_Half>(sections.size() - 1);
  std::memcpy(file.data(), &header, sizeof header);
  put(file, sections.data(), sections.size() * sizeof(Elf64_Shdr));
  return file;
}

// Bytes behind which nothing is mapped: who reads on ends the program. Aligned, as a mapped file is.
class guarded_bytes {
 public:
  explicit guarded_bytes(std::span<const std::byte> bytes) : size_{bytes.size() / 8 * 8} {
    first_ = static_cast<std::byte*>(
        ::mmap(nullptr, room + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    test::must(first_ != MAP_FAILED && size_ <= room, "no memory");
    ::mprotect(first_ + room, page, PROT_NONE);
    std::copy_n(bytes.data(), size_, first_ + room - size_);
  }
  guarded_bytes(const guarded_bytes&) = delete;
  ~guarded_bytes() { ::munmap(first_, room + page); }
  std::span<const std::byte> bytes() const { return {first_ + room - size_, size_}; }

 private:
  static constexpr std::size_t page = std::size_t{1} << 16, room = page;  // of whatever size pages are
  std::size_t size_;
  std::byte* first_;
};

// ---- both readers -----------------------------------------------------------------------------------------------------------

void read_all(std::span<const std::byte> bytes) {
  const auto is_inside = [&](const void* begin, std::size_t size) {
    const auto at = reinterpret_cast<std::uintptr_t>(begin), from = reinterpret_cast<std::uintptr_t>(bytes.data());
    return size == 0 || (at >= from && size <= bytes.size() && at - from <= bytes.size() - size);
  };
  const elf_file file{bytes};
  for (const Elf64_Shdr& one : file.sections()) {
    const auto content = file.content(one);
    test::must(is_inside(content.data(), content.size()), "a section is not in the file");
  }
  for (const Elf64_Phdr& one : file.segments()) {
    const auto content = file.content(one);
    test::must(is_inside(content.data(), content.size()), "a segment is not in the file");
  }
  for (const char* name : {".symtab", ".eh_frame", ".shstrtab", ""}) {
    const auto content = file.section(name);
    test::must(is_inside(content.data(), content.size()), "a section that has this name is not in the file");
  }
  static_cast<void>(weft_tool::debug_file_of(file.build_id()));
  const std::vector<elf_function> all = file.functions();
  test::must(std::ranges::is_sorted(all, {}, &elf_function::begin), "the functions are not in order");
  for (const elf_function& one : all) {
    test::must(is_inside(one.name.data(), one.name.size() + (one.name.data() != nullptr)), "a name is not in the file");
    static_cast<void>(weft_tool::readable(one.name));
  }
  if (file.is_valid())
    test::must(file.has_symbols() == weft::detail::has_full_symbols(bytes), "only one of them finds symbols");
  for (std::uint64_t at = first_function - 1; at <= first_function + functions * bytes_of_function; at += 7) {
    const std::string_view name = weft::detail::symbol_at(bytes, at);
    test::must(is_inside(name.data(), name.size() + (name.data() != nullptr)), "the name is not in the file");
    if (!file.is_valid()) continue;
    const auto covers = [&](const elf_function& one) { return at >= one.begin && at - one.begin < one.size; };
    test::must(name.empty() ? std::ranges::none_of(all, [&](auto& one) { return covers(one) && one.name.empty(); }) ==
                                  std::ranges::none_of(all, covers)
                            : std::ranges::any_of(all, [&](auto& one) { return covers(one) && one.name == name; }),
               "the two find different functions");
  }
}

#if !defined(WEFT_LIBFUZZER)

TEST(elf_file, of_a_whole_file_finds_all) {
  const guarded_bytes whole{make_file()};
  const elf_file file{whole.bytes()};
  ASSERT_TRUE(file.is_valid());
  EXPECT_EQ(file.build_id(), "000102030405060708090a0b0c0d0e0f10111213");
  EXPECT_EQ(file.functions().size(), functions + functions / 3);
  EXPECT_TRUE(file.has_symbols());
  EXPECT_FALSE(file.section(".symtab").empty());
  for (std::uint64_t i = 0; i != functions; ++i)
    EXPECT_EQ(weft::detail::symbol_at(whole.bytes(), first_function + i * bytes_of_function + 5),
              "_ZN4weft3fn" + std::to_string(i) + "Ev");
  EXPECT_EQ(weft::detail::symbol_at(whole.bytes(), first_function - 1), "");
  read_all(whole.bytes());
}

TEST(elf_file, that_ends_anywhere_is_read_as_far_as_it_goes) {
  const std::vector<std::byte> whole = make_file();
  for (std::size_t bytes = 0; bytes < whole.size(); bytes += 8)
    read_all(guarded_bytes{std::span{whole}.first(bytes)}.bytes());
}

#endif

}  // namespace

// Whole words of a header are numbers near a limit; other bytes are any.
WEFT_FUZZ(elf_file, 20'000, 24) {
  static const std::vector<std::byte> whole = make_file();
  std::vector<std::byte> file = whole;
  const std::size_t table = file.size() - 9 * sizeof(Elf64_Shdr);
  while (chosen.are_left()) {
    const std::size_t any = (chosen.up_to(255) << 8 | chosen.up_to(255)) % file.size();
    const std::size_t at = chosen.one_in(3)   ? any
                           : chosen.one_in(3) ? any % (sizeof(Elf64_Ehdr) + sizeof(Elf64_Phdr))
                                              : table + any % (file.size() - table);
    if (chosen.one_in(2)) {
      file[at] = static_cast<std::byte>(chosen.up_to(255));
      continue;
    }
    const std::uint64_t near[] = {0, file.size(), std::uint64_t{1} << 32, std::uint64_t{1} << 63, any};
    const std::uint64_t number = near[chosen.up_to(4)] + chosen.up_to(16) - 8;
    const std::size_t bytes = std::size_t{1} << chosen.up_to(3);
    const std::size_t begin = std::min(at / bytes * bytes, file.size() - 8);
    std::memcpy(file.data() + begin, &number, bytes);
  }
  if (chosen.one_in(8)) file.resize(file.size() / 2);
  const guarded_bytes damaged{file};
  read_all(damaged.bytes());
}
