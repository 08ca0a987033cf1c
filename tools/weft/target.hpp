// What is looked at: a process that runs, or a core file. Its memory, its threads, and the files that its code is from.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "elf_file.hpp"
#include "memory.hpp"

namespace weft_tool {

/// Registers by their numbers in DWARF, and where the thread was.
struct registers {
  std::array<std::uint64_t, 33> all{};
  std::uint64_t pc = 0;
};

struct thread_seen {
  int id = 0;
  std::string name;
  registers regs;
};

/// A piece of address space.
struct mapping {
  address begin = 0, end = 0, offset = 0;
  bool can_read = true, can_write = false, can_run = false, is_private = true;
  std::string path;  // empty: of no file
};

/// A file that is loaded.
class module {
 public:
  module(std::string path, address begin, address end, const memory& in);

  const std::string& path() const noexcept { return path_; }
  address bias() const noexcept { return bias_; }
  bool covers(address at) const noexcept { return begin_ <= at && at < end_; }
  std::span<const Elf64_Phdr> segments() const noexcept { return segments_; }
  /// The function that has `code` in it, mangled; empty: none that is known.
  std::string_view function_at(address code) const;
  /// The file; not valid where it is gone, or was replaced.
  const elf_file& file() const;

 private:
  struct loaded;

  std::string path_;
  address begin_, end_, bias_ = 0;
  std::vector<Elf64_Phdr> segments_;
  std::string build_id_;
  mutable std::shared_ptr<loaded> file_;
};

class target {
 public:
  target(const target&) = delete;
  virtual ~target() = default;

  virtual const weft_tool::memory& memory() const noexcept = 0;
  /// "process 17", "core file x".
  virtual std::string what() const = 0;

  /// By their addresses.
  const std::vector<mapping>& mappings() const noexcept { return mappings_; }
  const std::vector<module>& modules() const noexcept { return modules_; }
  const std::vector<thread_seen>& threads() const noexcept { return threads_; }
  const module* module_at(address at) const noexcept;
  /// "serve(connection)"; "server+0x1230" where it has no name. Printable.
  std::string name_of(address code) const;

  int pid = 0;
  double stood_ms = 0;           // how long all threads of a process stood
  double processor_ms = 0;       // what of that this program was at, on all processors together
  std::size_t copied_bytes = 0;  // so much was copied meanwhile
  /// So often something that may change was read after the process had gone on.
  virtual std::size_t late_reads() const noexcept { return 0; }
  /// The pages that it was read from.
  virtual std::vector<address> late_pages() const { return {}; }
  /// Whether all that is read of it is of the time at which it is read.
  virtual bool is_running() const noexcept { return false; }

 protected:
  target() = default;
  /// Of `mappings_`.
  void find_modules(const weft_tool::memory& in);

  std::vector<mapping> mappings_;
  std::vector<module> modules_;
  std::vector<thread_seen> threads_;

 private:
  mutable std::map<address, std::string> names_;
};

/// A registers set as the kernel gives it (NT_PRSTATUS).
registers registers_of(std::span<const std::byte> general);

/// Throws problem. Pages of `also` are copied while the process stands, wherever they lie.
std::unique_ptr<target> open_process(int pid, const std::vector<address>& also = {});
/// A process that is not stopped: what is read of it is as it is at that time, and its threads have no registers.
std::unique_ptr<target> open_running(int pid);
std::unique_ptr<target> open_core(const std::string& path);
/// The same of bytes that stay where they are, without looking for files: for tests.
std::unique_ptr<target> open_core_bytes(std::span<const std::byte> bytes);
/// Of a process; nothing where this is no number.
std::optional<int> process_number(const std::string& which);
/// A number is a process, all else a file.
std::unique_ptr<target> open_target(const std::string& which);

}  // namespace weft_tool
