// expect[clang]: no matching member function for call to 'yield_value'
// expect[gcc]: no matching function for call to .*yield_value
#include <string>
#include <vector>
#include <weft/generator.hpp>

weft::generator<int> numbers(std::vector<std::string>& words) { co_yield weft::elements_of(words); }
