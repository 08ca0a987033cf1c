# Sets WEFT_CLANG to the newest clang on this machine. weft wants 22, where frames of awaited tasks can live in their
# callers' (coro_await_elidable); older ones build the same programs, only slower.
find_program(WEFT_CLANG
  NAMES clang++-25 clang++-24 clang++-23 clang++-22 clang++-21 clang++-20 clang++-19 clang++
  DOC "The newest clang++")
