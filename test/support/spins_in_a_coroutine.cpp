// For under_perf: keeps a processor busy inside of a coroutine that another one has resumed. Compiled with frame pointers.
#include <ctime>
#include <weft/coroutine.hpp>
#include <weft/fiber.hpp>

namespace {

volatile unsigned long turns = 0;

[[gnu::noinline]] void spin() {
  const std::clock_t end = std::clock() + 3 * CLOCKS_PER_SEC / 10;  // of processor time
  while (std::clock() < end)
    for (int i = 0; i != 100'000; ++i) turns = turns + 1;
}

[[gnu::noinline]] void resume_it(weft::coroutine<void()>& which) {
  which.resume();
  asm volatile("");  // not the last call
}

}  // namespace

int main() {
  weft::coroutine<void()> inner{[](auto&) { spin(); }};
  weft::coroutine<void()> outer{[&](auto&) { resume_it(inner); }};
  resume_it(outer);
}
