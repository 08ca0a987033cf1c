# weft::http_parser, which a static weft::observe that answers by HTTP is linked with: where the library is found here. It comes
# with no file for CMake or pkg-config. Included by the build of weft, and by each find_package(weft): an install can go to another
# machine.
find_library(WEFT_HTTP_PARSER_LIBRARY http_parser)
mark_as_advanced(WEFT_HTTP_PARSER_LIBRARY)
if(WEFT_HTTP_PARSER_LIBRARY AND NOT TARGET weft::http_parser)
  add_library(weft::http_parser UNKNOWN IMPORTED GLOBAL)  # also for who links weft::observe in another folder
  set_target_properties(weft::http_parser PROPERTIES IMPORTED_LOCATION "${WEFT_HTTP_PARSER_LIBRARY}")
endif()
