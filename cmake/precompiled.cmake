# weft_precompiled(target header...): has the headers compiled once for all targets that are compiled alike, by the first of
# them.
function(weft_precompiled target)
  get_target_property(options ${target} COMPILE_OPTIONS)
  string(MAKE_C_IDENTIFIER "weft_headers_of ${options} ${ARGN}" alike)
  get_property(owner GLOBAL PROPERTY ${alike})
  if(owner)
    target_precompile_headers(${target} REUSE_FROM ${owner})
  else()
    target_precompile_headers(${target} PRIVATE ${ARGN})
    set_property(GLOBAL PROPERTY ${alike} ${target})
  endif()
  # g++ takes what is in an anonymous namespace for exported where headers are precompiled, or it lies in a template.
  target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
endfunction()
