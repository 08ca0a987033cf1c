// expect: abandon_on_stop: the function may capture nothing
// A call that may be abandoned outlives its caller, so it captures nothing.
#include <weft/blocking.hpp>

weft::task<> call(int& count) {
  const auto counts = [&] { ++count; };
  co_await weft::blocking(weft::abandon_on_stop, counts);
}
