# The program as WebAssembly, for a page: built by scripts/page with Emscripten. Libraries come from the sources of their
# Debian packages, in the folders ONV_PROTOBUF_C and ONV_JANSSON.
set(CMAKE_POSITION_INDEPENDENT_CODE OFF)
set(ONV_TESTS OFF)
set(ONV_MMAP OFF)
set(ONV_CUDA OFF)
# Sizes of models have 64 bits, and those of memory 32: one must not become the other unseen.
set(ONV_WASM_WARNINGS -Wshorten-64-to-32)
set(CMAKE_C_FLAGS_RELEASE "-O2 -DNDEBUG")
foreach(folder ONV_PROTOBUF_C ONV_JANSSON)
  if(NOT EXISTS ${${folder}})
    message(FATAL_ERROR "${folder} is no folder: use scripts/page")
  endif()
endforeach()

add_library(protobuf-c STATIC ${ONV_PROTOBUF_C}/protobuf-c/protobuf-c.c)
target_include_directories(protobuf-c PRIVATE ${ONV_PROTOBUF_C})
file(GLOB jansson ${ONV_JANSSON}/src/*.c)
add_library(jansson STATIC ${jansson})
# android/: the header that configure would make, for a system without a configure.
set(ONV_DEP_INCLUDES ${ONV_PROTOBUF_C} ${ONV_JANSSON}/src ${ONV_JANSSON}/android)
target_include_directories(jansson PRIVATE ${ONV_DEP_INCLUDES} ${CMAKE_BINARY_DIR}/jansson)
target_compile_definitions(jansson PRIVATE HAVE_STDINT_H)
file(WRITE ${CMAKE_BINARY_DIR}/jansson/jansson_private_config.h "")
set(ONV_DEPS protobuf-c jansson m)

function(onv_page target)
  target_link_options(${target} PRIVATE -sALLOW_MEMORY_GROWTH=1 -sMAXIMUM_MEMORY=4GB -sENVIRONMENT=worker
    -sMODULARIZE=1 -sEXPORT_NAME=onnxvram -sINVOKE_RUN=0 -sEXIT_RUNTIME=1 -sFORCE_FILESYSTEM=1
    -sDYNAMIC_EXECUTION=0 -sEXPORTED_RUNTIME_METHODS=FS,WORKERFS,callMain -lworkerfs.js)
endfunction()
