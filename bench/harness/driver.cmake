# weft-bench, the driver, and what it reads: manifest.json beside it.

# The page's three files become three string literals.
set(page_sources report/page.html report/page.css report/page.js)
set(page_hpp "// Made from bench/report/ by bench/harness/driver.cmake.\n#pragma once\n#include <string_view>\nnamespace bench {\n")
foreach(source IN LISTS page_sources)
  file(READ ${source} text)
  get_filename_component(name ${source} NAME)
  string(REPLACE "." "_" name ${name})
  string(APPEND page_hpp "inline constexpr std::string_view ${name} = R\"-page-(${text})-page-\";\n")
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${source})
endforeach()
string(APPEND page_hpp "}  // namespace bench\n")
file(GENERATE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/generated/page.hpp CONTENT "${page_hpp}")

# All but main(), for the tests.
add_library(bench_driver STATIC
  harness/catalogue.cpp
  harness/environment.cpp
  harness/html.cpp
  harness/measure.cpp
  harness/process.cpp
  harness/progress.cpp
  harness/published.cpp
  harness/results.cpp
  harness/table.cpp
  ${CMAKE_CURRENT_BINARY_DIR}/generated/page.hpp)
target_include_directories(bench_driver PUBLIC harness PRIVATE ${CMAKE_CURRENT_BINARY_DIR}/generated)
target_compile_features(bench_driver PUBLIC cxx_std_20)
target_link_libraries(bench_driver PUBLIC nlohmann_json::nlohmann_json PRIVATE weft_warnings)

add_executable(weft-bench harness/driver.cpp)
target_link_libraries(weft-bench PRIVATE bench_driver CLI11::CLI11 weft_warnings)
add_dependencies(bench_all weft-bench)

set(compiler clang)
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  set(compiler gcc)
endif()
string(TOUPPER "${CMAKE_BUILD_TYPE}" build_type)
string(STRIP "${CMAKE_CXX_FLAGS} ${CMAKE_CXX_FLAGS_${build_type}}" flags)
set(kind static)
if(BUILD_SHARED_LIBS)
  set(kind shared)
endif()
list(JOIN BENCH_LIBRARIES_JSON ",\n" libraries)
list(JOIN programs ",\n" programs)
file(GENERATE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/manifest.json CONTENT
"{
  \"source\": \"${CMAKE_CURRENT_SOURCE_DIR}\",
  \"compiler\": \"${compiler}\",
  \"build\": {
    \"compiler\": \"${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}\",
    \"flags\": \"${flags}\",
    \"type\": \"${CMAKE_BUILD_TYPE}\",
    \"weft\": \"${PROJECT_VERSION}, ${kind}\"
  },
  \"libraries\": {
${libraries}
  },
  \"programs\": [
${programs}
  ]
}
")
