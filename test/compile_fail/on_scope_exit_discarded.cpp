// expect-warning: a cleanup is registered by co_await on_scope_exit
#include <weft/on_scope_exit.hpp>
#include <weft/task.hpp>

weft::task<> cleanup();
weft::task<> forgets() {
  weft::on_scope_exit(cleanup());
  co_return;
}
