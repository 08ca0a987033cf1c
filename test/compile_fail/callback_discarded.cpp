// expect-warning: from_callback does nothing until it is awaited
#include <weft/from_callback.hpp>
#include <weft/future.hpp>

weft::task<> forgets() {
  weft::from_callback<int>([](weft::callback<int> done) { done(1); });
  co_return;
}
