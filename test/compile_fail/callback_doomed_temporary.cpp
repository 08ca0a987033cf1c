// expect[gcc]: this compiler destroys a lambda that is written inside a co_await expression twice: name it, pass the lvalue
#include <memory>
#include <weft/from_callback.hpp>
#include <weft/future.hpp>

weft::task<int> doomed(std::shared_ptr<int> held) {
  co_return co_await weft::from_callback<int>([held](weft::callback<int> done) { done(*held); });
}
