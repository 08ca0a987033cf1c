// expect: the value of a temporary shared_task or fork_view is copied
#include <memory>
#include <weft/shared_task.hpp>
#include <weft/task.hpp>

weft::shared_task<std::unique_ptr<int>> make();

int use() { return *weft::sync_wait(make()); }
