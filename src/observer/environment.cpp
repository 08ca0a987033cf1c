#include "observer/environment.hpp"

#include <signal.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <utility>
#include <weft/recorder.hpp>

#include "core/worker.hpp"

// A linker takes from a static library only what something refers to. The library's users refer to this symbol, by a linker
// option that comes with the target and with weft-observe.pc.
extern "C" const char weft_observe_is_linked = 1;

namespace weft::detail {
namespace {

int signal_called(std::string_view name) noexcept {
  constexpr std::array<std::pair<std::string_view, int>, 8> known{{{"USR1", SIGUSR1},
                                                                   {"USR2", SIGUSR2},
                                                                   {"QUIT", SIGQUIT},
                                                                   {"HUP", SIGHUP},
                                                                   {"WINCH", SIGWINCH},
                                                                   {"URG", SIGURG},
                                                                   {"IO", SIGIO},
                                                                   {"PWR", SIGPWR}}};
  if (name.substr(0, 3) == "SIG") name.remove_prefix(3);
  for (const auto& [each, number] : known)
    if (name == each) return number;
  return 0;
}

// Parses "50ms" or "2s"; 0: it is neither.
std::chrono::milliseconds duration_of(std::string_view text) noexcept {
  unsigned count = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), count);
  const std::string_view unit{read.ptr, static_cast<std::size_t>(text.data() + text.size() - read.ptr)};
  if (read.ec != std::errc{} || count > 3'600'000) return {};
  if (unit == "ms") return std::chrono::milliseconds{count};
  return unit == "s" && count <= 3600 ? std::chrono::milliseconds{count * 1000} : std::chrono::milliseconds{0};
}

// Takes one word. Gives what is wrong with it; empty: nothing.
std::string take_word(asked_observer& to, std::string_view name, std::string_view value, bool has_value) {
  const auto path = [&](std::string& as) -> std::string {
    if (value.empty() || value.front() != '/') return "needs an absolute path";
    as = value;
    return {};
  };
  if (name == "socket" && !has_value) return (to.options.socket = true, std::string{});
  if (name == "http") {
    to.options.http = true;
    if (!has_value) return {};
    const auto read = std::from_chars(value.data(), value.data() + value.size(), to.options.http_port);
    const bool is_port = read.ec == std::errc{} && read.ptr == value.data() + value.size();
    return is_port ? "" : "needs a port, from 0 to 65535";
  }
  if (name == "dir") return path(to.directory);
  if (name == "token_file") return path(to.token_file);
  if (name == "dump_to") return path(to.dump_file);
  if (name == "trace") return path(to.trace_file);
  if (name == "stall") {
    to.options.stall_after = duration_of(value);
    return to.options.stall_after.count() > 0 ? "" : "needs a time, from 1ms to 3600s";
  }
  if (name == "samples") {
    const auto read = std::from_chars(value.data(), value.data() + value.size(), to.options.samples_a_second);
    const bool is_rate = read.ec == std::errc{} && read.ptr == value.data() + value.size();
    return is_rate && to.options.samples_a_second - 1 < 1000 ? "" : "needs a number a second, from 1 to 1000";
  }
  if (name == "dump") {
    to.options.dump_signal = signal_called(value);
    return to.options.dump_signal != 0
               ? ""
               : "needs one of SIGUSR1, SIGUSR2, SIGQUIT, SIGHUP, SIGWINCH, SIGURG, SIGIO, SIGPWR";
  }
  if (name == "deadlocks") {
    to.options.deadlocks = value == "on";
    return value == "on" || value == "off" ? "" : "is on or off";
  }
  return "is not known";
}

void say(const std::string& what) noexcept {
  const std::string line = "weft: WEFT_OBSERVE: " + what + '\n';
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, line.data(), line.size());
}

asked_observer& asked() {
  static auto* const one = new asked_observer;  // never freed: the observer reads it
  return *one;
}

constinit observer* made = nullptr;

// Runs before the destruction of statics that were made before the first use of weft.
void end_observer() noexcept { delete std::exchange(made, nullptr); }

void begin_observer() noexcept {
  static constinit std::atomic<bool> begun{false};
  if (begun.exchange(true, std::memory_order_relaxed)) return;  // relaxed: the second caller reads nothing
  try {
    if (!asked().trace_file.empty()) {
      save_recording_on_crash(asked().trace_file.c_str());
      save_recording_on_deadlock(asked().trace_file.c_str());
    }
    made = new observer{asked().complete()};
    std::atexit(end_observer);
    if (made->http_port() != 0)
      say("http://127.0.0.1:" + std::to_string(made->http_port()) + "/ answers; the token is in " +
          std::string{made->token_path()});
  } catch (const std::exception& failure) {
    say(std::string{failure.what()} + "; the process is not observed");
  }
}

// Runs before main(), while there is one thread: so at_first_use is set before any thread of weft reads it.
[[gnu::constructor]] void read_environment() noexcept {
  const char* const text = ::secure_getenv("WEFT_OBSERVE");
  if (text == nullptr || *text == '\0') return;
  asked() = parse_observe(text);
  if (!asked().error.empty()) return say(asked().error + "; the process is not observed");
  at_first_use = begin_observer;
}

}  // namespace

asked_observer parse_observe(std::string_view text) {
  asked_observer found;
  found.options.socket = false;
  while (!text.empty() && found.error.empty()) {
    const std::size_t end = text.find(',');
    const std::string_view word = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (word.empty()) continue;
    const std::size_t equals = word.find('=');
    const bool has_value = equals != std::string_view::npos;
    const std::string wrong =
        take_word(found, word.substr(0, equals), has_value ? word.substr(equals + 1) : std::string_view{}, has_value);
    if (!wrong.empty()) found.error = std::string{word} + " " + wrong;
  }
  if (!found.error.empty()) return found;
  // A word that has no effect without another one: that was forgotten.
  if (!found.dump_file.empty() && found.options.dump_signal == 0) found.error = "dump_to needs dump, with a signal";
  if (!found.token_file.empty() && !found.options.http) found.error = "token_file needs http";
  if (!found.directory.empty() && !found.options.socket && !found.options.http)
    found.error = "dir needs socket or http";
  return found;
}

}  // namespace weft::detail
