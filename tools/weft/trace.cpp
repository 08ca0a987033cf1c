#include "trace.hpp"

#include <elf.h>

#include <cerrno>
#include <cstddef>
#include <exception>
#include <filesystem>
#include <fstream>
#include <memory>
#include <new>
#include <ostream>
#include <string_view>
#include <system_error>
#include <vector>
#include <weft/recording.hpp>

#include "commands.hpp"
#include "recording_of.hpp"
#include "target.hpp"

namespace weft_tool {
namespace {

constexpr std::string_view usage =
    "usage: weft trace PID|CORE|FILE [--recording] [--output OUT]\n"
    "\n"
    "  PID          a number: that process, which is not stopped and need not have prepared for it\n"
    "  CORE         a file that begins as an ELF file does: a core file\n"
    "  FILE         any other file: what save_recording() has written, or a crash (./17 for one that is called 17)\n"
    "  --recording  of a process or a core file: writes no JSON, but what save_recording() would have written\n"
    "  --output     where it goes, in place of the standard output\n"
    "\n"
    "Open the JSON in https://ui.perfetto.dev or about:tracing.\n";

struct request {
  std::string which, output;
  bool as_recording = false, help = false;
};

request understand(std::span<const std::string> arguments) {
  request asked;
  for (std::size_t i = 0; i != arguments.size(); ++i) {
    const std::string& one = arguments[i];
    if (one == "--help") {
      asked.help = true;
    } else if (one == "--recording") {
      asked.as_recording = true;
    } else if (one == "--output") {
      if (++i == arguments.size() || arguments[i].empty()) throw wrong_usage{"--output to which file?"};
      asked.output = arguments[i];
    } else if (one.starts_with("--")) {
      throw wrong_usage{"there is no option " + one};
    } else if (asked.which.empty()) {
      asked.which = one;
    } else {
      throw wrong_usage{"one process or file at a time"};
    }
  }
  if (asked.which.empty() && !asked.help) throw wrong_usage{"which process or file?"};
  return asked;
}

// Of a pipe nothing may be taken before it is read as a recording, and it can be nothing else.
bool begins_as_elf(const std::string& path) {
  std::error_code unknown;
  if (!std::filesystem::is_regular_file(path, unknown)) return false;
  char magic[SELFMAG]{};
  std::ifstream{path, std::ios::binary}.read(magic, sizeof magic);
  return std::string_view{magic, sizeof magic} == std::string_view{ELFMAG, SELFMAG};
}

std::unique_ptr<target> target_of(const std::string& which) {
  if (const auto pid = process_number(which)) return open_running(*pid);
  return begins_as_elf(which) ? open_core(which) : nullptr;
}

// `to` gives where the output goes, once there is some: a file that was asked for stays as it is where there is none.
template <class Output>
void write(const request& asked, Output to, std::ostream& err) {
  const auto note = [&](std::string_view what) { err << "weft trace: " << what << '\n'; };
  if (const auto from = target_of(asked.which)) {
    const recorded seen = recording_of(*from);
    if (!seen.is_complete) note(from->what() + ": some of what it has recorded could not be read");
    if (asked.as_recording) {
      to().write(reinterpret_cast<const char*>(seen.file.data()), static_cast<std::streamsize>(seen.file.size()));
      return;
    }
    const weft::recording all = weft::recording::parse(seen.file);
    if (all.events().empty()) note(from->what() + ": no thread has recorded anything yet");
    return all.write_chrome_trace(to());
  }
  if (asked.as_recording) throw wrong_usage{asked.which + " is a recording, or nothing that has one"};
  const weft::recording all = weft::recording::read(asked.which.c_str());
  if (!all.is_whole()) note(printable(asked.which) + " was not written to its end");
  all.write_chrome_trace(to());
}

}  // namespace

int trace(std::span<const std::string> arguments, std::ostream& out, std::ostream& err) {
  try {
    const request asked = understand(arguments);
    if (asked.help) {
      out << usage;
      return 0;
    }
    std::ofstream file;
    const auto to = [&]() -> std::ostream& {
      if (asked.output.empty()) return out;
      file.open(asked.output, std::ios::binary);
      if (!file) throw problem{asked.output + ": cannot be written: " + std::generic_category().message(errno)};
      return file;
    };
    write(asked, to, err);
    std::ostream& written = asked.output.empty() ? out : file;
    written.flush();
    if (!written) throw problem{"the output could not be written"};
    return 0;
  } catch (const wrong_usage& wrong) {
    err << "weft trace: " << wrong.what() << "\n\n" << usage;
    return 2;
  } catch (const std::bad_alloc&) {
    err << "weft trace: out of memory\n";
  } catch (const std::exception& refused) {
    err << "weft trace: " << printable(refused.what()) << '\n';
  }
  return 1;
}

}  // namespace weft_tool
