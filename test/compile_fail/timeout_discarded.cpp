// expect-warning: timeout does nothing until it is awaited
#include <chrono>
#include <weft/combine.hpp>

weft::task<int> work();
weft::task<> forgets() {
  weft::timeout(std::chrono::seconds{1}, work());
  co_return;
}
