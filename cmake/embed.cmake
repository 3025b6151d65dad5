# Text files that are part of the program: onv_embed(TARGET FILE NAME) adds `const char NAME[]`, NUL-terminated, which
# src/report/embedded.h declares.
function(onv_embed target file name)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/${file})
  file(READ ${CMAKE_SOURCE_DIR}/${file} bytes HEX)
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
  string(REGEX REPLACE "((0x[0-9a-f][0-9a-f],)(0x[0-9a-f][0-9a-f],)(0x[0-9a-f][0-9a-f],)(0x[0-9a-f][0-9a-f],)(0x[0-9a-f][0-9a-f],)(0x[0-9a-f][0-9a-f],)(0x[0-9a-f][0-9a-f],)(0x[0-9a-f][0-9a-f],))"
    "\\1\n" bytes "${bytes}")
  file(CONFIGURE OUTPUT ${GENERATED}/${name}.c @ONLY
    CONTENT "#include \"report/embedded.h\"\n\nconst char ${name}[] = {\n${bytes}\n0};\n")
  target_sources(${target} PRIVATE ${GENERATED}/${name}.c)
endfunction()
