/* No job waits for ever, though fewer may be awake than there are, and those wait. */
#define LIMITED
#include "workers.pml"

ltl holds { [] (jobs != 0 -> <> (jobs == 0)) }
