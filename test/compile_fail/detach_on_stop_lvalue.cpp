// expect: detach_on_stop: the operation may outlive who awaits it, so it is given away
#include <weft/combine.hpp>
#include <weft/shared_task.hpp>

weft::task<> dangles(weft::shared_task<int>& operation) { co_await weft::detach_on_stop(operation); }
