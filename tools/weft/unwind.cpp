// Long because the entries of .eh_frame, the program in each, and expressions are one format.
#include "unwind.hpp"

#include <algorithm>
#include <cstring>

namespace weft_tool {
namespace {

#if defined(__x86_64__)
constexpr unsigned stack_register = 7, frame_register = 6, base_register = 3;
#elif defined(__aarch64__)
constexpr unsigned stack_register = 31, frame_register = 29, base_register = 19;
#else
constexpr unsigned stack_register = 2, frame_register = 8, base_register = 9;
#endif
constexpr std::size_t register_count = std::tuple_size_v<decltype(registers::all)>;

// Reads on from a place; past the end it reads zeros, and says so.
class reader {
 public:
  explicit reader(std::span<const std::byte> bytes, std::size_t at = 0) noexcept : bytes_{bytes}, at_{at} {}

  template <class T>
  T take() noexcept {
    T value{};
    if (at_ > bytes_.size() || bytes_.size() - at_ < sizeof value) {
      at_ = bytes_.size() + 1;
      return value;
    }
    std::memcpy(&value, bytes_.data() + at_, sizeof value);
    at_ += sizeof value;
    return value;
  }
  std::uint64_t unsigned_leb() noexcept {
    std::uint64_t value = 0;
    for (unsigned shift = 0;; shift += 7) {
      const auto one = take<std::uint8_t>();
      if (shift < 64) value |= std::uint64_t{one & 0x7fu} << shift;
      if ((one & 0x80) == 0 || failed()) return value;
    }
  }
  std::int64_t signed_leb() noexcept {
    std::uint64_t value = 0;
    for (unsigned shift = 0;;) {
      const auto one = take<std::uint8_t>();
      if (shift < 64) value |= std::uint64_t{one & 0x7fu} << shift;
      shift += 7;
      if ((one & 0x80) != 0 && !failed()) continue;
      if ((one & 0x40) != 0 && shift < 64) value |= ~std::uint64_t{0} << shift;
      return static_cast<std::int64_t>(value);
    }
  }
  std::span<const std::byte> take_bytes(std::uint64_t count) noexcept {
    if (at_ > bytes_.size() || bytes_.size() - at_ < count) {
      at_ = bytes_.size() + 1;
      return {};
    }
    at_ += count;
    return bytes_.subspan(at_ - count, count);
  }
  // A pointer in one of the encodings of .eh_frame; `base` is where the bytes lie.
  std::uint64_t pointer(unsigned encoding, std::uint64_t base) noexcept {
    const std::uint64_t here = base + at_;
    std::uint64_t value = 0;
    switch (encoding & 0x0f) {
      case 0x00:
      case 0x04:
      case 0x0c: value = take<std::uint64_t>(); break;
      case 0x01: value = unsigned_leb(); break;
      case 0x02: value = take<std::uint16_t>(); break;
      case 0x03: value = take<std::uint32_t>(); break;
      case 0x09: value = static_cast<std::uint64_t>(signed_leb()); break;
      case 0x0a: value = static_cast<std::uint64_t>(std::int64_t{take<std::int16_t>()}); break;
      case 0x0b: value = static_cast<std::uint64_t>(std::int64_t{take<std::int32_t>()}); break;
      default: at_ = bytes_.size() + 1;
    }
    return (encoding & 0x70) == 0x10 ? here + value : value;
  }
  bool failed() const noexcept { return at_ > bytes_.size(); }
  bool at_end() const noexcept { return at_ >= bytes_.size(); }
  std::size_t place() const noexcept { return at_; }
  void go_to(std::size_t place) noexcept { at_ = place; }

