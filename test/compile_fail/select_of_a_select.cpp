// expect: a select as a case would do one of its own although another one is chosen
#include <weft/channel.hpp>
#include <weft/select.hpp>

auto nests(weft::channel<int>& a, weft::channel<int>& b) {
  return weft::select(weft::on(weft::select(on_receive(a))), on_receive(b));
}
