# The program as WebAssembly, for a page: built by scripts/page with Emscripten. ONV_SOURCES has the libraries, as the sources
# of their Debian packages.
set(CMAKE_POSITION_INDEPENDENT_CODE OFF)
set(ONV_TESTS OFF)
set(ONV_MMAP OFF)
set(ONV_CUDA OFF)
# Sizes of models have 64 bits, and those of memory 32: one must not become the other unseen.
set(ONV_WASM_WARNINGS -Wshorten-64-to-32)
set(CMAKE_C_FLAGS_RELEASE "-O2 -DNDEBUG")
if(NOT EXISTS ${ONV_SOURCES}/zlib)
  message(FATAL_ERROR "ONV_SOURCES is not a folder with the sources of libraries: use scripts/page")
endif()

# Headers that the libraries' own builds would make. jansson has one for systems without a configure, in android/.
set(made ${CMAKE_BINARY_DIR}/libraries)
file(WRITE ${made}/jansson_private_config.h "")
file(COPY ${ONV_SOURCES}/yajl/src/api/ DESTINATION ${made}/yajl)
set(ONV_DEP_INCLUDES ${ONV_SOURCES} ${ONV_SOURCES}/protobuf-c ${ONV_SOURCES}/jansson/src ${ONV_SOURCES}/jansson/android
  ${ONV_SOURCES}/zlib ${made})
file(GLOB jansson ${ONV_SOURCES}/jansson/src/*.c)
file(GLOB yajl ${ONV_SOURCES}/yajl/src/*.c)
list(FILTER yajl EXCLUDE REGEX "yajl_version") # its header is made by yajl's own build
set(zlib adler32 crc32 deflate inffast inflate inftrees trees zutil)
list(TRANSFORM zlib REPLACE "(.+)" "${ONV_SOURCES}/zlib/\\1.c")
add_library(onv_libraries STATIC ${ONV_SOURCES}/protobuf-c/protobuf-c/protobuf-c.c ${jansson} ${yajl}
  ${ONV_SOURCES}/minizip/unzip.c ${ONV_SOURCES}/minizip/ioapi.c ${zlib})
target_include_directories(onv_libraries PRIVATE ${ONV_DEP_INCLUDES})
# minizip: offsets of the C library have 64 bits without names of their own, and encrypted archives are not read.
target_compile_definitions(onv_libraries PRIVATE HAVE_STDINT_H USE_FILE32API NOUNCRYPT)
set(ONV_DEPS onv_libraries m)

function(onv_page target)
  target_link_options(${target} PRIVATE -sALLOW_MEMORY_GROWTH=1 -sMAXIMUM_MEMORY=4GB -sENVIRONMENT=worker
    -sMODULARIZE=1 -sEXPORT_NAME=onnxvram -sINVOKE_RUN=0 -sEXIT_RUNTIME=1 -sFORCE_FILESYSTEM=1
    -sDYNAMIC_EXECUTION=0 -sEXPORTED_RUNTIME_METHODS=FS,WORKERFS,callMain -lworkerfs.js)
endfunction()
