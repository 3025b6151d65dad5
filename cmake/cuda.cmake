# The kernels of a replay (src/device/kernels.cu), where there is a CUDA compiler: a fat binary for
# the architectures it knows, with PTX for later ones, as a list of numbers that cuda_kernels.c
# includes. Without one the program is complete, only slower on a GPU. A compiler that does not get
# on with this machine's is no failure either, unless ONV_CUDA is ON.
set(ONV_CUDA "AUTO" CACHE STRING "Compile the kernels of a replay: ON, OFF, or AUTO (where nvcc works)")
if(NOT ONV_CUDA)
  return()
endif()
find_program(ONV_NVCC nvcc HINTS ENV CUDA_HOME ENV CUDA_PATH PATHS /usr/local/cuda PATH_SUFFIXES bin)
set(kernels ${CMAKE_SOURCE_DIR}/src/device/kernels.cu)
set(fatbin ${CMAKE_BINARY_DIR}/generated/kernels.fatbin)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${kernels})
if(ONV_NVCC AND ${kernels} IS_NEWER_THAN ${fatbin}.inc)
  file(REMOVE ${fatbin}.inc)
  execute_process(COMMAND ${ONV_NVCC} --fatbin -arch=all-major ${kernels} -o ${fatbin}
    RESULT_VARIABLE failed OUTPUT_QUIET ERROR_VARIABLE why)
  if(failed STREQUAL "0")
    file(READ ${fatbin} bytes HEX)
    string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
    string(REGEX REPLACE "((0x..,)(0x..,)(0x..,)(0x..,)(0x..,)(0x..,)(0x..,)(0x..,))" "\\1\n"
      bytes "${bytes}")
    file(WRITE ${fatbin}.inc "${bytes}")
  else()
    message(STATUS "The kernels of a replay are left out: ${ONV_NVCC} failed\n${why}")
  endif()
endif()
if(EXISTS ${fatbin}.inc)
  set_source_files_properties(src/device/cuda_kernels.c PROPERTIES
    COMPILE_DEFINITIONS "ONV_CUDA_KERNELS_FILE=\"${fatbin}.inc\"" OBJECT_DEPENDS ${fatbin}.inc)
elseif(NOT ONV_CUDA STREQUAL "AUTO")
  message(FATAL_ERROR "ONV_CUDA is ${ONV_CUDA}, but there is no nvcc that works")
endif()
