// Coflux's second example, coroutines and callbacks mixed, in weft: an adaptor is a stage, and what it gives is the value.
// A failure that on_error has dealt with is gone; nobody awaits it a second time.
#include <chrono>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <weft/weft.hpp>

namespace w = weft;
using namespace std::chrono_literals;

w::task<std::string> fetch(std::string what) {
  co_await w::sleep_for(1ms);
  if (what.empty()) throw std::runtime_error{"fetch failed"};
  co_return "fetched " + what;
}

w::task<> mix() {
  auto report = [](std::string text) {
    std::printf("[on_value] %s\n", text.c_str());
    return text;
  };
  auto instead = [](const std::runtime_error& failure) {
    std::printf("[on_error] %s\n", failure.what());
    return std::string{"nothing"};
  };
  const std::string good = co_await (fetch("data") | w::on_value(report) | w::on_error(instead));
  std::printf("got: %s\n", good.c_str());
  const std::string bad = co_await (fetch("") | w::on_value(report) | w::on_error(instead));
  std::printf("got: %s\n", bad.c_str());
}

int main() {
  w::pool workers{{.threads = 2}};
  w::sync_wait(w::start_on(workers, mix()));
}
