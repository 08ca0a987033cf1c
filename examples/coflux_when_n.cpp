// Coflux's fourth example, the first three of five downloads, in weft. The other two are stopped, and have ended when the
// loop begins; in Coflux they run on. They would take hours, so which three are first is sure.
#include <chrono>
#include <cstdio>
#include <ranges>
#include <string>
#include <utility>
#include <vector>
#include <weft/weft.hpp>

namespace w = weft;
using namespace std::chrono_literals;

w::task<std::string> download(std::string name, std::chrono::milliseconds takes) {
  co_await w::sleep_for(takes);
  co_return "fetched$" + name;
}

w::task<> first_three() {
  std::vector<w::task<std::string>> downloads;
  downloads.push_back(download("file 1 (1 h)", 1h));
  downloads.push_back(download("file 2 (10 ms)", 10ms));
  downloads.push_back(download("file 3 (2 h)", 2h));
  downloads.push_back(download("file 4 (50 ms)", 50ms));
  downloads.push_back(download("file 5 (70 ms)", 70ms));

  auto done = co_await (std::move(downloads) | w::when(3));
  auto names =
      done | std::views::transform([](const auto& one) { return one.second.substr(one.second.find('$') + 1); });
  for (const std::string& name : names) std::printf("%s\n", name.c_str());
}

int main() { w::sync_wait(first_three()); }
