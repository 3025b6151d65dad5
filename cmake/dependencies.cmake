# What the build needs, a row each. All else that names these libraries follows from the rows: how they are linked,
# what onnxvram.pc and the CMake package require, what the Debian packages depend on.
set(libraries # prefix of its variables, module of pkg-config, oldest version, name for the linker, Debian package
  "PROTOBUF_C libprotobuf-c 1.4 protobuf-c libprotobuf-c-dev"
  "JANSSON jansson 2.13 jansson libjansson-dev"
  "YAJL yajl 2.1 yajl_s libyajl-dev"
  "MINIZIP minizip 1.1 minizip libminizip-dev"
  "ZLIB zlib 1.2 z zlib1g-dev")
set(programs # variable, Debian package, names
  "PROTOC_C protobuf-c-compiler protoc-c protoc")
if(ONV_PACKAGES)
  list(APPEND programs "ONV_FILE file file") # dpkg-shlibdeps asks it
endif()
set(missing "")
set(packages "")

foreach(row ${programs})
  string(REPLACE " " ";" row ${row})
  list(POP_FRONT row variable package)
  find_program(${variable} NAMES ${row})
  if(NOT ${variable})
    list(GET row 0 name)
    list(APPEND missing ${name})
    list(APPEND packages ${package})
  endif()
endforeach()

find_package(PkgConfig QUIET)
if(NOT PKG_CONFIG_FOUND)
  list(APPEND missing pkg-config)
  list(APPEND packages pkg-config)
endif()

# The page has libraries of its own: cmake/wasm.cmake.
if(EMSCRIPTEN)
  set(libraries "")
endif()
foreach(row ${libraries})
  string(REPLACE " " ";" row ${row})
  list(POP_FRONT row prefix module version name package)
  list(APPEND ONV_DEP_NAMES ${name})
  list(APPEND ONV_DEP_PACKAGES ${package})
  if(PKG_CONFIG_FOUND)
    pkg_check_modules(${prefix} QUIET ${module}>=${version})
  endif()
  if(NOT ${prefix}_FOUND)
    list(APPEND missing "${module} (${version} or later)")
    list(APPEND packages ${package})
    continue()
  endif()
  message(STATUS "Found ${module} ${${prefix}_VERSION}")
  if(name IN_LIST ${prefix}_LIBRARIES)
    list(APPEND ONV_DEP_MODULES ${module})
  else() # its static archive has a name that its module does not know
    list(APPEND ONV_DEP_LINKS -l${name})
  endif()
  list(APPEND ONV_DEP_INCLUDES ${${prefix}_INCLUDE_DIRS})
  list(APPEND ONV_SHARED_DEPS ${${prefix}_LINK_LIBRARIES})
  # Static archives where Debian ships them, so that the program runs where only libc is installed.
  if(ONV_STATIC_DEPS)
    find_library(${prefix}_ARCHIVE lib${name}.a HINTS ${${prefix}_LIBRARY_DIRS})
    list(APPEND ONV_DEPS ${${prefix}_ARCHIVE})
    if(NOT ${prefix}_ARCHIVE)
      list(APPEND missing "lib${name}.a (or -DONV_STATIC_DEPS=OFF, which links shared libraries)")
      list(APPEND packages ${package})
    endif()
  endif()
endforeach()
if(NOT ONV_STATIC_DEPS)
  set(ONV_DEPS ${ONV_SHARED_DEPS})
endif()
list(APPEND ONV_DEPS m)
list(APPEND ONV_DEP_NAMES m)

if(missing)
  list(JOIN missing ", " missing)
  list(JOIN packages " " packages)
  message(FATAL_ERROR "The build of onnxvram needs these, which were not found: ${missing}.\n"
    "On Debian and Ubuntu install them with\n    sudo apt-get install ${packages}\n")
endif()

if(ONV_TESTS AND NOT EMSCRIPTEN)
  pkg_check_modules(CMOCKA QUIET cmocka)
  if(NOT CMOCKA_FOUND)
    set(ONV_TESTS OFF)
    message(STATUS "The tests are left out, since cmocka is not installed. On Debian and Ubuntu install it with\n"
      "    sudo apt-get install libcmocka-dev")
  endif()
endif()
