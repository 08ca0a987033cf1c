# compile: what including a library costs. For each public header of weft, and for the headers that a peer's user
# includes for tasks, a file that includes them and nothing else. The driver runs the compiler on it and takes time and
# memory from outside; nothing here is built.

# bench_compile(<library> <variant> <header>…)
function(bench_compile library variant)
  string(MAKE_C_IDENTIFIER "${library}_${variant}" stem)
  list(TRANSFORM ARGN REPLACE "(.+)" "#include <\\1>" OUTPUT_VARIABLE includes)
  list(JOIN includes "\n" includes)
  set(source ${CMAKE_CURRENT_BINARY_DIR}/compile/${stem}.cpp)
  file(CONFIGURE OUTPUT ${source} CONTENT "${includes}\n" @ONLY)

  # Never built: it only tells the flags.
  set(target bench_compile_${stem})
  add_library(${target} OBJECT EXCLUDE_FROM_ALL ${source})
  target_link_libraries(${target} PRIVATE bench::${library} bench_flags)
  set(directories "$<TARGET_PROPERTY:${target},INCLUDE_DIRECTORIES>")
  set(definitions "$<TARGET_PROPERTY:${target},COMPILE_DEFINITIONS>")
  string(CONCAT command
    "\"${CMAKE_CXX_COMPILER}\", \"-std=c++20\", \"-O2\", \"-w\", "
    "$<$<BOOL:${directories}>:\"-I$<JOIN:${directories},\"$<COMMA> \"-I>\"$<COMMA> >"
    "$<$<BOOL:${definitions}>:\"-D$<JOIN:${definitions},\"$<COMMA> \"-D>\"$<COMMA> >"
    "\"-c\", \"${source}\", \"-o\", \"/dev/null\"")
  set(when "")
  if(NOT variant MATCHES "^(|task.hpp|weft.hpp)$")
    set(when "\"smoke\": false, ")
  endif()
  list(APPEND programs
    "    {\"workload\": \"compile\", \"library\": \"${library}\", \"variant\": \"${variant}\", ${when}\"command\": [${command}]}")
  set(programs "${programs}" PARENT_SCOPE)
endfunction()

# task.hpp comes first: it is what the others are set against.
file(GLOB weft_public CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/include/weft/*.hpp)
list(FILTER weft_public EXCLUDE REGEX "/version\\.hpp$")
if("weft/task.hpp" IN_LIST weft_public)
  list(REMOVE_ITEM weft_public weft/task.hpp)
  list(PREPEND weft_public weft/task.hpp)
endif()
foreach(header IN LISTS weft_public)
  get_filename_component(name ${header} NAME)
  bench_compile(weft ${name} ${header})
endforeach()

foreach(id IN LISTS BENCH_PEERS)
  if(TARGET bench::${id})
    bench_compile(${id} "" ${BENCH_${id}_HEADERS})
  endif()
endforeach()
