// Awaits two callbacks at once and adds what they report.
#include <cstdio>
#include <functional>
#include <string>
#include <thread>
#include <weft/weft.hpp>

namespace w = weft;

// Stands for some library: measures a word, and calls back from a thread of its own.
void measure(std::string word, std::function<void(int)> done) {
  std::thread{[=] { done(static_cast<int>(word.size())); }}.detach();
}

w::task<int> length_of(std::string word) {
  co_return co_await w::from_callback<int>([&](w::callback<int> done) { measure(word, done); });
}

w::task<> add_up() {
  auto [hello, weft] = co_await w::when_all(length_of("hello"), length_of("weft"));
  std::printf("%d + %d = %d\n", hello, weft, hello + weft);
}

int main() { w::sync_wait(add_up()); }
