# Debian packages by CPack, from the preset `package`: the program, the library, and what is needed to
# build against it. The libraries that the program needs are Debian's own there.
#
#     cmake --preset package && cmake --build --preset package && cpack --preset deb
set(ONV_PACKAGE_MAINTAINER "onnxvram developers <developers@onnxvram.invalid>" CACHE STRING
  "Who stands in the packages as their maintainer")

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME onnxvram)
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGE_CONTACT ${ONV_PACKAGE_MAINTAINER})
set(CPACK_PACKAGE_DIRECTORY ${CMAKE_BINARY_DIR}/packages)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_ALL program library development)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE
  GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)

set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_PACKAGE_MAINTAINER ${ONV_PACKAGE_MAINTAINER})
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)

set(library libonnxvram${PROJECT_VERSION_MAJOR})
set(about "The shape of every tensor is inferred from the graph of the model,
without its weights, and from that which tensors are live when, the peak
and the tensors that make it, what PyTorch and ONNX Runtime hold, and what
training takes.")

set(CPACK_DEBIAN_PROGRAM_PACKAGE_NAME onnxvram)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PROGRAM_DESCRIPTION ${about})
set(CPACK_DEBIAN_LIBRARY_PACKAGE_NAME ${library})
set(CPACK_DEBIAN_LIBRARY_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_LIBRARY_DESCRIPTION "${about}\n.\nThis package has the shared library.")
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME libonnxvram-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEVELOPMENT_DESCRIPTION
  "${about}\n.\nThis package has the header, the static library and what builds look for.")
list(JOIN ONV_DEP_PACKAGES ", " depends)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS "${library} (= ${PROJECT_VERSION}-1), ${depends}")

# CPack's own shlibs come with no trigger for ldconfig.
configure_file(packaging/debian/shlibs.in shlibs @ONLY)
set(CPACK_DEBIAN_LIBRARY_PACKAGE_CONTROL_EXTRA
  ${CMAKE_SOURCE_DIR}/packaging/debian/triggers ${CMAKE_BINARY_DIR}/shlibs)

# What Debian's policy wants of each package's documents: copyright and changelog.
find_program(GZIP gzip)
if(GZIP)
  set(changelog ${CMAKE_BINARY_DIR}/changelog.Debian.gz)
  add_custom_command(OUTPUT ${changelog}
    COMMAND ${GZIP} -9nc ${CMAKE_SOURCE_DIR}/packaging/debian/changelog > ${changelog}
    DEPENDS packaging/debian/changelog VERBATIM)
  set(manual ${CMAKE_BINARY_DIR}/onnxvram.1.gz)
  add_custom_command(OUTPUT ${manual}
    COMMAND ${GZIP} -9nc ${CMAKE_SOURCE_DIR}/man/onnxvram.1 > ${manual}
    DEPENDS man/onnxvram.1 VERBATIM)
  add_custom_target(onv_package_documents ALL DEPENDS ${changelog} ${manual})
  install(FILES ${manual} DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT program)
  foreach(pair program:onnxvram library:${library} development:libonnxvram-dev)
    string(REPLACE ":" ";" pair ${pair})
    list(GET pair 0 component)
    list(GET pair 1 name)
    install(FILES ${changelog} packaging/debian/copyright
      DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/${name} COMPONENT ${component})
    install(FILES packaging/debian/lintian-overrides RENAME ${name}
      DESTINATION ${CMAKE_INSTALL_DATADIR}/lintian/overrides COMPONENT ${component})
  endforeach()
endif()
include(CPack)
