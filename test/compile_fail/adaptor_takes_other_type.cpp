// expect: on_value\(f\): f takes the value
#include <string>
#include <weft/pipe.hpp>

weft::task<int> one();
weft::task<> asks() {
  co_await (one() | weft::on_value([](std::string text) { return text; }));
}
