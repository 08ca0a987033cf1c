# The driver but for its main(): for weft-bench, and for its test, which is built without the bench.
set(bench_driver_sources catalogue driver environment html measure process progress published results selection
  table)
list(TRANSFORM bench_driver_sources REPLACE "(.+)" "${CMAKE_CURRENT_LIST_DIR}/\\1.cpp")
