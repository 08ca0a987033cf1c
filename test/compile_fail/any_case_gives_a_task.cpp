// expect: the function of an any_case takes what the case gives, and gives nothing
#include <weft/channel.hpp>
#include <weft/select.hpp>

weft::any_case serves(weft::channel<int>& c) {
  return weft::any_case{on_receive(c), [](std::optional<int>) -> weft::task<> { co_return; }};
}