 private:
  std::span<const std::byte> bytes_;
  std::size_t at_;
};

// A common information entry.
struct common {
  bool is_valid = false, has_augmentation = false, is_signal = false;
  std::uint64_t code_factor = 1;
  std::int64_t data_factor = 1;
  std::uint64_t return_register = 0;
  unsigned encoding = 0;
  std::span<const std::byte> program;
};

// The bytes of the entry at `at`, behind its length; where the next begins is put into `next`.
std::span<const std::byte> entry_at(std::span<const std::byte> all, std::size_t at, std::size_t& next,
                                    std::size_t& begin) {
  reader in{all, at};
  std::uint64_t length = in.take<std::uint32_t>();
  if (length == 0xffff'ffff) length = in.take<std::uint64_t>();
  begin = in.place();
  const auto bytes = in.take_bytes(length);
  next = in.failed() || length == 0 ? all.size() : in.place();
  return bytes;
}

common common_at(std::span<const std::byte> all, std::uint64_t base, std::size_t at) {
  common found;
  std::size_t next, begin;
  const auto bytes = entry_at(all, at, next, begin);
  reader in{bytes};
  if (in.take<std::uint32_t>() != 0) return found;
  const auto version = in.take<std::uint8_t>();
  if (version != 1 && version != 3 && version != 4) return found;
  std::string augmentation;
  while (const auto one = in.take<char>()) {
    augmentation += one;
    if (in.failed()) return found;
  }
  if (version == 4) in.take<std::uint16_t>();
  found.code_factor = in.unsigned_leb();
  found.data_factor = in.signed_leb();
  found.return_register = version == 1 ? in.take<std::uint8_t>() : in.unsigned_leb();
  if (augmentation.starts_with('z')) {
    found.has_augmentation = true;
    const std::uint64_t length = in.unsigned_leb();
    const std::size_t end = in.place() + length;
    for (const char one : augmentation.substr(1)) {
      if (one == 'R') found.encoding = in.take<std::uint8_t>();
      if (one == 'L') in.take<std::uint8_t>();
      if (one == 'P') {
        const unsigned encoding = in.take<std::uint8_t>();
        in.pointer(encoding, base + begin);
      }
      if (one == 'S') found.is_signal = true;
    }
    in.go_to(end);
  } else if (!augmentation.empty()) {
    return found;
  }
  if (in.failed()) return found;
  found.program = bytes.subspan(std::min(in.place(), bytes.size()));
  found.is_valid = found.return_register < register_count;
  return found;
}

}  // namespace

void set_frame(registers& regs, address stack_pointer, address frame_pointer, address base) noexcept {
  regs.all[stack_register] = stack_pointer;
  regs.all[frame_register] = frame_pointer;
  regs.all[base_register] = base;
}

address stack_pointer_of(const registers& regs) noexcept { return regs.all[stack_register]; }

const unwinder::frames& unwinder::frames_of(const module& one) const {
  const auto [known, is_new] = known_.try_emplace(&one);
  frames& found = known->second;
  if (!is_new) return found;
  const elf_file& file = one.file();
  found.bytes = file.section(".eh_frame");
  if (found.bytes.empty()) return found;
  for (const Elf64_Shdr& section : file.sections())
    if (section.sh_type != SHT_NOBITS && file.content(section).data() == found.bytes.data() && section.sh_size != 0)
      found.address = section.sh_addr;
  for (std::size_t at = 0, next; at < found.bytes.size(); at = next) {
    std::size_t begin;
    const auto bytes = entry_at(found.bytes, at, next, begin);
    reader in{bytes};
    const auto back = in.take<std::uint32_t>();
    if (in.failed() || back == 0 || back > begin) continue;
    const common its = common_at(found.bytes, found.address, begin - back);
    if (!its.is_valid) continue;
    const std::uint64_t first = in.pointer(its.encoding, found.address + begin),
                        size = in.pointer(its.encoding & 0x0f, 0);
    if (!in.failed() && size != 0) found.entries.push_back({first, first + size, at});
  }
  std::ranges::sort(found.entries, {}, &entry::begin);
  return found;
}

const unwinder::entry* unwinder::entry_of(const frames& all, std::uint64_t pc) {
  const auto after = std::ranges::upper_bound(all.entries, pc, {}, &entry::begin);
  return after != all.entries.begin() && pc < after[-1].end ? &after[-1] : nullptr;
}

address unwinder::function_at(address code) const {
  const module* const in = in_.module_at(code);
  const entry* const its = in != nullptr ? entry_of(frames_of(*in), code - in->bias()) : nullptr;
  return its != nullptr ? in->bias() + its->begin : 0;
}

std::optional<unwinder::caller> unwinder::step(const registers& from, bool exact) const {
  const module* const in = in_.module_at(from.pc);
  if (in == nullptr) return std::nullopt;
  const frames& all = frames_of(*in);
  const std::uint64_t pc = from.pc - in->bias() - (exact ? 0 : 1);
  const entry* const its = entry_of(all, pc);
  if (its == nullptr) return std::nullopt;

  std::size_t next, begin;
  const auto bytes = entry_at(all.bytes, its->at, next, begin);
  reader head{bytes};
  const auto back = head.take<std::uint32_t>();
  const common its_common = common_at(all.bytes, all.address, begin - back);
  head.pointer(its_common.encoding, 0);
  head.pointer(its_common.encoding & 0x0f, 0);
  if (its_common.has_augmentation) {
    const std::uint64_t length = head.unsigned_leb();
    head.take_bytes(length);
  }
  if (head.failed()) return std::nullopt;

  row now, initial;
  std::vector<row> kept;
  std::uint64_t at = its->begin;
  const auto run = [&](std::span<const std::byte> program) {
    reader code{program};
    const auto set = [&](std::uint64_t number, rule to) {
      if (number < register_count) now.rules[static_cast<unsigned>(number)] = to;
    };
    const auto restore = [&](std::uint64_t number) {
      const auto found = initial.rules.find(static_cast<unsigned>(number));
      if (found != initial.rules.end())
        now.rules[found->first] = found->second;
      else
        now.rules.erase(static_cast<unsigned>(number));
    };
    const auto scaled = [&](std::uint64_t value) {  // as numbers without a sign, which may overflow
      return static_cast<std::int64_t>(value * static_cast<std::uint64_t>(its_common.data_factor));
    };
    const auto scaled_signed = [&] { return scaled(static_cast<std::uint64_t>(code.signed_leb())); };
    while (!code.at_end() && at <= pc) {
      const auto op = code.take<std::uint8_t>();
      const unsigned low = op & 0x3f;
      switch (op & 0xc0) {
        case 0x40: at += low * its_common.code_factor; continue;
        case 0x80: set(low, {rule::at_cfa, scaled(code.unsigned_leb()), {}}); continue;
        case 0xc0: restore(low); continue;
        default: break;
      }
      switch (op) {
        case 0x00: break;
        case 0x01: at = code.pointer(its_common.encoding, 0); break;
        case 0x02: at += code.take<std::uint8_t>() * its_common.code_factor; break;
        case 0x03: at += code.take<std::uint16_t>() * its_common.code_factor; break;
        case 0x04: at += code.take<std::uint32_t>() * its_common.code_factor; break;
        case 0x05: {
          const auto number = code.unsigned_leb();
          set(number, {rule::at_cfa, scaled(code.unsigned_leb()), {}});
          break;
        }
        case 0x06: restore(code.unsigned_leb()); break;
        case 0x07: set(code.unsigned_leb(), {rule::undefined, 0, {}}); break;
        case 0x08: now.rules.erase(static_cast<unsigned>(code.unsigned_leb())); break;
        case 0x09: {
          const auto number = code.unsigned_leb();
          set(number, {rule::in_register, static_cast<std::int64_t>(code.unsigned_leb()), {}});
          break;
        }
        case 0x0a:
          if (kept.size() < 64) kept.push_back(now);
          break;
        case 0x0b:
          if (!kept.empty()) {
            now = kept.back();
            kept.pop_back();
          }
          break;
        case 0x0c:
        case 0x12:
          now.cfa_register = static_cast<unsigned>(code.unsigned_leb());
          now.cfa_offset = op == 0x0c ? static_cast<std::int64_t>(code.unsigned_leb()) : scaled_signed();
          now.cfa_expression = {};
          break;
        case 0x0d: now.cfa_register = static_cast<unsigned>(code.unsigned_leb()); break;
        case 0x0e: now.cfa_offset = static_cast<std::int64_t>(code.unsigned_leb()); break;
        case 0x13: now.cfa_offset = scaled_signed(); break;
        case 0x0f: now.cfa_expression = code.take_bytes(code.unsigned_leb()); break;
        case 0x10:
        case 0x16: {
          const auto number = code.unsigned_leb();
          const auto expression = code.take_bytes(code.unsigned_leb());
          set(number, {op == 0x10 ? rule::at_expression : rule::is_expression, 0, expression});
          break;
        }
        case 0x11:
        case 0x15: {
          const auto number = code.unsigned_leb();
          set(number, {op == 0x11 ? rule::at_cfa : rule::is_cfa, scaled_signed(), {}});
          break;
        }
        case 0x14: {
          const auto number = code.unsigned_leb();
          set(number, {rule::is_cfa, scaled(code.unsigned_leb()), {}});
          break;
        }
        case 0x2d: break;  // of AArch64: the return address is signed, or not any more
        case 0x2e: code.unsigned_leb(); break;
        default: return false;
      }
    }
    return !code.failed();
  };
  const std::uint64_t first = at;
  if (!run(its_common.program)) return std::nullopt;
  initial = now;
  at = first;
  if (!run(bytes.subspan(std::min(head.place(), bytes.size())))) return std::nullopt;

  std::optional<std::uint64_t> cfa;
  if (!now.cfa_expression.empty())
    cfa = evaluate(now.cfa_expression, from, std::nullopt);
  else if (now.cfa_register < register_count)
    cfa = from.all[now.cfa_register] + static_cast<std::uint64_t>(now.cfa_offset);
  if (!cfa) return std::nullopt;

  caller found{from, *cfa};
  found.regs.all[stack_register] = *cfa;
  bool is_outermost = false;
  for (const auto& [number, how] : now.rules) {
    std::optional<std::uint64_t> value;
    switch (how.how) {
      case rule::same: value = from.all[number]; break;
      case rule::undefined:
        is_outermost |= number == its_common.return_register;
        value = 0;
        break;
      case rule::at_cfa: value = in_.memory().get<std::uint64_t>(*cfa + static_cast<std::uint64_t>(how.number)); break;
      case rule::is_cfa: value = *cfa + static_cast<std::uint64_t>(how.number); break;
      case rule::in_register:
        if (static_cast<std::uint64_t>(how.number) < register_count)
          value = from.all[static_cast<std::size_t>(how.number)];
        break;
      case rule::at_expression:
        if (const auto where = evaluate(how.expression, from, cfa)) value = in_.memory().get<std::uint64_t>(*where);
        break;
      case rule::is_expression: value = evaluate(how.expression, from, cfa); break;
    }
    if (!value) return std::nullopt;
    found.regs.all[number] = *value;
  }
  if (is_outermost) return std::nullopt;
  found.regs.pc = found.regs.all[its_common.return_register];
#if defined(__aarch64__)
  found.regs.pc &= (std::uint64_t{1} << 48) - 1;  // without its signature
#endif
  if (found.regs.pc == 0) return std::nullopt;
  return found;
}

// What compilers and hand-written frames use of DWARF expressions.
std::optional<std::uint64_t> unwinder::evaluate(std::span<const std::byte> expression, const registers& regs,
                                                std::optional<std::uint64_t> first) const {
  std::vector<std::uint64_t> stack;
  if (first) stack.push_back(*first);
  reader in{expression};
  const auto pop = [&] {
    if (stack.empty()) return std::uint64_t{0};
    const std::uint64_t value = stack.back();
    stack.pop_back();
    return value;
  };
  while (!in.at_end()) {
    const auto op = in.take<std::uint8_t>();
    if (stack.size() > 64) return std::nullopt;
    if (op >= 0x30 && op <= 0x4f) {
      stack.push_back(op - 0x30u);
    } else if (op >= 0x70 && op <= 0x8f) {
      stack.push_back(regs.all[op - 0x70u] + static_cast<std::uint64_t>(in.signed_leb()));
    } else {
      switch (op) {
        case 0x06: {
          const auto value = in_.memory().get<std::uint64_t>(pop());
          if (!value) return std::nullopt;
          stack.push_back(*value);
          break;
        }
        case 0x08: stack.push_back(in.take<std::uint8_t>()); break;
        case 0x09: stack.push_back(static_cast<std::uint64_t>(std::int64_t{in.take<std::int8_t>()})); break;
        case 0x0a: stack.push_back(in.take<std::uint16_t>()); break;
        case 0x0b: stack.push_back(static_cast<std::uint64_t>(std::int64_t{in.take<std::int16_t>()})); break;
        case 0x0c: stack.push_back(in.take<std::uint32_t>()); break;
        case 0x0d: stack.push_back(static_cast<std::uint64_t>(std::int64_t{in.take<std::int32_t>()})); break;
        case 0x0e:
        case 0x0f: stack.push_back(in.take<std::uint64_t>()); break;
        case 0x10: stack.push_back(in.unsigned_leb()); break;
        case 0x11: stack.push_back(static_cast<std::uint64_t>(in.signed_leb())); break;
        case 0x12: stack.push_back(stack.empty() ? 0 : stack.back()); break;
        case 0x13: pop(); break;
        case 0x1a: stack.push_back(pop() & pop()); break;
        case 0x1c: {
          const auto b = pop();
          stack.push_back(pop() - b);
          break;
        }
        case 0x22: stack.push_back(pop() + pop()); break;
        case 0x23: stack.push_back(pop() + in.unsigned_leb()); break;
        case 0x24: {
          const auto by = pop();
          stack.push_back(by < 64 ? pop() << by : (pop(), 0));
          break;
        }
        case 0x2a: {
          const auto b = static_cast<std::int64_t>(pop());
          stack.push_back(static_cast<std::int64_t>(pop()) >= b);
          break;
        }
        case 0x92: {
          const auto number = in.unsigned_leb();
          if (number >= register_count) return std::nullopt;
          stack.push_back(regs.all[number] + static_cast<std::uint64_t>(in.signed_leb()));
          break;
        }
        default: return std::nullopt;
      }
    }
  }
  if (in.failed() || stack.empty()) return std::nullopt;
  return stack.back();
}

}  // namespace weft_tool
