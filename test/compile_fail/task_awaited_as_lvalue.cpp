// at-most: 10 lines
// expect: a task is awaited once, as an rvalue: co_await std::move\(t\)
#include <weft/task.hpp>

weft::task<int> number() { co_return 1; }

weft::task<int> caller() {
  auto t = number();
  co_return co_await t;
}

int main() {}
