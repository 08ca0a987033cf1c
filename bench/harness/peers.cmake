# The libraries that the bench compares, and where they are.
#
# A peer is looked for as an installed package; -D<PEER>_ROOT=/prefix points at one elsewhere, and WEFT_PEERS (variable
# or environment) at a folder that holds one prefix a peer, named as below. What is not found is simply not built; the
# driver shows such a peer greyed, with the ratio recorded for it.
#
# For each peer found there is then a target bench::<id>, and in BENCH_LIBRARIES_JSON what the driver should know.

set(WEFT_PEERS "$ENV{WEFT_PEERS}" CACHE PATH "A folder with one install prefix a peer (async_simple, cppcoro, …)")

set(BENCH_LIBRARIES_JSON "")

# bench_library(<id> <display name> <found> <version> <headers that its user includes for tasks>…)
function(bench_library id name found version)
  string(TOUPPER ${id}_ROOT option)
  set(is_found false)
  if(found)
    set(is_found true)
  endif()
  list(APPEND BENCH_LIBRARIES_JSON
    "    \"${id}\": {\"name\": \"${name}\", \"found\": ${is_found}, \"version\": \"${version}\", \"option\": \"-D${option}=\"}")
  set(BENCH_LIBRARIES_JSON "${BENCH_LIBRARIES_JSON}" PARENT_SCOPE)
  set_property(GLOBAL APPEND PROPERTY BENCH_LIBRARIES ${id})
  set(BENCH_${id}_HEADERS "${ARGN}" CACHE INTERNAL "")
endfunction()

# A version: what the package says, or what stands in version.txt in its prefix (several peers have no version).
function(bench_version root package_version out)
  set(version "${package_version}")
  if(EXISTS "${root}/version.txt")
    file(STRINGS "${root}/version.txt" version LIMIT_COUNT 1)
  endif()
  set(${out} "${version}" PARENT_SCOPE)
endfunction()

# bench_peer(<id> NAME … PACKAGE … {TARGET … | HEADER … [LIBRARY …]} [DEFINITIONS …] [MAIN_HEADERS …])
#
# Found by the target of its package, or, where the package is no good, by a header and a library.
function(bench_peer id)
  cmake_parse_arguments(PEER "" "NAME;PACKAGE;TARGET;HEADER;LIBRARY" "DEFINITIONS;MAIN_HEADERS" ${ARGN})
  string(TOUPPER ${id}_ROOT option)
  set(${option} "" CACHE PATH "Where ${PEER_NAME} is installed")
  set(root "${${option}}")
  if(NOT root AND IS_DIRECTORY "${WEFT_PEERS}/${PEER_PACKAGE}")
    set(root "${WEFT_PEERS}/${PEER_PACKAGE}")
  endif()

  set(links "")
  set(includes "")
  set(found FALSE)
  if(PEER_TARGET)
    find_package(${PEER_PACKAGE} QUIET CONFIG PATHS ${root})
    if(TARGET ${PEER_TARGET})
      set(found TRUE)
      set(links ${PEER_TARGET})
    endif()
  else()
    find_path(BENCH_${id}_INCLUDE ${PEER_HEADER} PATHS ${root}/include)
    mark_as_advanced(BENCH_${id}_INCLUDE)
    set(includes ${BENCH_${id}_INCLUDE})
    set(found ${BENCH_${id}_INCLUDE})
    if(PEER_LIBRARY)
      find_library(BENCH_${id}_LIBRARY ${PEER_LIBRARY} PATHS ${root}/lib)
      mark_as_advanced(BENCH_${id}_LIBRARY)
      set(links ${BENCH_${id}_LIBRARY})
      if(NOT links)
        set(found FALSE)
      endif()
    endif()
  endif()

  if(found)
    set(found TRUE)
    add_library(bench_peer_${id} INTERFACE)
    add_library(bench::${id} ALIAS bench_peer_${id})
    target_include_directories(bench_peer_${id} SYSTEM INTERFACE ${includes})
    target_link_libraries(bench_peer_${id} INTERFACE ${links} Threads::Threads)
    target_compile_definitions(bench_peer_${id} INTERFACE ${PEER_DEFINITIONS})
  endif()
  bench_version("${root}" "${${PEER_PACKAGE}_VERSION}" version)
  bench_library(${id} "${PEER_NAME}" "${found}" "${version}" ${PEER_MAIN_HEADERS})
  set(BENCH_LIBRARIES_JSON "${BENCH_LIBRARIES_JSON}" PARENT_SCOPE)
endfunction()

# weft, the limits and the standard library are always there.
add_library(bench::weft ALIAS weft)
foreach(id IN ITEMS plain handwritten std)
  add_library(bench_peer_${id} INTERFACE)
  add_library(bench::${id} ALIAS bench_peer_${id})
