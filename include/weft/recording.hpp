// Reads the files of the flight recorder, and converts them for Perfetto and Chrome.
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
// A reader skips sections, and events, of kinds that it does not know. A change of what is described here gets a new version.
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

/// The contents of a file of the flight recorder.
class recording {
 public:
  struct event : recorded_event {
    std::uint32_t thread;      ///< the kernel's id
    std::uint32_t ring;        ///< the ring's number; a ring is reused after its thread has ended
    std::uint64_t in_ring;     ///< the event's number in its ring, from 0
    std::int64_t nanoseconds;  ///< since the program began
  };
  enum class reason : std::uint32_t { asked_for, crash, deadlock };

  /// Reads a file, or a file's contents.
  ///
  /// Fails  throws weft::error: the system's, or std::errc::illegal_byte_sequence if it is no such file, has another version,
  ///        or gives a part a size that exceeds the file.
  /// Cost   all is copied to memory. Blocks while it reads.
  static recording read(const char* path);
  static recording parse(std::span<const std::byte> file);

  recording(recording&&) noexcept;
  recording& operator=(recording&&) noexcept;
  ~recording();

  /// All events, the oldest first. Those of one thread with equal times are in the order in which they were recorded.
  std::span<const event> events() const noexcept;

  /// Whether the file was written to its end: false if the process was ended by its crash, or the disk was full, before that.
  bool is_whole() const noexcept;
  reason why() const noexcept;
  /// The signal of a crash; else 0.
  int signal() const noexcept;
  std::uint64_t process() const noexcept;

  /// The text that an event refers to by this address; empty: there is none.
  std::string_view text(std::uint64_t address) const noexcept;
  /// The name of the function at this address; `module+0xoffset` if it is not known.
  std::string function(std::uint64_t address) const;
  std::string_view thread_name(std::uint32_t thread) const noexcept;

  /// Writes JSON for Chrome's trace viewer and for Perfetto: a track for each thread, one for each traced request (several
  /// where its parts ran at the same time), and an arrow from each wake-up to the turn that it caused.
  void write_chrome_trace(std::ostream& out) const;

 private:
  struct contents;
  explicit recording(std::unique_ptr<contents> all) noexcept;
  std::unique_ptr<contents> all_;
};

}  // namespace weft
