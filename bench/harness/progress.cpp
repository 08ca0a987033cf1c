#include "progress.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <iostream>

namespace bench {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t bar_width = 24;
constexpr auto without_terminal = 10s;  // between lines in a log

std::string duration_text(double seconds) {
  const long all = std::lround(seconds);
  return all < 60 ? std::to_string(all) + " s" : std::to_string(all / 60) + " min " + std::to_string(all % 60) + " s";
}

std::size_t terminal_width() {
  winsize size{};
  return ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

}  // namespace

progress::progress(std::size_t steps) : steps_{steps}, terminal_{::isatty(STDERR_FILENO) == 1} {}

progress::~progress() { erase_line(); }

void progress::erase_line() const {
  if (terminal_) std::cerr << "\r\033[K" << std::flush;
}

void progress::step(const std::string& what) {
  const auto now = clock::now();
  const double spent = std::chrono::duration<double>(now - start_).count();
  const double done = static_cast<double>(begun_++) / static_cast<double>(std::max<std::size_t>(steps_, 1));
  if (!terminal_ && now - printed_ < without_terminal) return;
  printed_ = now;

  // The first few steps know too little to promise anything.
  const auto left = done > 0.02 ? duration_text(spent / done * (1 - done)) + " left" : std::string{"…"};
  const auto percent = std::to_string(static_cast<int>(100 * done)) + " %";
  if (!terminal_) {
    std::cerr << percent << ", " << left << "  " << what << '\n';
    return;
  }
  std::string bar;
  for (std::size_t i = 0; i != bar_width; ++i)
    bar += static_cast<double>(i) < done * static_cast<double>(bar_width) ? "━" : "─";
  const std::size_t room = terminal_width() - std::min(terminal_width(), bar_width + percent.size() + left.size() + 8);
  erase_line();
  std::cerr << bar << ' ' << percent << "  " << left << "  " << what.substr(0, room) << std::flush;
}

void progress::complain(const std::string& sentence) {
  erase_line();
  std::cerr << "FAILED  " << sentence << '\n';
}

}  // namespace bench