endforeach()
target_link_libraries(bench_peer_std INTERFACE Threads::Threads)
find_path(BENCH_liburing_INCLUDE liburing.h)  # of the programs handwritten.io_uring
find_library(BENCH_liburing_LIBRARY uring)
mark_as_advanced(BENCH_liburing_INCLUDE BENCH_liburing_LIBRARY)
if(BENCH_liburing_INCLUDE AND BENCH_liburing_LIBRARY)
  add_library(bench_peer_handwritten_io_uring INTERFACE)
  add_library(bench::handwritten_io_uring ALIAS bench_peer_handwritten_io_uring)
  target_include_directories(bench_peer_handwritten_io_uring SYSTEM INTERFACE ${BENCH_liburing_INCLUDE})
  target_link_libraries(bench_peer_handwritten_io_uring INTERFACE ${BENCH_liburing_LIBRARY} Threads::Threads)
endif()
bench_library(weft "weft" TRUE "${PROJECT_VERSION}")
bench_library(plain "plain calls" TRUE "")
bench_library(handwritten "hand-written" TRUE "")
bench_library(std "std and threads" TRUE "")

bench_peer(async_simple NAME "async_simple" PACKAGE async_simple
  HEADER async_simple/coro/Lazy.h
  MAIN_HEADERS async_simple/coro/Lazy.h async_simple/coro/Collect.h async_simple/coro/SyncAwait.h)
bench_peer(cppcoro NAME "cppcoro" PACKAGE cppcoro HEADER cppcoro/task.hpp LIBRARY cppcoro
  MAIN_HEADERS cppcoro/task.hpp cppcoro/when_all.hpp cppcoro/sync_wait.hpp)
bench_peer(coflux NAME "Coflux" PACKAGE coflux HEADER coflux/task.hpp
  MAIN_HEADERS coflux/task.hpp coflux/executor.hpp)
bench_peer(folly NAME "folly" PACKAGE folly TARGET Folly::folly
  MAIN_HEADERS folly/coro/Task.h folly/coro/Collect.h folly/coro/BlockingWait.h)
bench_peer(libcoro NAME "libcoro" PACKAGE libcoro HEADER coro/coro.hpp LIBRARY coro
  MAIN_HEADERS coro/task.hpp coro/when_all.hpp coro/sync_wait.hpp)
bench_peer(concurrencpp NAME "concurrencpp" PACKAGE concurrencpp TARGET concurrencpp::concurrencpp
  MAIN_HEADERS concurrencpp/concurrencpp.h)
bench_peer(toomanycooks NAME "TooManyCooks" PACKAGE TooManyCooks TARGET TooManyCooks::TooManyCooks
  MAIN_HEADERS tmc/task.hpp tmc/spawn_many.hpp tmc/sync.hpp)
