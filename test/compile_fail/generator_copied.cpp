// expect[clang]: call to implicitly-deleted copy constructor of '(weft::)?generator<int>'
// expect[gcc]: use of deleted function .*weft::generator<int>::generator
#include <weft/generator.hpp>

weft::generator<int> one() { co_yield 1; }

int main() {
  auto first = one();
  auto second = first;
}
