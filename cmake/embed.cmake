# Files that are part of the program.
#
# Bytes in hexadecimal as a list of C's.
function(onv_list_bytes bytes result)
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
  string(REGEX REPLACE "((0x[0-9a-f][0-9a-f],)(0x[0-9a-f][0-9a-f],)(0x[0-9a-f][0-9a-f],)(0x[0-9a-f][0-9a-f],)(0x[0-9a-f][0-9a-f],)(0x[0-9a-f][0-9a-f],)(0x[0-9a-f][0-9a-f],)(0x[0-9a-f][0-9a-f],))"
    "\\1\n" bytes "${bytes}")
  set(${result} "${bytes}" PARENT_SCOPE)
endfunction()

# What is read at random places: adds `const unsigned char NAME[]` and `const size_t NAME_bytes`.
function(onv_embed_data target file name)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/${file})
  file(READ ${CMAKE_SOURCE_DIR}/${file} bytes HEX)
  onv_list_bytes("${bytes}" bytes)
  file(CONFIGURE OUTPUT ${GENERATED}/${name}.c @ONLY
    CONTENT "#include <stddef.h>\n\nextern const unsigned char ${name}[];\nextern const size_t ${name}_bytes;\nconst unsigned char ${name}[] = {\n${bytes}\n};\nconst size_t ${name}_bytes = sizeof ${name};\n")
  target_sources(${target} PRIVATE ${GENERATED}/${name}.c)
endfunction()

# What is needed as a whole: adds `const onv_embedded NAME` (src/base/embedded.h). Of a file of gzip the header, which may have
# the time, and the trailer are left out.
function(onv_embed target file name)
  file(ARCHIVE_CREATE OUTPUT ${GENERATED}/${name}.gz PATHS ${file} FORMAT raw COMPRESSION GZip COMPRESSION_LEVEL 9)
  file(READ ${GENERATED}/${name}.gz packed HEX)
  string(REGEX MATCH "^1f8b0800............(.*)................$" is_plain "${packed}")
  set(bytes "${CMAKE_MATCH_1}")
  if(NOT is_plain)
    message(FATAL_ERROR "${GENERATED}/${name}.gz has another header than CMake ${CMAKE_VERSION} should write")
  endif()
  onv_list_bytes("${bytes}" bytes)
  file(SIZE ${file} size)
  file(CONFIGURE OUTPUT ${GENERATED}/${name}.c @ONLY CONTENT "#include \"base/embedded.h\"

extern const onv_embedded ${name};
static const unsigned char packed[] = {\n${bytes}\n};
const onv_embedded ${name} = {packed, sizeof packed, ${size}};\n")
  target_sources(${target} PRIVATE ${GENERATED}/${name}.c)
endfunction()

# A text without what is there for those who change it: lines that are comments alone, indentation, empty lines.
function(onv_without_comments text result)
  string(REGEX REPLACE "\n *(/[*]([^*]|[*]+[^*/])*[*]+/|//[^\n]*)" "\n" text "${text}")
  string(REGEX REPLACE "\n[ \n]+" "\n" text "${text}")
  set(${result} "${text}" PARENT_SCOPE)
endfunction()

# The SHA-256 of a text as a Content-Security-Policy names it: 'sha256-BASE64'.
function(onv_policy_source text result)
  set(digits ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/)
  string(SHA256 hash "${text}")
  string(APPEND hash 00) # 33 bytes are eleven groups of four digits; the last digit is padding
  set(text "")
  foreach(group RANGE 10)
    math(EXPR at "${group} * 6")
    string(SUBSTRING ${hash} ${at} 6 bytes)
    foreach(shift 18 12 6 0)
      math(EXPR digit "(0x${bytes} >> ${shift}) & 63")
      string(SUBSTRING ${digits} ${digit} 1 digit)
      string(APPEND text ${digit})
    endforeach()
  endforeach()
  string(REGEX REPLACE "A$" "=" text ${text})
  set(${result} "'sha256-${text}'" PARENT_SCOPE)
endfunction()

# The page of --html: its template, style sheet and scripts, each up to a byte 1, and a policy of their hashes.
function(onv_embed_page target html)
  string(ASCII 1 end)
  set(page "")
  set(scripts "")
  foreach(file ${html} ${ARGN})
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/${file})
    file(READ ${CMAKE_SOURCE_DIR}/${file} text)
    onv_without_comments("${text}" text)
    string(APPEND page "${text}${end}")
    onv_policy_source("${text}" source)
    if(file MATCHES "[.]css$")
      set(styles ${source})
    elseif(file MATCHES "[.]js$")
      string(APPEND scripts " ${source}")
    endif()
  endforeach()
  file(WRITE ${GENERATED}/page "${page}")
  onv_embed(${target} ${GENERATED}/page onv_page_files)
  file(CONFIGURE OUTPUT ${GENERATED}/onv_page.c @ONLY CONTENT "#include \"report/embedded.h\"

const char onv_page_policy[] =
    \"default-src 'none'; script-src${scripts}; style-src ${styles}; base-uri 'none'; form-action 'none'\";
")
  target_sources(${target} PRIVATE ${GENERATED}/onv_page.c)
endfunction()
