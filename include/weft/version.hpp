// The version of weft, as numbers that the preprocessor can compare.
#pragma once

// The version's one home: the build system reads these three lines.
#define WEFT_VERSION_MAJOR 0
#define WEFT_VERSION_MINOR 1
#define WEFT_VERSION_PATCH 0

/// One number to compare: 10203 is 1.2.3.
#define WEFT_VERSION (WEFT_VERSION_MAJOR * 10000 + WEFT_VERSION_MINOR * 100 + WEFT_VERSION_PATCH)
