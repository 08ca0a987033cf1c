// A parser as a generator: the tokenizer yields what it has found and goes on where it was, so it needs no state machine; the
// parser pulls one token after the other. Nothing is copied, and no list of tokens is made.
#include <cctype>
#include <cstdio>
#include <stdexcept>
#include <string_view>
#include <weft/weft.hpp>

namespace w = weft;

w::generator<std::string_view> tokens(std::string_view text) {
  while (!text.empty()) {
    std::size_t size = 1;
    if (std::isdigit(static_cast<unsigned char>(text[0])) != 0)
      while (size != text.size() && std::isdigit(static_cast<unsigned char>(text[size])) != 0) ++size;
    if (text[0] != ' ') co_yield text.substr(0, size);
    text.remove_prefix(size);
  }
}

class parser {
 public:
  explicit parser(std::string_view text) : all_{tokens(text)}, at_{all_.begin()} {}

  long sum() {  // product {"+" product}
    long value = product();
    while (accepts("+")) value += product();
    return value;
  }
  bool at_end() { return at_ == all_.end(); }

 private:
  long product() {  // factor {"*" factor}
    long value = factor();
    while (accepts("*")) value *= factor();
    return value;
  }
  long factor() {  // number | "(" sum ")"
    if (accepts("(")) {
      const long value = sum();
      if (!accepts(")")) throw std::runtime_error{"a ) is missing"};
      return value;
    }
    long value = 0;
    if (at_end()) throw std::runtime_error{"a number is missing"};
    for (const char digit : *at_) {
      if (digit < '0' || digit > '9') throw std::runtime_error{"this is no number"};
      value = value * 10 + (digit - '0');
    }
    ++at_;
    return value;
  }
  bool accepts(std::string_view what) {
    if (at_end() || *at_ != what) return false;
    ++at_;
    return true;
  }

  w::generator<std::string_view> all_;
  decltype(all_.begin()) at_;
};

int main() {
  parser of{"2 * (3 + 14) + 8"};
  const long value = of.sum();
  std::printf("%ld%s\n", value, of.at_end() ? "" : ", and more");
}
