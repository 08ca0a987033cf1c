# An overlay port: it builds the clone of weft in which it lies, so that its version is that of the sources.
get_filename_component(SOURCE_PATH "${CMAKE_CURRENT_LIST_DIR}/../../../.." ABSOLUTE)

vcpkg_check_features(OUT_FEATURE_OPTIONS FEATURE_OPTIONS
  FEATURES
    observe WEFT_OBSERVE_HTTP
    tls WEFT_TLS)

# liburing and c-ares of the system would be no part of what vcpkg installs.
vcpkg_cmake_configure(
  SOURCE_PATH "${SOURCE_PATH}"
  OPTIONS
    ${FEATURE_OPTIONS}
    -DWEFT_BUILD_TESTS=OFF
    -DWEFT_BUILD_BENCH=OFF
    -DWEFT_BUILD_EXAMPLES=OFF
    -DWEFT_BUILD_TOOLS=OFF
    -DWEFT_URING=OFF
    -DWEFT_CARES=OFF
    -DWEFT_HWLOC=OFF
    -DWEFT_SDT=OFF
    -DCMAKE_UNITY_BUILD=ON
    -DCMAKE_UNITY_BUILD_BATCH_SIZE=0)
vcpkg_cmake_install()
vcpkg_cmake_config_fixup(CONFIG_PATH lib/cmake/weft)
vcpkg_fixup_pkgconfig()
file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/debug/include" "${CURRENT_PACKAGES_DIR}/debug/share")
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE")
file(INSTALL "${CMAKE_CURRENT_LIST_DIR}/usage" DESTINATION "${CURRENT_PACKAGES_DIR}/share/weft")  # shown after an install
