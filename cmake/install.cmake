include(CMakePackageConfigHelpers)

set(weft_cmake_dir ${CMAKE_INSTALL_LIBDIR}/cmake/weft)

set(weft_installed weft weft_test weft_hook weft_observe)
set(weft_pcs weft.pc weft-test.pc weft-hook.pc weft-observe.pc)
if(BUILD_SHARED_LIBS)
  set(weft_observe_libs "-Wl,--push-state,--no-as-needed -lweft_observe -Wl,--pop-state")
else()
  set(weft_observe_libs "-Wl,--undefined=weft_observe_is_linked -lweft_observe")
  if(WEFT_OBSERVE_HTTP)
    string(APPEND weft_observe_libs " -lhttp_parser")
  endif()
endif()
if(WEFT_TLS)
  list(APPEND weft_installed weft_tls)
  list(APPEND weft_pcs weft-tls.pc)
  set(weft_tls_requires "weft = ${PROJECT_VERSION}")
  if(NOT BUILD_SHARED_LIBS)
    string(APPEND weft_tls_requires ", libssl >= 3.0, libcrypto >= 3.0")
  endif()
endif()
install(TARGETS ${weft_installed} EXPORT weft_targets
  FILE_SET HEADERS
  FILE_SET adapters
  INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(EXPORT weft_targets NAMESPACE weft:: FILE weft-targets.cmake DESTINATION ${weft_cmake_dir})

if(WEFT_BUILD_TOOLS)
  install(TARGETS weft_tool RUNTIME)
  install(FILES ${PROJECT_SOURCE_DIR}/tools/gdb/weft.py DESTINATION ${CMAKE_INSTALL_DATADIR}/weft/gdb)
  install(PROGRAMS ${PROJECT_SOURCE_DIR}/tools/weft.bt DESTINATION ${CMAKE_INSTALL_DATADIR}/weft)
endif()

# What weft-config.cmake looks for: of a static weft only. pkg_check_modules made the targets of these names.
set(weft_has_tls FALSE)
set(weft_static_tls FALSE)
set(weft_static_http FALSE)
set(weft_static_modules)
if(WEFT_TLS)
  set(weft_has_tls TRUE)
endif()
if(NOT BUILD_SHARED_LIBS)
  list(JOIN weft_packages " " weft_static_modules)
  set(weft_static_tls ${weft_has_tls})
  if(WEFT_OBSERVE_HTTP)
    set(weft_static_http TRUE)
  endif()
endif()
configure_package_config_file(
  ${CMAKE_CURRENT_LIST_DIR}/weft-config.cmake.in ${PROJECT_BINARY_DIR}/weft-config.cmake
  INSTALL_DESTINATION ${weft_cmake_dir}
  PATH_VARS CMAKE_INSTALL_INCLUDEDIR)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/weft-config-version.cmake
  COMPATIBILITY SameMinorVersion)  # below 1.0 each minor version may change names
install(
  FILES ${PROJECT_BINARY_DIR}/weft-config.cmake ${PROJECT_BINARY_DIR}/weft-config-version.cmake
    ${CMAKE_CURRENT_LIST_DIR}/weft-module.cmake
  DESTINATION ${weft_cmake_dir})
install(FILES ${CMAKE_CURRENT_LIST_DIR}/http_parser.cmake RENAME weft-http-parser.cmake DESTINATION ${weft_cmake_dir})
install(FILES ${PROJECT_SOURCE_DIR}/include/weft/weft.cppm DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/weft)

# weft.pc finds its prefix from where it lies, so that an install can be moved.
file(RELATIVE_PATH weft_prefix_from_pc
  ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
foreach(pc IN LISTS weft_pcs)
  configure_file(${CMAKE_CURRENT_LIST_DIR}/${pc}.in ${PROJECT_BINARY_DIR}/${pc} @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/${pc} DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endforeach()
