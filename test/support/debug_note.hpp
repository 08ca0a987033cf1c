// What a reader from outside makes of this process's memory: by the notes in its ELF files alone (src/base/debug_note.hpp),
// and knowing no type.
#pragma once

#include <elf.h>
#include <gtest/gtest.h>
#include <link.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <weft/wait_subject.hpp>

namespace test {

template <class T = std::uint64_t>
T read_at(std::uintptr_t address) {
  T value;
  std::memcpy(&value, reinterpret_cast<const void*>(address), sizeof value);
  return value;
}

/// All fields of all tables: numbers and addresses.
inline const std::map<std::string, std::uint64_t>& debug_fields() {
  static const auto all = [] {
    std::map<std::string, std::uint64_t> found;
    ::dl_iterate_phdr(
        [](dl_phdr_info* module, std::size_t, void* into) {
          auto& fields = *static_cast<std::map<std::string, std::uint64_t>*>(into);
          for (int i = 0; i != module->dlpi_phnum; ++i) {
            const ElfW(Phdr) & part = module->dlpi_phdr[i];
            if (part.p_type != PT_NOTE || part.p_align > 4) continue;
            const std::uintptr_t end = module->dlpi_addr + part.p_vaddr + part.p_memsz;
            for (std::uintptr_t at = module->dlpi_addr + part.p_vaddr; at + sizeof(ElfW(Nhdr)) <= end;) {
              const auto note = read_at<ElfW(Nhdr)>(at);
              const std::uintptr_t name = at + sizeof note, text = name + (note.n_namesz + 3) / 4 * 4;
              at = text + (note.n_descsz + 3) / 4 * 4;
              if (note.n_namesz != 14 || std::strcmp(reinterpret_cast<const char*>(name), "weft_debug_v1") != 0)
                continue;
              const std::uintptr_t table = text + read_at(text);
              EXPECT_EQ(read_at(table), 0x3130'7466'6577'fe9d);
              const std::uint64_t size = read_at(table + 8), count = read_at(table + 16);
              for (std::uint64_t f = 0; f != count; ++f) {
                const std::uintptr_t field = read_at(table + 24) + f * size;
                const std::uint64_t number = read_at(field + 8), address = read_at(field + 16);
                const bool is_new =
                    fields.emplace(reinterpret_cast<const char*>(read_at(field)), address != 0 ? address : number)
                        .second;
                EXPECT_TRUE(is_new) << reinterpret_cast<const char*>(read_at(field));
              }
            }
          }
          return 0;
        },
        &found);
    return found;
  }();
  return all;
}

inline std::uint64_t debug_field(const std::string& name) {
  const auto found = debug_fields().find(name);
  EXPECT_NE(found, debug_fields().end()) << name;
  return found != debug_fields().end() ? found->second : 0;
}

/// What the root at `root` waits for, as weft::waits_on() tells it; of a wait that is for one thing.
inline weft::wait_subject seen_from_outside(const void* root) {
  const auto f = [](const char* name) { return debug_field(name); };
  const auto at = reinterpret_cast<std::uintptr_t>(root);
  EXPECT_EQ(read_at(at + f("sleeper.word")) & f("state.mask"), f("state.waiting"));
  const std::uintptr_t waiter = read_at(at + f("sleeper.current")), type = read_at(waiter + f("waiter.type"));
  weft::wait_subject seen{reinterpret_cast<const char*>(read_at(type + f("wait_type.name"))), nullptr, nullptr};
  const std::uintptr_t layout = read_at(type + f("wait_type.layout"));
  if (layout == 0) return seen;
  const auto number = [&](const char* name) { return read_at<std::uint16_t>(layout + f(name)); };
  const auto how = read_at<std::uint8_t>(layout + f("layout.subject"));
  const std::uintptr_t subject =
      how == f("place.itself") ? waiter : read_at(waiter + number("layout.subject_at")) + number("layout.subject_plus");
  seen.at = reinterpret_cast<const void*>(subject);
  const auto held_by = read_at<std::uint8_t>(layout + f("layout.held_by"));
  if (held_by == f("holder.subject")) seen.held_by = seen.at;
  if (held_by == f("holder.word")) {
    std::uint64_t word = read_at(subject + number("layout.word_at")) & ~std::uint64_t{number("layout.marks")};
    if (const auto second = number("layout.word2_at");
        word == 0 && second != f("layout.nowhere") &&
        read_at<std::uint8_t>(waiter + number("layout.unless_at")) != number("layout.unless_is"))
      word = read_at(subject + second);
    if (word > f("holder.somebody")) seen.held_by = reinterpret_cast<const void*>(word);
  }
  return seen;
}

}  // namespace test
