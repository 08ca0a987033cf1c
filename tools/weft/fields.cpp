#include "fields.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "target.hpp"

namespace weft_tool {

namespace {

constexpr std::uint64_t known_by = 0x3130'7466'6577'fe9d;
constexpr std::uint64_t most_fields = 4096, most_workers = 1 << 16;

}  // namespace

fields::fields(const module& in, const memory& at) : module_{in.path()} {
  std::string other;  // version, than that which is known here
  for (const Elf64_Phdr& part : in.segments()) {
    if (part.p_type != PT_NOTE || part.p_memsz > 1 << 20) continue;
    const address begin = in.bias() + part.p_vaddr;
    std::vector<std::byte> bytes(part.p_memsz);
    bytes.resize(at.read(begin, bytes.data(), bytes.size()));
    if (bytes.empty()) {
      const auto in_file = in.file().content(part);
      bytes.assign(in_file.begin(), in_file.end());
    }
    for_each_note(bytes, part.p_align, [&](const elf_note& note) {
      constexpr std::string_view owner = "weft_debug_v";
      if (!note.owner.starts_with(owner)) return;
      if (note.owner != "weft_debug_v1") {
        other = printable(note.owner.substr(owner.size()));
        return;
      }
      const auto damaged = [this](const char* why) {
        return problem{module_ + ": its notes of weft are damaged: " + why};
      };
      if (note.content.size() != 8) throw damaged("one has not the size of a number");
      std::uint64_t distance;
      std::memcpy(&distance, note.content.data(), sizeof distance);
      const address table = begin + note.at + distance;
      if (at.word(table) != known_by) throw damaged("one leads to no table");
      const auto bytes_of_field = at.word(table + 8), count = at.word(table + 16), first = at.word(table + 24);
      if (bytes_of_field < 24 || bytes_of_field > 256 || count > most_fields) throw damaged("a table is too large");
      for (std::uint64_t i = 0; i != count; ++i) {
        const address field = first + i * bytes_of_field;
        const auto name = at.get<address>(field), number = at.get<std::uint64_t>(field + 8),
                   where = at.get<std::uint64_t>(field + 16);
        if (!name || !number || !where) throw damaged("a table leads to where nothing is");
        std::string text = at.text(*name, 64);
        if (text.empty()) throw damaged("a field has no name");
        all_.emplace(std::move(text), *where != 0 ? *where : *number);
      }
    });
  }
  if (all_.empty() && !other.empty())
    throw problem{module_ + ": its notes of weft are of version " + other + ", and this program knows version 1"};
}

std::uint64_t fields::operator[](std::string_view name) const {
  const auto found = all_.find(std::string{name});
  if (found == all_.end())
    throw problem{module_ + ": its weft says nothing of " + std::string{name} +
                  ": this program is of another version than that library"};
  return found->second;
}

std::vector<fields> fields_of(const target& in) {
  std::vector<fields> found;
  for (const module& one : in.modules())
    if (fields its{one, in.memory()}; its.is_found()) found.push_back(std::move(its));
  if (found.empty())
    throw problem{in.what() + ": nothing in it uses weft, or a version of weft without notes for debuggers" +
                  (in.modules().empty() ? ": no file that is loaded was found" : "")};
  return found;
}

std::vector<address> fields::workers(const memory& at) const {
  std::vector<address> found;
  for (address one = at.word((*this)["workers"]); one != 0 && found.size() != most_workers;
       one = at.word(one + (*this)["worker.made_before"]))
    found.push_back(one);
  return found;
}

}  // namespace weft_tool
