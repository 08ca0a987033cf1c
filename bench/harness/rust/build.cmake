# cmake -DCARGO=… -DPACKAGE=… -DLOCK=… -P build.cmake: builds the programs in Rust, from the crates that LOCK names.
#
# cargo also wants to read from which registry each of them comes. That is a matter of the machine, so our copy has no such
# line: it is taken from a lock that cargo makes here, and only then is that one replaced. The checksums are ours.
if(NOT EXISTS ${PACKAGE}/Cargo.lock OR ${LOCK} IS_NEWER_THAN ${PACKAGE}/Cargo.lock OR
   ${PACKAGE}/Cargo.toml IS_NEWER_THAN ${PACKAGE}/Cargo.lock)
  file(REMOVE ${PACKAGE}/Cargo.lock)
  execute_process(COMMAND ${CARGO} generate-lockfile --quiet --manifest-path ${PACKAGE}/Cargo.toml
    COMMAND_ERROR_IS_FATAL ANY)
  file(STRINGS ${PACKAGE}/Cargo.lock sources REGEX "^source = ")
  list(GET sources 0 source)
  file(READ ${LOCK} lock)
  string(REPLACE "\nchecksum = " "\n${source}\nchecksum = " lock "${lock}")
  file(WRITE ${PACKAGE}/Cargo.lock "${lock}")
endif()
execute_process(
  COMMAND ${CARGO} build --locked --quiet --release --manifest-path ${PACKAGE}/Cargo.toml --target-dir ${PACKAGE}/target
  COMMAND_ERROR_IS_FATAL ANY)
