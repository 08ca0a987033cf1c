// A planted fault: nobody is answered. A handler reads its configuration from a pipe, by the system's blocking read(), so its
// worker waits for a writer that never comes, and all that is queued behind it waits, too.
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <string>
#include <weft/weft.hpp>

namespace w = weft;
using namespace std::chrono_literals;

std::string read_settings(int from) {
  std::string text(100, '\0');
  const auto size = ::read(from, text.data(), text.size());  // blocks the thread: w::blocking() is for such calls
  text.resize(size > 0 ? static_cast<std::size_t>(size) : 0);
  return text;
}

w::task<> reload_settings(int from) {
  co_await w::sleep_for(20ms);
  std::printf("the settings are %s\n", read_settings(from).c_str());
}

w::task<> answer_requests() {
  for (;;) co_await w::sleep_for(1ms);
}

w::task<> serve() {
  std::array<int, 2> pipe{};
  if (::pipe(pipe.data()) != 0) co_return;
  co_await w::when_all(answer_requests(), reload_settings(pipe[0]));
}

int main() {
  const w::pool workers{{.threads = 1}};
  workers.run(serve());
}
