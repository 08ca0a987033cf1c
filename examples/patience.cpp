// Asks servers that answer late, or not at all: the first answer, the first two, no longer than, and again after a
// failure. Whatever has lost is stopped, so the program does not wait for the server that sleeps an hour.
#include <chrono>
#include <cstdio>
#include <ranges>
#include <stdexcept>
#include <string>
#include <vector>
#include <weft/weft.hpp>

namespace w = weft;
using namespace std::chrono_literals;

struct server {
  const char* name;
  std::chrono::milliseconds delay;
  int failures = 0;  // before it works
};

w::task<std::string> ask(server& of) {
  co_await w::sleep_for(of.delay);
  if (of.failures-- > 0) throw std::runtime_error{std::string{of.name} + " is busy"};
  co_return "the answer of " + std::string{of.name};
}

w::task<> run() {
  server north{"north", 400ms}, south{"south", 10ms}, west{"west", 150ms}, moon{"the moon", 1h}, shy{"shy", 1ms, 2};

  auto [index, answer] = co_await w::when_any(ask(south), ask(north), ask(moon));
  std::printf("first: %s (%zu)\n", std::visit([](const auto& text) { return text; }, answer).c_str(), index);

  std::vector<server> all{south, moon, west, north};
  for (const auto& [number, text] : co_await (all | std::views::transform(ask) | w::when(2)))
    std::printf("among the first two: %s (%zu)\n", text.c_str(), number);

  try {
    co_await (ask(moon) | w::timeout(3ms));
  } catch (const w::error& late) {
    std::printf("%s\n", late.what());
  }

  auto one_attempt = [&] {
    std::printf("asking shy\n");
    return ask(shy);
  };
  const std::string third = co_await w::retry({.attempts = 5, .delay = 1ms}, one_attempt);
  std::printf("%s\n", third.c_str());
}

int main() { w::sync_wait(run()); }
