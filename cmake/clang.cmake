# A toolchain file, for the presets that build with clang.
include(${CMAKE_CURRENT_LIST_DIR}/newest_clang.cmake)
set(CMAKE_CXX_COMPILER ${WEFT_CLANG})
