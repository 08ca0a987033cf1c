# weft::module, for `import weft;`, out of the file WEFT_MODULE_SOURCE: a target of the project that includes this, since a module
# is compiled with the flags of those who import it. Where it can't be made, weft_no_module says why.
unset(weft_no_module)
if(CMAKE_VERSION VERSION_LESS 3.28)
  set(weft_no_module "weft::module needs CMake 3.28 or later: this is ${CMAKE_VERSION}")
elseif(NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  set(weft_no_module "weft::module needs clang: this is ${CMAKE_CXX_COMPILER_ID}")
elseif(NOT TARGET weft::module)
  cmake_path(GET WEFT_MODULE_SOURCE PARENT_PATH weft_module_folder)
  add_library(weft_module STATIC)
  add_library(weft::module ALIAS weft_module)
  target_sources(weft_module PUBLIC
    FILE_SET CXX_MODULES BASE_DIRS ${weft_module_folder} FILES ${WEFT_MODULE_SOURCE})
  target_link_libraries(weft_module PUBLIC weft::weft)
  cmake_path(GET weft_module_folder PARENT_PATH weft_module_includes)
  target_include_directories(weft_module SYSTEM PRIVATE ${weft_module_includes})  # the scan would not see its pragma
endif()
