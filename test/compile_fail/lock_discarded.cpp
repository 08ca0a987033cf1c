// expect-warning: nothing happens until it is awaited
// expect-warning: the mutex is given back where this ends
#include <weft/sync.hpp>

void locks(weft::mutex& one) {
  one.lock();
  one.try_lock();
}
