/* A pool that is told to end does, once, when no job is left, and all its workers with it. */
#define CLOSES
#include "workers.pml"

ltl holds { (<> (gone == WORKERS)) && [] (ended -> jobs == 0 && ends == 1) }
