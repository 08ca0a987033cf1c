// expect: this is awaited once, as an rvalue: co_await std::move\(x\)
#include <weft/combine.hpp>

weft::task<> waits(weft::task<int> one) {
  auto both = weft::when_all(std::move(one));
  co_await both;
}
