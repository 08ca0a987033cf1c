/* No job waits for ever, whoever sleeps. */
#include "workers.pml"

ltl holds { [] (jobs != 0 -> <> (jobs == 0)) }
