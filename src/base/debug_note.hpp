// What a reader of this process's memory needs to know, of another process or of a core file: where in which type each
// field lies, and the addresses of what all else hangs off.
//
// Each source file that has something to tell makes a table of names and numbers, and a note in a section that is loaded
// with the program, so it is still there when symbols and debug information were stripped, in a static program, in a shared
// library and in a core file. A note is of the owner `weft_debug_v1` and holds one number: how far behind itself its table
// begins. The table's addresses are the loader's to fill in, as any pointer's; so the note itself, which lies in read-only
// memory, has none.
//
// The numbers come from the types, by offsetof and sizeof, so they cannot be stale; a reader looks fields up by name, so
// they may move, and be added to. What is no longer so in a way that would mislead a reader gets a name of its own.
//
// Rejected: (a) one table of all subsystems: the lower ones would have to know of the higher ones. (b) Debug information,
// which release builds strip, or DW_TAG lookups of private members by whoever reads, which a change breaks in silence.
#pragma once

#include <cstddef>
#include <cstdint>

namespace weft::detail {

/// One line of a table: a distance in bytes or another number, or an address.
struct debug_field {
  const char* name;
  std::uint64_t number;
  const void* address;

  constexpr debug_field(const char* what, std::uint64_t is) noexcept : name{what}, number{is}, address{nullptr} {}
  constexpr debug_field(const char* what, const void* at) noexcept : name{what}, number{0}, address{at} {}
};

/// A table, and where it begins for readers.
struct debug_table {
  static constexpr std::uint64_t known_by = 0x3130'7466'6577'fe9d;  // so that a reader knows what it has found
  std::uint64_t magic = known_by;
  std::uint64_t bytes_of_field = sizeof(debug_field);
  std::uint64_t count;
  const debug_field* first;

  template <std::size_t n>
  explicit constexpr debug_table(const debug_field (&all)[n]) noexcept : count{n}, first{all} {}
};

}  // namespace weft::detail

// Makes the note of a table, which is a variable of this source file with C linkage, hidden from other modules:
//
//     extern "C" [[gnu::visibility("hidden"), gnu::used]] constinit const debug_table weft_debug_core{fields};
//     WEFT_DEBUG_NOTE("weft_debug_core");
#define WEFT_DEBUG_NOTE(table)                    \
  asm(".pushsection .note.weft, \"a\", %note\n\t" \
      ".balign 4\n\t"                             \
      ".long 14, 8, 1\n\t"                        \
      ".ascii \"weft_debug_v1\\0\\0\\0\"\n\t"     \
      ".quad " table                              \
      " - .\n\t"                                  \
      ".popsection")
