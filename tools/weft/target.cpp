#include "target.hpp"

#include <sys/procfs.h>
#include <sys/ucontext.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <utility>

namespace weft_tool {

// ---- modules ----------------------------------------------------------------------------------------------------------

struct module::loaded {
  std::unique_ptr<mapped_file> bytes, debug_bytes;
  std::vector<std::byte> image;  // in place of a file
  elf_file file;
  std::vector<elf_function> functions;
};

namespace { constexpr std::uint64_t most_segments = 256; }  // namespace

module::module(std::string path, address begin, address end, const memory& in) :path_{std::move(path)}, begin_{begin},
    end_{end} {
  if (constexpr std::size_t most_of_vdso = 1 << 16; path_ == "[vdso]" && end - begin <= most_of_vdso) {
    file_ = std::make_shared<loaded>();  // the kernel's: the whole file is in memory, and nowhere else
    file_->image.resize(end - begin);
    file_->image.resize(in.read(begin, file_->image.data(), file_->image.size()));
    file_->file = elf_file{file_->image};
    if (file_->file.is_valid()) file_->functions = file_->file.functions();
  }
  const auto header = in.get<Elf64_Ehdr>(begin);
  if (header && std::memcmp(header->e_ident, ELFMAG, SELFMAG) == 0 && header->e_phentsize == sizeof(Elf64_Phdr) &&
      header->e_phnum <= most_segments) {
    segments_.resize(header->e_phnum);
    const std::size_t bytes = segments_.size() * sizeof(Elf64_Phdr);
    if (in.read(begin + header->e_phoff, segments_.data(), bytes) != bytes) segments_.clear();
  }
  if (segments_.empty()) {
    const auto from_file = file().segments();
    segments_.assign(from_file.begin(), from_file.end());
  }
  // The first page of the file is mapped where its first segment is.
  for (const Elf64_Phdr& one : segments_)
    if (one.p_type == PT_LOAD && one.p_offset < 4096) {
      bias_ = begin - (one.p_vaddr - one.p_offset);
      break;
    }
  for (const Elf64_Phdr& one : segments_) {
    if (one.p_type == PT_LOAD) end_ = std::max(end_, bias_ + one.p_vaddr + one.p_memsz);
    if (one.p_type != PT_NOTE || one.p_memsz > 1 << 16) continue;
    std::vector<std::byte> notes(one.p_memsz);
    notes.resize(in.read(bias_ + one.p_vaddr, notes.data(), notes.size()));
    for_each_note(notes, one.p_align, [&](const elf_note& note) {
      if (note.owner == "GNU" && note.type == NT_GNU_BUILD_ID) build_id_ = hexadecimal(note.content);
    });
  }
}

const elf_file& module::file() const {
  if (file_ == nullptr) {
    file_ = std::make_shared<loaded>();
    loaded& mine = *file_;
    mine.bytes = std::make_unique<mapped_file>(path_);
    mine.file = elf_file{mine.bytes->bytes()};
    if (mine.file.is_valid() && !build_id_.empty() && mine.file.build_id() != build_id_) mine.file = {};  // replaced
    mine.functions = mine.file.is_valid() ? mine.file.functions() : std::vector<elf_function>{};
    if (!mine.file.is_valid() || !mine.file.has_symbols())
      if (const std::string debug = debug_file_of(build_id_); !debug.empty()) {
        mine.debug_bytes = std::make_unique<mapped_file>(debug);
        if (const elf_file symbols{mine.debug_bytes->bytes()}; symbols.is_valid()) mine.functions = symbols.functions();
      }
  }
  return file_->file;
}

std::string_view module::function_at(address code) const {
  static_cast<void>(file());
  const std::uint64_t offset = code - bias_;
  const auto& all = file_->functions;
  auto after = std::ranges::upper_bound(all, offset, {}, &elf_function::begin);
  for (int looked = 0; after != all.begin() && looked != 8; ++looked)
    if (const elf_function& one = *--after; offset - one.begin < one.size) return one.name;
  return {};
}

// ---- targets ----------------------------------------------------------------------------------------------------------

void target::find_modules(const weft_tool::memory& in) {
  for (std::size_t i = 0; i != mappings_.size(); ++i) {
    const mapping& first = mappings_[i];
    if (first.path.empty() || first.path.starts_with("/dev/") || first.offset != 0) continue;
    if (first.path.front() != '/' && first.path != "[vdso]") continue;
    char magic[SELFMAG];
    if (in.read(first.begin, magic, sizeof magic) != sizeof magic || std::memcmp(magic, ELFMAG, SELFMAG) != 0) {
      // Of a core file that lacks this page, the file itself tells.
      if (!elf_file{mapped_file{first.path}.bytes()}.is_valid()) continue;
    }
    address end = first.end;
    for (std::size_t j = i + 1; j != mappings_.size() && mappings_[j].path == first.path && mappings_[j].offset != 0;
         ++j)
      end = mappings_[j].end;
    modules_.emplace_back(first.path, first.begin, end, in);
  }
}

const module* target::module_at(address at) const noexcept {
  const auto found = std::ranges::find_if(modules_, [at](const module& one) { return one.covers(at); });
  return found != modules_.end() ? &*found : nullptr;
}

std::string target::name_of(address code) const {
  const auto known = names_.find(code);
  if (known != names_.end()) return known->second;
  std::string name;
  const module* const in = module_at(code);
  if (const std::string_view mangled = in != nullptr ? in->function_at(code) : std::string_view{}; !mangled.empty()) {
    name = readable(mangled);
  } else {
    char digits[24];
    std::snprintf(digits, sizeof digits, "0x%llx",
                  static_cast<unsigned long long>(in != nullptr ? code - in->bias() : code));
    name = in != nullptr ? in->path() + "+" + digits : digits;
  }
  return names_.emplace(code, printable(name)).first->second;
}

// ---- registers ----------------------------------------------------------------------------------------------------------

registers registers_of(std::span<const std::byte> general) {
  registers found;
  std::array<std::uint64_t, 40> raw{};
  std::memcpy(raw.data(), general.data(), std::min(general.size(), sizeof raw));
#if defined(__x86_64__)
  // The order of user_regs_struct: r15 r14 r13 r12 rbp rbx r11 r10 r9 r8 rax rcx rdx rsi rdi orig_rax rip cs eflags rsp
  constexpr int number_of[15] = {15, 14, 13, 12, 6, 3, 11, 10, 9, 8, 0, 2, 1, 4, 5};
  for (std::size_t i = 0; i != 15; ++i) found.all[number_of[i]] = raw[i];
  found.pc = raw[16];
  found.all[7] = raw[19];
  found.all[16] = found.pc;
#elif defined(__aarch64__)
  for (std::size_t i = 0; i != 32; ++i) found.all[i] = raw[i];  // x0 to x30, sp
  found.pc = raw[32];
#elif defined(__riscv)
  for (std::size_t i = 1; i != 32; ++i) found.all[i] = raw[i];  // the first one is pc
  found.pc = raw[0];
#endif
  return found;
}

std::optional<int> process_number(const std::string& which) {
  int pid = 0;
  const auto [end, error] = std::from_chars(which.data(), which.data() + which.size(), pid);
  if (error == std::errc{} && end == which.data() + which.size() && pid > 0) return pid;
  return std::nullopt;
}

std::unique_ptr<target> open_target(const std::string& which) {
  const auto pid = process_number(which);
  return pid ? open_process(*pid) : open_core(which);
}

}  // namespace weft_tool
