// expect: when_any of nothing would never end
#include <weft/combine.hpp>

weft::task<> waits() { co_await weft::when_any(); }
