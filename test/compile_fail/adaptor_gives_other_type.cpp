// expect: on_error\(g\): what g gives takes the place of the value, and must convert to its type
#include <weft/pipe.hpp>

weft::task<int> one();
weft::task<> asks() {
  co_await (one() | weft::on_error([](std::exception_ptr) { return "text"; }));
}
