# The kernels of a replay (src/device/kernels.cu), where there is a CUDA compiler: a fat binary for
# the architectures it knows, with PTX for later ones. Without one the file is empty, and the program is complete,
# only slower on a GPU. A compiler that does not get on with this machine's is no failure either, unless ONV_CUDA is ON.
set(ONV_CUDA "AUTO" CACHE STRING "Compile the kernels of a replay: ON, OFF, or AUTO (where nvcc works)")
find_program(ONV_NVCC nvcc HINTS ENV CUDA_HOME ENV CUDA_PATH PATHS /usr/local/cuda PATH_SUFFIXES bin)
set(kernels ${CMAKE_SOURCE_DIR}/src/device/kernels.cu)
set(fatbin ${CMAKE_BINARY_DIR}/generated/kernels.fatbin)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${kernels})
if(NOT ONV_CUDA OR ${kernels} IS_NEWER_THAN ${fatbin})
  file(WRITE ${fatbin} "")
endif()
file(SIZE ${fatbin} made)
if(ONV_CUDA AND ONV_NVCC AND NOT made)
  execute_process(COMMAND ${ONV_NVCC} --fatbin -arch=all-major ${kernels} -o ${fatbin}
    RESULT_VARIABLE failed OUTPUT_QUIET ERROR_VARIABLE why)
  if(NOT failed STREQUAL "0")
    message(STATUS "The kernels of a replay are left out: ${ONV_NVCC} failed\n${why}")
  endif()
  file(SIZE ${fatbin} made)
endif()
if(ONV_CUDA AND NOT made AND NOT ONV_CUDA STREQUAL "AUTO")
  message(FATAL_ERROR "ONV_CUDA is ${ONV_CUDA}, but there is no nvcc that works")
endif()
onv_embed(onv_objects ${fatbin} onv_cuda_kernels)
