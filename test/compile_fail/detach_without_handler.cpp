// expect: no matching function for call to .*detach
// What detached work throws must go somewhere.
#include <weft/executor.hpp>
#include <weft/scope.hpp>
#include <weft/with.hpp>

void start(weft::executor& ex) {
  weft::detach(ex, [] {});
}
