# weft-trace FILE: what Perfetto shows of a file of the flight recorder.
add_executable(weft_trace tools/weft/trace.cpp tools/weft/trace_main.cpp)
target_link_libraries(weft_trace PRIVATE weft::weft weft_warnings)
set_target_properties(weft_trace PROPERTIES OUTPUT_NAME weft-trace)
