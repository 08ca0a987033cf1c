// fork_default: a fork of an empty task is made, awaited and ended, with each library's own memory for it.
#pragma once

#include "../harness/harness.hpp"
