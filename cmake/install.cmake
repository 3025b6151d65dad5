# What `cmake --install` puts where, and how other builds find it: onnxvram.pc for pkg-config, and
# a CMake package with the targets onnxvram::static and onnxvram::shared.
include(CMakePackageConfigHelpers)

# Users of the static library link its dependencies by name: the archives this build found may not
# be there on another machine.
set(links "$<LINK_ONLY:$<BUILD_INTERFACE:onv_flags>>")
foreach(dependency ${ONV_DEPS})
  list(APPEND links "$<LINK_ONLY:$<BUILD_INTERFACE:${dependency}>>")
endforeach()
foreach(name ${ONV_DEP_NAMES})
  list(APPEND links "$<LINK_ONLY:$<INSTALL_INTERFACE:${name}>>")
endforeach()
set_property(TARGET onnxvram_static PROPERTY INTERFACE_LINK_LIBRARIES ${links})

if(TARGET onnxvram)
  install(TARGETS onnxvram RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT program)
endif()
install(TARGETS onnxvram_static onnxvram_shared EXPORT onnxvram
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT library NAMELINK_COMPONENT development)
install(DIRECTORY include/onnxvram DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT development)
# Packages have these two in the forms that Debian asks for.
if(NOT ONV_PACKAGES)
  install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
  install(FILES man/onnxvram.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
endif()
install(FILES share/report.schema.json share/plan.schema.json DESTINATION ${CMAKE_INSTALL_DATADIR}/onnxvram
  COMPONENT program)
install(FILES completions/onnxvram.bash RENAME onnxvram
  DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions COMPONENT program)
set(zsh_folder $<IF:$<BOOL:${ONV_PACKAGES}>,zsh/vendor-completions,zsh/site-functions>)
install(FILES completions/_onnxvram DESTINATION ${CMAKE_INSTALL_DATADIR}/${zsh_folder}
  COMPONENT program)
install(FILES completions/onnxvram.fish
  DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d COMPONENT program)

# --- pkg-config ----------------------------------------------------------------------------------

# Relative to the file itself, so that the tree can be moved and --prefix can differ from the
# prefix at configuration.
set(pc_folder ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig)
file(RELATIVE_PATH PC_PREFIX ${pc_folder} ${CMAKE_INSTALL_PREFIX})
file(RELATIVE_PATH PC_LIBDIR ${CMAKE_INSTALL_PREFIX} ${CMAKE_INSTALL_FULL_LIBDIR})
file(RELATIVE_PATH PC_INCLUDEDIR ${CMAKE_INSTALL_PREFIX} ${CMAKE_INSTALL_FULL_INCLUDEDIR})
list(JOIN ONV_DEP_MODULES " " PC_REQUIRES)
list(JOIN ONV_DEP_LINKS " " PC_LINKS)
configure_file(cmake/onnxvram.pc.in onnxvram.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/onnxvram.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig
  COMPONENT development)

# --- CMake package -------------------------------------------------------------------------------

set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/onnxvram)
# The exported targets need nothing found before them, so they are the configuration itself.
install(EXPORT onnxvram FILE onnxvramConfig.cmake NAMESPACE onnxvram::
  DESTINATION ${package_folder} COMPONENT development)
# Before 1.0 a minor version may change the interface.
write_basic_package_version_file(${CMAKE_BINARY_DIR}/onnxvramConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/onnxvramConfigVersion.cmake DESTINATION ${package_folder}
  COMPONENT development)
