// Uses what is compiled into the library as well as what is inline, so that each mixture has a chance to go wrong.
#include <weft/task.hpp>

#include <cstdio>
#include <stdexcept>
#include <string>
#include <weft/version.hpp>

namespace w = weft;

w::task<int> number(int n) { co_return n; }

w::task<int> sum(int n) {
  int total = 0;
  for (int i = 1; i <= n; ++i) total += co_await number(i);
  co_return total;
}

w::task<> fails() {
  throw std::runtime_error{"as planned"};
  co_return;
}

w::task<std::string> catches() {
  try {
    co_await fails();
  } catch (const std::exception& e) {
    co_return e.what();
  }
  co_return "nothing was thrown";
}

int main() {
  if (w::sync_wait(sum(100)) != 5050) return 1;
  if (w::sync_wait(catches()) != "as planned") return 2;
  std::printf("consumer of weft %d: ok\n", WEFT_VERSION);
}
