// A file of the flight recorder, read.
//
// The format, version 1. All numbers are little endian. A header of 128 bytes:
//
//   0    8  "weftrec\0"
//   8    4  version: 1          12   4  bytes of this header: 128
//   16   4  bytes of an event: 32
//   20   4  why it was written: 0 asked for, 1 a crash, 2 a deadlock
//   24   8  process             32   8  signal of a crash; else 0
//   40   8  address that a crash is about
//   48  24  a tick, and the same moment in nanoseconds of CLOCK_MONOTONIC and of CLOCK_REALTIME, as the program began
//   72  24  the same as the file was written
//   96  32  0
//
// Then sections, each with 4 bytes kind, 4 bytes 0, 8 bytes size of what follows:
//
//   1  events   4 bytes thread, 4 bytes number of its ring, 8 bytes number of the first event; then events, each as
//               recorded_event: 8 when, 2 kind, 2 flags, 4 number, 8 first, 8 second
//   2  text     8 bytes address, by which events name it; then the text
//   3  maps     a part of /proc/self/maps: which file an address of code belongs to
//   4  name     8 bytes address of code; then the function's name. Not in the file of a crash
//   5  thread   4 bytes number, 4 bytes 0; then its name
//   9  end      empty: the file is whole
//
// A reader passes over sections, and events, of kinds that it does not know. A new version changes what is here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <weft/detail/base/config.hpp>
#include <weft/recorded_event.hpp>

namespace weft {

/// What was in a file of the flight recorder.
class recording {
 public:
  struct event : recorded_event {
    std::uint32_t thread;      ///< the kernel's number
    std::uint32_t ring;        ///< threads that have ended leave their ring to others
    std::uint64_t in_ring;     ///< its number there, from 0
    std::int64_t nanoseconds;  ///< since the program began
  };
  enum class reason : std::uint32_t { asked_for, crash, deadlock };

  /// Fails  throws error: of the system, or std::errc::illegal_byte_sequence where it is no such file, is of another version, or
  ///        says of something that it is longer than the file.
  static recording read(const char* path);
  static recording parse(std::span<const std::byte> file);

  recording(recording&&) noexcept;
  recording& operator=(recording&&) noexcept;
  ~recording();

  /// The oldest first. Those of one thread at one time are in the order in which they were recorded.
  std::span<const event> events() const noexcept;

  /// Whether all was written: false where a crash has ended the process, or filled the disk, half-way.
  bool is_whole() const noexcept;
  reason why() const noexcept;
  /// The signal of a crash; else 0.
  int signal() const noexcept;
  std::uint64_t process() const noexcept;

  /// The text that an event names by this address; empty: it was none.
  std::string_view text(std::uint64_t address) const noexcept;
  /// The function at this address; `module+0xoffset` where its name is not known.
  std::string function(std::uint64_t address) const;
  std::string_view thread_name(std::uint32_t thread) const noexcept;

  /// Writes the JSON of Chrome's trace viewer and of Perfetto: a track for each thread, one for each traced request (several
  /// where its parts ran at the same time), and an arrow from each wake-up to the turn that it led to.
  void write_chrome_trace(std::ostream& out) const;

 private:
  struct contents;
  explicit recording(std::unique_ptr<contents> all) noexcept;
  std::unique_ptr<contents> all_;
};

}  // namespace weft
