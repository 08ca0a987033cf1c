// flags: -DWEFT_CHECK_LIFETIMES=1
// expect-warning[clang]: temporary whose address is used as value of local variable 't' will be destroyed
#include <weft/task.hpp>

weft::task<int> caller() {
  auto t = [n = 1]() -> weft::task<int> { co_return n; }();  // the closure, and n with it, is gone after this line
  co_return co_await std::move(t);
}

int main() {}
