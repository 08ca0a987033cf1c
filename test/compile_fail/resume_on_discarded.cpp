// expect-warning: a task hops when it awaits this
#include <weft/combine.hpp>

weft::task<> stays(weft::executor& ex) {
  weft::resume_on(ex);
  co_return;
}
