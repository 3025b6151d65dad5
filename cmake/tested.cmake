# The code under test as one library with all of its symbols, so that a change of a source links that library alone, and not each
# of the tests anew. It needs the shared libraries of others: tests call them, too, and two copies of jansson do not understand each other.
include(CheckCCompilerFlag)
check_c_compiler_flag(-fno-semantic-interposition ONV_HAVE_NO_INTERPOSITION)
if(ONV_HAVE_NO_INTERPOSITION)
  target_compile_options(onv_objects PRIVATE -fno-semantic-interposition) # else nothing global is inlined
endif()

add_library(onv_tested SHARED $<TARGET_OBJECTS:onv_objects> $<TARGET_OBJECTS:onv_schema>)
target_link_libraries(onv_tested PUBLIC ${ONV_SHARED_DEPS} m PRIVATE onv_flags)
# Calls and data within it are bound when it is linked; what uses its data is compiled with -fPIC, so that there is no second copy.
target_link_options(onv_tested PRIVATE -Wl,-Bsymbolic)
target_compile_options(onv_tested INTERFACE -fPIC)
target_include_directories(onv_tested INTERFACE ${CMAKE_SOURCE_DIR}/include)
set(ONV_LINKED onv_tested)
set(CMAKE_LINK_DEPENDS_NO_SHARED ON)
