// A terminal: its size, single keys, and a picture that is drawn in one write. By ANSI sequences, which all terminals of
// Linux know.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace weft_tool {

class screen {
 public:
  /// Takes over the terminal, and gives it back at the end, also by a signal. Throws problem where there is none.
  screen();
  screen(const screen&) = delete;
  ~screen();

  struct size {
    std::size_t rows, columns;
  };
  static size now() noexcept;

  enum class key { none, up, down, page_up, page_down, enter, escape, backspace, text, closed };
  struct pressed {
    key what = key::none;
    char letter = 0;
  };
  /// Waits for a key, at most so long.
  pressed wait(int milliseconds);

  /// Shows these lines, cut to the width; the one with this number is marked.
  void show(const std::vector<std::string>& lines, std::size_t marked);

 private:
  bool next_byte(char& into, int milliseconds);
};

/// What fits into so many columns, without control characters.
std::string cut(std::string_view text, std::size_t columns);

}  // namespace weft_tool
