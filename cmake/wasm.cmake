# The program as WebAssembly, for a page: built by scripts/page with Emscripten. Libraries come from the sources of their
# Debian packages, in the folders ONV_PROTOBUF_C, ONV_JANSSON, ONV_YAJL, ONV_MINIZIP and ONV_ZLIB.
set(CMAKE_POSITION_INDEPENDENT_CODE OFF)
set(ONV_TESTS OFF)
set(ONV_MMAP OFF)
set(ONV_CUDA OFF)
# Sizes of models have 64 bits, and those of memory 32: one must not become the other unseen.
set(ONV_WASM_WARNINGS -Wshorten-64-to-32)
set(CMAKE_C_FLAGS_RELEASE "-O2 -DNDEBUG")
foreach(folder ONV_PROTOBUF_C ONV_JANSSON ONV_YAJL ONV_MINIZIP ONV_ZLIB)
  if(NOT EXISTS ${${folder}})
    message(FATAL_ERROR "${folder} is no folder: use scripts/page")
  endif()
endforeach()

set(yajl_sources yajl.c yajl_alloc.c yajl_buf.c yajl_encode.c yajl_lex.c yajl_parser.c)
set(zlib_sources adler32.c crc32.c deflate.c inffast.c inflate.c inftrees.c trees.c zutil.c)

add_library(protobuf-c STATIC ${ONV_PROTOBUF_C}/protobuf-c/protobuf-c.c)
target_include_directories(protobuf-c PRIVATE ${ONV_PROTOBUF_C})
file(GLOB jansson ${ONV_JANSSON}/src/*.c)
add_library(jansson STATIC ${jansson})
# android/: the header that configure would make, for a system without a configure.
set(ONV_DEP_INCLUDES ${ONV_PROTOBUF_C} ${ONV_JANSSON}/src ${ONV_JANSSON}/android)
target_include_directories(jansson PRIVATE ${ONV_DEP_INCLUDES} ${CMAKE_BINARY_DIR}/jansson)
target_compile_definitions(jansson PRIVATE HAVE_STDINT_H)
file(WRITE ${CMAKE_BINARY_DIR}/jansson/jansson_private_config.h "")
# What reads programs: the parser of yajl, the reader of minizip, and of zlib what both directions take.
set(headers ${CMAKE_BINARY_DIR}/headers) # in the folders that installed ones are in
file(GLOB yajl_headers ${ONV_YAJL}/src/api/*.h)
file(COPY ${yajl_headers} DESTINATION ${headers}/yajl)
file(COPY ${ONV_MINIZIP}/ioapi.h ${ONV_MINIZIP}/unzip.h DESTINATION ${headers}/minizip)
list(TRANSFORM yajl_sources PREPEND ${ONV_YAJL}/src/)
add_library(yajl STATIC ${yajl_sources})
target_include_directories(yajl PRIVATE ${headers})
list(TRANSFORM zlib_sources PREPEND ${ONV_ZLIB}/)
add_library(z STATIC ${zlib_sources})
target_include_directories(z PRIVATE ${ONV_ZLIB})
add_library(minizip STATIC ${ONV_MINIZIP}/unzip.c ${ONV_MINIZIP}/ioapi.c)
target_include_directories(minizip PRIVATE ${ONV_ZLIB})
target_compile_definitions(minizip PRIVATE NOUNCRYPT IOAPI_NO_64)
list(APPEND ONV_DEP_INCLUDES ${headers} ${ONV_ZLIB})
set(ONV_DEPS protobuf-c jansson yajl minizip z m)

function(onv_page target)
  target_link_options(${target} PRIVATE -sALLOW_MEMORY_GROWTH=1 -sMAXIMUM_MEMORY=4GB -sENVIRONMENT=worker
    -sMODULARIZE=1 -sEXPORT_NAME=onnxvram -sINVOKE_RUN=0 -sEXIT_RUNTIME=1 -sFORCE_FILESYSTEM=1
    -sDYNAMIC_EXECUTION=0 -sEXPORTED_RUNTIME_METHODS=FS,WORKERFS,callMain -lworkerfs.js)
endfunction()
