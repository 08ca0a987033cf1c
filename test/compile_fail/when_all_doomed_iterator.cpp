// expect[gcc]: this compiler may destroy an iterator, or a function, that is written inside a co_await expression twice: name it, pass the lvalue
#include <memory>
#include <vector>
#include <weft/combine.hpp>

struct appends {
  using difference_type = std::ptrdiff_t;
  std::shared_ptr<std::vector<int>> to;
  appends& operator*() { return *this; }
  appends& operator++() { return *this; }
  appends operator++(int) { return *this; }
  appends& operator=(int value) {
    to->push_back(value);
    return *this;
  }
};
weft::task<> doomed(std::vector<weft::task<int>> all, std::shared_ptr<std::vector<int>> to) {
  co_await when_all(std::move(all), appends{to});
}
