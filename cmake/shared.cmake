# The shared library. What it exports has a version, so that a program is not started with a library that lacks what it
# calls. All else, symbols of the archives too, stays private to it.
add_library(onnxvram_shared SHARED $<TARGET_OBJECTS:onv_objects> $<TARGET_OBJECTS:onv_schema>)
set_target_properties(onnxvram_shared PROPERTIES OUTPUT_NAME onnxvram EXPORT_NAME shared
  VERSION ${PROJECT_VERSION} SOVERSION 0 LINK_DEPENDS ${CMAKE_SOURCE_DIR}/cmake/onnxvram.map)
target_link_libraries(onnxvram_shared PRIVATE ${ONV_DEPS} $<BUILD_INTERFACE:onv_flags>)
target_link_options(onnxvram_shared PRIVATE -Wl,--no-undefined
  -Wl,--version-script=${CMAKE_SOURCE_DIR}/cmake/onnxvram.map)
target_include_directories(onnxvram_shared PUBLIC
  $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
