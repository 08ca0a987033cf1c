// expect: a future is awaited once, as an rvalue: co_await std::move\(f\)
#include <weft/future.hpp>

weft::task<> keeps(weft::future<int> answer) { co_await answer; }
