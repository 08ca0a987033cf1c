# Reads WEFT_VERSION_FROM_HEADER, as in 0.1.0, from include/weft/version.hpp.
set(header ${CMAKE_CURRENT_LIST_DIR}/../include/weft/version.hpp)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${header})
file(STRINGS ${header} lines REGEX "#define WEFT_VERSION_(MAJOR|MINOR|PATCH) [0-9]+")
list(TRANSFORM lines REPLACE ".* ([0-9]+).*" "\\1")
list(JOIN lines "." WEFT_VERSION_FROM_HEADER)
unset(header)
unset(lines)
