// flags: -DWEFT_CHECK_LIFETIMES=1
// expect-warning[clang]: temporary whose address is used as value of local variable 't' will be destroyed
#include <string>
#include <weft/task.hpp>

weft::task<std::size_t> size(const std::string& text) { co_return text.size(); }

weft::task<std::size_t> caller() {
  auto t = size("a temporary that is gone at the end of the line");
  co_return co_await std::move(t);
}

int main() {}
