// A core file: of a process that has crashed, or as gdb's generate-core-file and gcore make it. What it lacks of files that
// were mapped to be read, as code and constants, is read from those, if they are still the same.
#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "target.hpp"

namespace weft_tool {
namespace {

class core final : public target, weft_tool::memory {
 public:
  core(std::string path, std::unique_ptr<mapped_file> file, std::span<const std::byte> bytes, bool has_files)
      : path_{std::move(path)}, kept_{std::move(file)}, elf_{bytes}, has_files_{has_files} {
    if (!elf_.is_valid()) throw problem{path_ + ": not an ELF file, or not of this machine"};
    if (elf_.header().e_type != ET_CORE) throw problem{path_ + ": an ELF file, but no core file"};
    const auto all = elf_.segments();
    if (all.empty()) throw problem{path_ + ": a core file that was cut off: it has no list of its parts"};
    bool is_cut_off = false;
    for (const Elf64_Phdr& one : all) {
      const auto content = elf_.content(one);
      is_cut_off |= content.size() != one.p_filesz;
      if (one.p_type == PT_LOAD && !content.empty()) parts_.push_back({one.p_vaddr, content});
      if (one.p_type == PT_NOTE) for_each_note(content, one.p_align, [this](const elf_note& note) { look_at(note); });
    }
    if (threads_.empty())
      throw problem{path_ + ": a core file without threads" + (is_cut_off ? ": it was cut off" : "")};
    cut_off_ = is_cut_off;
    std::ranges::sort(parts_, {}, &part::begin);
    for (const part& one : parts_)
      if (one.begin == vdso_)
        mappings_.push_back({.begin = one.begin, .end = one.begin + one.content.size(), .path = "[vdso]"});
    std::ranges::sort(mappings_, {}, &mapping::begin);
    find_modules(*this);
  }

  const weft_tool::memory& memory() const noexcept override { return *this; }
  std::string what() const override {
    return "core file " + printable(path_) + (pid != 0 ? " of process " + std::to_string(pid) : "") +
           (cut_off_ ? ", which was cut off" : "");
  }

 private:
  struct part {
    address begin;
    std::span<const std::byte> content;
  };

  std::size_t read(address at, void* into, std::size_t bytes) const noexcept override {
    std::size_t done = 0;
    while (done != bytes) {
      const std::size_t got = read_some(at + done, static_cast<std::byte*>(into) + done, bytes - done);
      if (got == 0) break;
      done += got;
    }
    return done;
  }

  std::size_t read_some(address at, std::byte* into, std::size_t bytes) const noexcept {
    const auto after = std::ranges::upper_bound(parts_, at, {}, &part::begin);
    if (after != parts_.begin() && at - after[-1].begin < after[-1].content.size()) {
      const auto rest = after[-1].content.subspan(at - after[-1].begin);
      const std::size_t now = std::min(bytes, rest.size());
      std::memcpy(into, rest.data(), now);
      return now;
    }
    if (after != parts_.end()) bytes = std::min<std::uint64_t>(bytes, after->begin - at);
    const auto file = std::ranges::upper_bound(mappings_, at, {}, &mapping::begin);
    if (!has_files_ || file == mappings_.begin() || at >= file[-1].end) return 0;
    const mapping& in = file[-1];
    const auto content = file_named(in.path);
    const std::uint64_t offset = in.offset + (at - in.begin);
    if (offset >= content.size()) return 0;
    const std::size_t now = std::min<std::uint64_t>({bytes, in.end - at, content.size() - offset});
    std::memcpy(into, content.data() + offset, now);
    return now;
  }

  std::span<const std::byte> file_named(const std::string& path) const noexcept {
    for (const auto& [name, file] : files_)
      if (name == path) return file->bytes();
    return files_.emplace_back(path, std::make_unique<mapped_file>(path)).second->bytes();
  }

  void look_at(const elf_note& note) {
    if (note.owner != "CORE") return;
    const auto word = [&](std::size_t at) {
      std::uint64_t value = 0;
      if (at <= note.content.size() && note.content.size() - at >= sizeof value)
        std::memcpy(&value, note.content.data() + at, sizeof value);
      return value;
    };
    if (note.type == NT_PRSTATUS) {
      constexpr std::size_t id_at = 32, registers_at = 112;  // struct elf_prstatus, on 64-bit systems
      if (note.content.size() <= registers_at) return;
      thread_seen one;
      one.id = static_cast<int>(word(id_at) & 0xffff'ffff);
      one.regs = registers_of(note.content.subspan(registers_at));
      if (pid == 0) pid = one.id;
      threads_.push_back(std::move(one));
    } else if (note.type == NT_FILE) {
      const std::uint64_t count = word(0), page = word(8);
      if (count > note.content.size() / 24) return;
      const auto* names = reinterpret_cast<const char*>(note.content.data()) + 16 + count * 24;
      const auto* const end = reinterpret_cast<const char*>(note.content.data()) + note.content.size();
      for (std::uint64_t i = 0; i != count && names < end; ++i) {
        mapping one;
        one.begin = word(16 + i * 24);
        one.end = word(24 + i * 24);
        one.offset = word(32 + i * 24) * page;
        one.path.assign(names, ::strnlen(names, static_cast<std::size_t>(end - names)));
        names += one.path.size() + 1;
        if (has_files_ || !one.path.empty()) mappings_.push_back(std::move(one));
      }
    } else if (note.type == NT_AUXV) {
      for (std::size_t at = 0; at + 16 <= note.content.size(); at += 16)
        if (word(at) == AT_SYSINFO_EHDR) vdso_ = word(at + 8);
    } else if (note.type == NT_PRPSINFO) {
      constexpr std::size_t id_at = 24;
      if (const int its = static_cast<int>(word(id_at) & 0xffff'ffff); its > 0) pid = its;
    }
  }

  std::string path_;
  std::unique_ptr<mapped_file> kept_;
  elf_file elf_;
  bool has_files_, cut_off_ = false;
  address vdso_ = 0;  // of the kernel's own, which is of no file
  std::vector<part> parts_;
  mutable std::vector<std::pair<std::string, std::unique_ptr<mapped_file>>> files_;
};

}  // namespace

std::unique_ptr<target> open_core(const std::string& path) {
  auto file = std::make_unique<mapped_file>(path);
  const auto bytes = file->bytes();
  if (bytes.empty()) throw problem{path + ": no such file, or it cannot be read, or it is empty"};
  return std::make_unique<core>(path, std::move(file), bytes, true);
}

std::unique_ptr<target> open_core_bytes(std::span<const std::byte> bytes) {
  return std::make_unique<core>("bytes", nullptr, bytes, false);
}

}  // namespace weft_tool
