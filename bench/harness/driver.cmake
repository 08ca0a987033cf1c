# weft-bench, the driver, and what it reads: manifest.json beside it.

include(${CMAKE_CURRENT_LIST_DIR}/driver_sources.cmake)
add_library(bench_driver STATIC ${bench_driver_sources})
target_include_directories(bench_driver PUBLIC harness)
target_compile_features(bench_driver PUBLIC cxx_std_20)
target_link_libraries(bench_driver PUBLIC nlohmann_json::nlohmann_json PRIVATE CLI11::CLI11 weft_warnings)

add_executable(weft-bench harness/weft_bench.cpp)
target_link_libraries(weft-bench PRIVATE bench_driver weft_warnings)
add_dependencies(bench_all weft-bench)
add_dependencies(bench_smoke weft-bench)

set(compiler clang)
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  set(compiler gcc)
endif()
string(TOUPPER "${CMAKE_BUILD_TYPE}" build_type)
string(STRIP "${CMAKE_CXX_FLAGS} ${CMAKE_CXX_FLAGS_${build_type}}" flags)
string(REPLACE "\"" "\\\"" flags "${flags}")
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
