// expect-warning: nothing happens until it is awaited
#include <weft/channel.hpp>

void sends(weft::sender<int>& numbers) { numbers.send(1); }
