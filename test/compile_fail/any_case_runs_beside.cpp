// expect: what runs beside its select is no any_case: fork it
#include <weft/channel.hpp>
#include <weft/select.hpp>

weft::any_case runs(weft::task<int> work) { return weft::any_case{weft::on(std::move(work))}; }
