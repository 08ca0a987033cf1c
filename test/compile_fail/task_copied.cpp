// expect[clang]: call to implicitly-deleted copy constructor of '(weft::)?task<int>'
// expect[gcc]: use of deleted function .*weft::task<
#include <weft/task.hpp>

weft::task<int> number() { co_return 1; }

int main() {
  auto t = number();
  auto second = t;
}
