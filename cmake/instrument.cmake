# Debug information takes a fifth of the time of compiling a test. Tests that need it give their programs flags of their own.
option(WEFT_LINES "Have the debug information that the build type asks for, at -g1 line numbers" ON)
if(NOT WEFT_LINES)
  add_compile_options(-g0)
endif()

# Instrumentation applies to everything in the build at once: half a sanitizer reports nonsense.
set(WEFT_SANITIZE "" CACHE STRING "Sanitizers for everything built here, as in address,undefined")
option(WEFT_COVERAGE "Record which lines and branches run (clang only)" OFF)

if(WEFT_SANITIZE)
  add_compile_options(-fsanitize=${WEFT_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  if(CMAKE_CXX_COMPILER_ID STREQUAL Clang AND WEFT_SANITIZE MATCHES address)  # its checks are calls: quicker to compile
    add_compile_options("SHELL:-mllvm -asan-instrumentation-with-call-threshold=0")
  endif()
  add_link_options(-fsanitize=${WEFT_SANITIZE})
  # Three hundred programs with a sanitizer in each: lld links one in 0.4 s, the usual linker in 1.3 s.
  if(CMAKE_CXX_COMPILER_ID STREQUAL Clang)
    string(REGEX REPLACE "\\..*" "" clang_major ${CMAKE_CXX_COMPILER_VERSION})
    find_program(WEFT_LLD NAMES ld.lld-${clang_major})
    if(WEFT_LLD)
      add_link_options(-fuse-ld=lld)
    endif()
  endif()
endif()

option(WEFT_FUZZERS "Count which edges an input takes, in all that the fuzzers call (clang only)" OFF)
if(WEFT_FUZZERS)
  add_compile_options(-fsanitize=fuzzer-no-link)
  add_link_options(-fsanitize=fuzzer-no-link)
endif()

if(WEFT_COVERAGE)
  add_compile_options(-fprofile-instr-generate -fcoverage-mapping -fprofile-continuous)  # keeps the counts of aborts
  add_link_options(-fprofile-instr-generate -fprofile-continuous)
endif()
