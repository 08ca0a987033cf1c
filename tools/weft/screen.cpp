#include "screen.hpp"

#include <poll.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>

#include "memory.hpp"

namespace weft_tool {
namespace {

volatile std::sig_atomic_t is_told_to_end = 0;

termios before;  // of the terminal that is taken over; written before a handler is there to read it

void put(std::string_view text) noexcept {
  while (!text.empty()) {
    const ssize_t written = ::write(STDOUT_FILENO, text.data(), text.size());
    if (written < 0 && errno == EINTR && is_told_to_end == 0) continue;
    if (written <= 0) return;  // nobody looks any more
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

// Also from a handler of signals.
void give_back() noexcept {
  put("\x1b[?25h\x1b[?1049l");
  ::tcsetattr(STDIN_FILENO, TCSANOW, &before);
}

void on(int signal, void (*handler)(int), int flags) noexcept {
  struct sigaction action{};
  action.sa_handler = handler;
  action.sa_flags = flags;
  ::sigaction(signal, &action, nullptr);
}

}  // namespace

screen::screen() {
  if (::isatty(STDIN_FILENO) == 0 || ::isatty(STDOUT_FILENO) == 0 || ::tcgetattr(STDIN_FILENO, &before) != 0)
    throw problem{"top needs a terminal; `weft top PID --once` does not"};
  termios raw = before;
  raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
  raw.c_iflag &= ~static_cast<tcflag_t>(ICRNL | IXON);
  raw.c_cc[VSUSP] = _POSIX_VDISABLE;  // the shell would go on in this picture
  raw.c_cc[VMIN] = 1;
  raw.c_cc[VTIME] = 0;
  for (const int one : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) on(one, [](int) { is_told_to_end = 1; }, 0);
  // It ends by its own fault, as where a file that it reads becomes shorter: but not with the terminal as it is now.
  for (const int one : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT})
    on(
        one,
        [](int which) {
          give_back();
          ::raise(which);
        },
        static_cast<int>(SA_RESETHAND));
  ::tcsetattr(STDIN_FILENO, TCSANOW, &raw);
  put("\x1b[?1049h\x1b[?25l");
}

screen::~screen() { give_back(); }

screen::size screen::now() noexcept {
  winsize is{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &is) != 0 || is.ws_row == 0 || is.ws_col == 0) return {24, 80};
  return {is.ws_row, is.ws_col};
}

bool screen::next_byte(char& into, int milliseconds) {
  pollfd in{STDIN_FILENO, POLLIN, 0};
  return ::poll(&in, 1, milliseconds) > 0 && ::read(STDIN_FILENO, &into, 1) == 1;
}

screen::pressed screen::wait(int milliseconds) {
  if (is_told_to_end != 0) return {key::closed};
  char first;
  pollfd in{STDIN_FILENO, POLLIN, 0};
  const int ready = ::poll(&in, 1, milliseconds);
  if (is_told_to_end != 0) return {key::closed};
  if (ready <= 0) return {};
  if (::read(STDIN_FILENO, &first, 1) != 1) return {key::closed};
  switch (first) {
    case '\r':
    case '\n': return {key::enter};
    case 127:
    case 8: return {key::backspace};
    case 27: break;
    default: return {key::text, first};
  }
  constexpr int rest_comes_within = 50;
  char bracket, code;
  if (!next_byte(bracket, rest_comes_within)) return {key::escape};
  if ((bracket != '[' && bracket != 'O') || !next_byte(code, rest_comes_within)) return {};
  switch (code) {
    case 'A': return {key::up};
    case 'B': return {key::down};
    case '5': next_byte(code, rest_comes_within); return {key::page_up};
    case '6': next_byte(code, rest_comes_within); return {key::page_down};
    default: return {};
  }
}

void screen::show(const std::vector<std::string>& lines, std::size_t marked) {
  const size is = now();
  std::string all = "\x1b[H";
  for (std::size_t i = 0; i != is.rows; ++i) {
    if (i != 0) all += "\r\n";
    if (i == marked) all += "\x1b[7m";
    if (i < lines.size()) all += cut(lines[i], is.columns);
    all += i == marked ? "\x1b[0m\x1b[K" : "\x1b[K";
  }
  put(all);
}

std::string cut(std::string_view text, std::size_t columns) {
  std::string kept;
  std::size_t used = 0;
  for (const char one : text) {
    const auto byte = static_cast<unsigned char>(one);
    const bool begins = (byte & 0xc0) != 0x80;
    if (begins && ++used > columns) break;
    kept += byte < 0x20 || byte == 0x7f ? '?' : one;
  }
  return kept;
}

}  // namespace weft_tool