# bench::<library>_net is what the programs of a network workload link. libcoro has sockets where it was built with c-ares.
find_library(BENCH_cares_LIBRARY cares)
mark_as_advanced(BENCH_cares_LIBRARY)
if(TARGET bench_peer_libcoro AND BENCH_cares_LIBRARY)
  include(CheckCXXSourceCompiles)
  set(CMAKE_REQUIRED_INCLUDES ${BENCH_libcoro_INCLUDE})
  set(CMAKE_REQUIRED_LIBRARIES ${BENCH_libcoro_LIBRARY} ${BENCH_cares_LIBRARY} Threads::Threads)
  set(CMAKE_CXX_STANDARD 20)
  check_cxx_source_compiles("#include <span>
    #include <coro/net/socket.hpp>
    int main() { return coro::net::socket{}.blocking(coro::net::socket::blocking_t::no); }" BENCH_libcoro_has_sockets)
  unset(CMAKE_REQUIRED_INCLUDES)
  unset(CMAKE_REQUIRED_LIBRARIES)
  unset(CMAKE_CXX_STANDARD)
  if(BENCH_libcoro_has_sockets)
    add_library(bench_peer_libcoro_net INTERFACE)
    add_library(bench::libcoro_net ALIAS bench_peer_libcoro_net)
    target_link_libraries(bench_peer_libcoro_net INTERFACE bench_peer_libcoro ${BENCH_cares_LIBRARY})
    target_compile_definitions(bench_peer_libcoro_net INTERFACE LIBCORO_FEATURE_NETWORKING)
  endif()
endif()
bench_peer(libfork NAME "libfork" PACKAGE libfork TARGET libfork::libfork
  MAIN_HEADERS libfork.hpp)
if(TARGET bench_peer_libfork)
  target_compile_options(bench_peer_libfork INTERFACE -ftemplate-depth=20000)  # its calls nest some ten templates each
endif()

bench_peer(onetbb NAME "oneTBB" PACKAGE TBB TARGET TBB::tbb
  MAIN_HEADERS tbb/task_group.h)
if(TARGET bench_peer_onetbb)  # the standard's parallel algorithms run on it, in libstdc++
  add_library(bench_peer_std_par INTERFACE)
  add_library(bench::std_par ALIAS bench_peer_std_par)
  target_link_libraries(bench_peer_std_par INTERFACE bench_peer_onetbb)
endif()

bench_peer(taskflow NAME "Taskflow" PACKAGE taskflow HEADER taskflow/taskflow.hpp)
bench_peer(citor NAME "citor" PACKAGE citor HEADER citor/thread_pool.h)

bench_peer(corral NAME "corral" PACKAGE corral HEADER corral/corral.h)

bench_peer(libuv NAME "libuv" PACKAGE libuv HEADER uv.h LIBRARY uv)

bench_peer(moodycamel NAME "moodycamel" PACKAGE concurrentqueue HEADER concurrentqueue/blockingconcurrentqueue.h)

# Boost.Asio is header-only. 1.81 is the oldest that builds with these compilers.
set(BOOST_ASIO_ROOT "" CACHE PATH "Where Boost (1.81 or newer) is installed")
find_package(Boost 1.81 QUIET CONFIG PATHS ${BOOST_ASIO_ROOT})
if(NOT Boost_FOUND)
  find_package(Boost 1.81 QUIET HINTS ${BOOST_ASIO_ROOT})
endif()
if(Boost_FOUND)
  add_library(bench_peer_boost_asio INTERFACE)
  add_library(bench::boost_asio ALIAS bench_peer_boost_asio)
  target_link_libraries(bench_peer_boost_asio INTERFACE Boost::headers Threads::Threads)
  add_library(bench::boost_asio_beast ALIAS bench_peer_boost_asio)  # long to compile: not in a smoke run
endif()
bench_library(boost_asio "Boost.Asio" "${Boost_FOUND}" "${Boost_VERSION_STRING}"
  boost/asio/awaitable.hpp boost/asio/co_spawn.hpp boost/asio/detached.hpp boost/asio/io_context.hpp)

if(TARGET bench_peer_toomanycooks AND Boost_FOUND)  # its sockets are Asio's
  find_path(BENCH_toomanycooks_asio_INCLUDE tmc/asio/ex_asio.hpp
    PATHS ${TOOMANYCOOKS_ROOT}/include ${WEFT_PEERS}/TooManyCooks/include)
  mark_as_advanced(BENCH_toomanycooks_asio_INCLUDE)
  if(BENCH_toomanycooks_asio_INCLUDE)
    add_library(bench_peer_toomanycooks_net INTERFACE)
    add_library(bench::toomanycooks_net ALIAS bench_peer_toomanycooks_net)
    target_include_directories(bench_peer_toomanycooks_net SYSTEM INTERFACE ${BENCH_toomanycooks_asio_INCLUDE})
    target_link_libraries(bench_peer_toomanycooks_net INTERFACE bench_peer_toomanycooks Boost::headers)
    target_compile_definitions(bench_peer_toomanycooks_net INTERFACE TMC_USE_BOOST_ASIO)
  endif()
endif()

# Its parts that have a library.
foreach(part IN ITEMS context coroutine2 fiber)
  set(library ${part})
  if(part STREQUAL coroutine2)  # headers on top of Boost.Context
    set(library context)
  endif()
  find_library(BENCH_boost_${library}_LIBRARY boost_${library} PATHS ${BOOST_ASIO_ROOT}/lib)
  mark_as_advanced(BENCH_boost_${library}_LIBRARY)
  set(found FALSE)
  if(Boost_FOUND AND BENCH_boost_${library}_LIBRARY)
    set(found TRUE)
    add_library(bench_peer_boost_${part} INTERFACE)
    add_library(bench::boost_${part} ALIAS bench_peer_boost_${part})
    target_link_libraries(bench_peer_boost_${part} INTERFACE Boost::headers ${BENCH_boost_${library}_LIBRARY}
      ${BENCH_boost_context_LIBRARY} Threads::Threads)
  endif()
  string(SUBSTRING ${part} 0 1 initial)
  string(TOUPPER ${initial} initial)
  string(SUBSTRING ${part} 1 -1 rest)
  bench_library(boost_${part} "Boost.${initial}${rest}" ${found} "${Boost_VERSION_STRING}")
endforeach()

bench_peer(libcopp NAME "libcopp" PACKAGE libcopp HEADER libcopp/stack/stack_pool.h LIBRARY copp)
bench_peer(photon NAME "PhotonLibOS" PACKAGE PhotonLibOS HEADER photon/thread/thread.h LIBRARY photon)
find_library(BENCH_aio_LIBRARY aio)  # which its init() needs
mark_as_advanced(BENCH_aio_LIBRARY)
if(TARGET bench_peer_photon AND BENCH_aio_LIBRARY)
  add_library(bench_peer_photon_net INTERFACE)
  add_library(bench::photon_net ALIAS bench_peer_photon_net)
  target_link_libraries(bench_peer_photon_net INTERFACE bench_peer_photon ${BENCH_aio_LIBRARY})
endif()
bench_peer(libgo NAME "libgo" PACKAGE libgo HEADER libgo/coroutine.h LIBRARY libgo)
bench_peer(lionet NAME "LioNet" PACKAGE LioNet HEADER LioNet/scheduler.h LIBRARY lionet)
bench_peer(sylar NAME "sylar" PACKAGE sylar HEADER sylar/scheduler.h LIBRARY sylar)

# nginx, a program: http_hello/nginx.cpp starts it.
set(NGINX_ROOT "" CACHE PATH "Where nginx is installed")
find_program(BENCH_NGINX nginx HINTS ${NGINX_ROOT}/sbin PATHS /usr/sbin)
mark_as_advanced(BENCH_NGINX)
set(version "")
if(BENCH_NGINX)
  execute_process(COMMAND ${BENCH_NGINX} -v ERROR_VARIABLE version ERROR_STRIP_TRAILING_WHITESPACE)
  string(REGEX REPLACE "^.*nginx/([0-9.]*).*$" "\\1" version "${version}")
  add_library(bench_peer_nginx INTERFACE)
  add_library(bench::nginx ALIAS bench_peer_nginx)
  target_compile_definitions(bench_peer_nginx INTERFACE BENCH_NGINX="${BENCH_NGINX}")
endif()
bench_library(nginx "nginx" "${BENCH_NGINX}" "${version}")

# fio, a program: file_read/fio.cpp and those like it run it.
set(FIO_ROOT "" CACHE PATH "Where fio is installed")
find_program(BENCH_FIO fio HINTS ${FIO_ROOT}/bin)
mark_as_advanced(BENCH_FIO)
set(version "")
if(BENCH_FIO)
  execute_process(COMMAND ${BENCH_FIO} --version OUTPUT_VARIABLE version OUTPUT_STRIP_TRAILING_WHITESPACE)
  string(REGEX REPLACE "^fio-" "" version "${version}")
  add_library(bench_peer_fio INTERFACE)
  add_library(bench::fio ALIAS bench_peer_fio)
  target_compile_definitions(bench_peer_fio INTERFACE BENCH_FIO="${BENCH_FIO}")
  target_link_libraries(bench_peer_fio INTERFACE nlohmann_json::nlohmann_json)
endif()
bench_library(fio "fio" "${BENCH_FIO}" "${version}")

# What http_hello is driven by, and what its servers parse with that have no HTTP.
find_program(BENCH_WRK wrk)
find_path(BENCH_http_parser_INCLUDE http_parser.h)
find_library(BENCH_http_parser_LIBRARY http_parser)
mark_as_advanced(BENCH_WRK BENCH_http_parser_INCLUDE BENCH_http_parser_LIBRARY)

# Other languages: a toolchain, and a small harness of their own beside ours.
set(GO_ROOT "" CACHE PATH "Where Go is installed")
find_program(BENCH_GO go HINTS ${GO_ROOT}/bin PATHS /usr/local/go/bin)
mark_as_advanced(BENCH_GO)
set(version "")
if(BENCH_GO)
  execute_process(COMMAND ${CMAKE_COMMAND} -E env GOTOOLCHAIN=local ${BENCH_GO} env GOVERSION
    OUTPUT_VARIABLE version OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
endif()
bench_library(go "Go" "${BENCH_GO}" "${version}")

set(RUST_ROOT "" CACHE PATH "Where Rust is installed")
find_program(BENCH_CARGO cargo HINTS ${RUST_ROOT}/bin)
mark_as_advanced(BENCH_CARGO)
file(READ harness/rust/Cargo.toml.in crates)
foreach(crate IN ITEMS tokio crossbeam)
  string(REGEX MATCH "${crate}[^\n]*\"=([0-9.]+)\"" version "${crates}")
  bench_library(${crate} ${crate} "${BENCH_CARGO}" "${CMAKE_MATCH_1}")
  string(TOUPPER ${crate}_ROOT option)
  string(REPLACE "-D${option}" "-DRUST_ROOT" BENCH_LIBRARIES_JSON "${BENCH_LIBRARIES_JSON}")
endforeach()

set(BENCH_PEERS async_simple boost_asio coflux concurrencpp cppcoro folly libcoro libfork toomanycooks)
