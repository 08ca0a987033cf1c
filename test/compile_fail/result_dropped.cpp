// expect-warning[clang]: ignoring return value of type .*result<int>
#include <weft/task.hpp>

weft::task<int> number() { co_return 1; }

weft::task<> caller() { co_await weft::as_result(number()); }

int main() {}
