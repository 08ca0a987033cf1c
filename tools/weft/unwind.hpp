// Unwinds machine stacks of a target by the call frame information in its files (.eh_frame): who called a function, and with
// which registers it goes on there.
//
// Source: DWARF 5, section 6.4, and the Linux Standard Base's .eh_frame.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "target.hpp"

namespace weft_tool {

/// Puts what a switch of stacks keeps into the registers.
void set_frame(registers& regs, address stack_pointer, address frame_pointer, address base) noexcept;

address stack_pointer_of(const registers& regs) noexcept;

class unwinder {
 public:
  explicit unwinder(const target& in) : in_{in} {}

  struct caller {
    registers regs;
    address cfa;  // the stack pointer of the caller, behind the call
  };
  /// From a function to its caller; nothing where that is not known. `exact`: the pc is where the function goes on, and not
  /// behind a call.
  std::optional<caller> step(const registers& from, bool exact) const;
  /// Where the function begins that `code` is in, or the part of it; 0: not known.
  address function_at(address code) const;

 private:
  struct rule {
    enum { same, undefined, at_cfa, is_cfa, in_register, at_expression, is_expression } how = same;
    std::int64_t number = 0;
    std::span<const std::byte> expression;
  };
  struct row {
    std::map<unsigned, rule> rules;
    unsigned cfa_register = 0;
    std::int64_t cfa_offset = 0;
    std::span<const std::byte> cfa_expression;
  };
  struct entry {
    std::uint64_t begin, end;  // as the file counts them
    std::size_t at;            // in .eh_frame
  };
  struct frames {
    std::span<const std::byte> bytes;
    std::uint64_t address = 0;  // as the file counts it
    std::vector<entry> entries;
  };

  const frames& frames_of(const module& one) const;
  /// The entry of a place in the code, as the file counts it; null: there is none.
  static const entry* entry_of(const frames& all, std::uint64_t pc);
  std::optional<std::uint64_t> evaluate(std::span<const std::byte> expression, const registers& regs,
                                        std::optional<std::uint64_t> first) const;

  const target& in_;
  mutable std::map<const module*, frames> known_;
};

}  // namespace weft_tool
