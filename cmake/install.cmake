include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(weft_cmake_dir ${CMAKE_INSTALL_LIBDIR}/cmake/weft)

install(TARGETS weft weft_test EXPORT weft_targets
  FILE_SET HEADERS
  INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(EXPORT weft_targets NAMESPACE weft:: FILE weft-targets.cmake DESTINATION ${weft_cmake_dir})

configure_package_config_file(
  ${CMAKE_CURRENT_LIST_DIR}/weft-config.cmake.in ${PROJECT_BINARY_DIR}/weft-config.cmake
  INSTALL_DESTINATION ${weft_cmake_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/weft-config-version.cmake
  COMPATIBILITY SameMinorVersion)  # below 1.0 each minor version may change names
install(
  FILES ${PROJECT_BINARY_DIR}/weft-config.cmake ${PROJECT_BINARY_DIR}/weft-config-version.cmake
  DESTINATION ${weft_cmake_dir})

# weft.pc finds its prefix from where it lies, so that an install can be moved.
file(RELATIVE_PATH weft_prefix_from_pc
  ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
foreach(pc IN ITEMS weft.pc weft-test.pc)
  configure_file(${CMAKE_CURRENT_LIST_DIR}/${pc}.in ${PROJECT_BINARY_DIR}/${pc} @ONLY)
endforeach()
install(FILES ${PROJECT_BINARY_DIR}/weft.pc ${PROJECT_BINARY_DIR}/weft-test.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
