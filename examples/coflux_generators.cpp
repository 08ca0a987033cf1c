// Coflux's seventh example, generators that loop and that call themselves, in weft: elements_of yields all that another one
// yields. (The sixth, channels, comes with channels.)
#include <cstdio>
#include <ranges>
#include <weft/generator.hpp>

namespace w = weft;

w::generator<int> fibonacci(int n) {
  int a = 0, b = 1;
  for (int i = 0; i < n; ++i) {
    co_yield a;
    const int next = a + b;
    a = b;
    b = next;
  }
}

w::generator<int> countdown(int n) {
  if (n == 0) co_return;
  co_yield w::elements_of(fibonacci(n));
  co_yield w::elements_of(countdown(n - 1));
}

int main() {
  auto even_squares = fibonacci(15) | std::views::filter([](int n) { return n % 2 == 0; }) | std::views::take(5) |
                      std::views::transform([](int n) { return n * n; });
  for (const int value : even_squares) std::printf("%d ", value);
  std::printf("\n");
  for (const int value : countdown(5)) std::printf("%d ", value);
  std::printf("\n");
}
