// expect: on_if\(\) takes a case that waits in a line
#include <weft/channel.hpp>
#include <weft/select.hpp>

weft::task<int> work();
auto chooses(bool holds, weft::channel<int>& c) {
  return weft::select(weft::on_if(holds, weft::on(work())), on_receive(c));
}
