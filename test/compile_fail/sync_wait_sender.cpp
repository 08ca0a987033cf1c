// expect: a sender is no awaitable: pass weft::from_sender\(s\)
// at-most: 10 lines
#include <weft/weft.hpp>

struct sender {
  using sender_concept = void;
};

int main() { weft::sync_wait(sender{}); }
