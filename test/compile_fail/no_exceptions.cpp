// SPDX-License-Identifier: BSL-1.0
// flags: -fno-exceptions
// expect: weft needs exceptions
#include <weft/task.hpp>

int main() {}
