// expect[gcc]: this compiler destroys a lambda that is written inside a co_await expression twice: name it, pass the lvalue
#include <memory>
#include <weft/pipe.hpp>

weft::task<int> one();
weft::task<int> doomed(std::shared_ptr<int> held) {
  co_return co_await (one() | weft::on_value([held](int n) { return n + *held; }));
}
