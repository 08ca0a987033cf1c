add_library(weft_warnings INTERFACE)
target_compile_options(weft_warnings INTERFACE
  -Wall -Wextra -Wpedantic
  $<$<BOOL:${WEFT_WERROR}>:-Werror>)
