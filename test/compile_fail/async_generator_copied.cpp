// expect[clang]: call to implicitly-deleted copy constructor of '(weft::)?async_generator<int>'
// expect[gcc]: use of deleted function .*weft::async_generator<int>::async_generator
#include <weft/async_generator.hpp>

weft::async_generator<int> one() { co_yield 1; }

int main() {
  auto first = one();
  auto second = first;
}
