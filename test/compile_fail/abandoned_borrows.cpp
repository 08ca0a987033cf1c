// expect: abandon_on_stop: an argument refers to something of somebody
// A call that may be abandoned outlives its caller, so its arguments are its own.
#include <functional>
#include <weft/blocking.hpp>

void wait_for(int&);

weft::task<> call(int& count) { co_await weft::blocking(weft::abandon_on_stop, wait_for, std::ref(count)); }
