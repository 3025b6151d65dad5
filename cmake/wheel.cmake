# What a wheel holds beside python/onnxvram (pyproject.toml; scikit-build-core sets SKBUILD): the program,
# the shared library, and the library's interface as cffi reads it without a C compiler.
find_package(Python3 REQUIRED COMPONENTS Interpreter)
set(interface ${CMAKE_BINARY_DIR}/_interface.py)
file(GLOB headers CONFIGURE_DEPENDS include/onnxvram/*.h)
add_custom_command(OUTPUT ${interface}
  COMMAND Python3::Interpreter ${CMAKE_SOURCE_DIR}/python/interface.py
    ${CMAKE_SOURCE_DIR}/include/onnxvram/onnxvram.h ${interface}
  DEPENDS python/interface.py ${headers} VERBATIM)
add_custom_target(onv_python DEPENDS ${interface})

install(TARGETS onnxvram RUNTIME DESTINATION ${SKBUILD_SCRIPTS_DIR} COMPONENT wheel)
install(FILES $<TARGET_FILE:onnxvram_shared> RENAME libonnxvram.so DESTINATION onnxvram
  COMPONENT wheel)
install(FILES ${interface} share/report.schema.json share/plan.schema.json DESTINATION onnxvram COMPONENT wheel)
