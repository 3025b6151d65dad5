# Files that are part of the program.
#
# The bytes of a file as a list of C's.
function(onv_bytes_of file result)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/${file})
  file(READ ${CMAKE_SOURCE_DIR}/${file} bytes HEX)
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
  string(REGEX REPLACE "((0x[0-9a-f][0-9a-f],)(0x[0-9a-f][0-9a-f],)(0x[0-9a-f][0-9a-f],)(0x[0-9a-f][0-9a-f],)(0x[0-9a-f][0-9a-f],)(0x[0-9a-f][0-9a-f],)(0x[0-9a-f][0-9a-f],)(0x[0-9a-f][0-9a-f],))"
    "\\1\n" bytes "${bytes}")
  set(${result} "${bytes}" PARENT_SCOPE)
endfunction()

# Text: adds `const char NAME[]`, NUL-terminated, which src/report/embedded.h declares.
function(onv_embed target file name)
  onv_bytes_of(${file} bytes)
  file(CONFIGURE OUTPUT ${GENERATED}/${name}.c @ONLY
    CONTENT "#include \"report/embedded.h\"\n\nextern const char ${name}[];\nconst char ${name}[] = {\n${bytes}\n0};\n")
  target_sources(${target} PRIVATE ${GENERATED}/${name}.c)
endfunction()

# Data: adds `const unsigned char NAME[]` and `const size_t NAME_bytes`.
function(onv_embed_data target file name)
  onv_bytes_of(${file} bytes)
  file(CONFIGURE OUTPUT ${GENERATED}/${name}.c @ONLY
    CONTENT "#include <stddef.h>\n\nextern const unsigned char ${name}[];\nextern const size_t ${name}_bytes;\nconst unsigned char ${name}[] = {\n${bytes}\n};\nconst size_t ${name}_bytes = sizeof ${name};\n")
  target_sources(${target} PRIVATE ${GENERATED}/${name}.c)
endfunction()

# The SHA-256 of a file as a Content-Security-Policy names it: 'sha256-BASE64'.
function(onv_policy_source file result)
  set(digits ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/)
  file(SHA256 ${CMAKE_SOURCE_DIR}/${file} hash)
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

# The page of --html: its template, style sheet and scripts, and a policy of their hashes.
function(onv_embed_page target html css)
  onv_embed(${target} ${html} onv_page_html)
  onv_embed(${target} ${css} onv_page_css)
  onv_policy_source(${css} styles)
  set(scripts "")
  set(names "")
  set(declarations "")
  set(count 0)
  foreach(script ${ARGN})
    onv_embed(${target} ${script} onv_page_script_${count})
    onv_policy_source(${script} source)
    string(APPEND scripts " ${source}")
    string(APPEND names "onv_page_script_${count}, ")
    string(APPEND declarations "extern const char onv_page_script_${count}[];\n")
    math(EXPR count "${count} + 1")
  endforeach()
  file(CONFIGURE OUTPUT ${GENERATED}/onv_page.c @ONLY CONTENT "#include \"report/embedded.h\"

${declarations}
const char *const onv_page_scripts[] = {${names}};
const size_t onv_n_page_scripts = ${count};
const char onv_page_policy[] =
    \"default-src 'none'; script-src${scripts}; style-src ${styles}; base-uri 'none'; form-action 'none'\";
")
  target_sources(${target} PRIVATE ${GENERATED}/onv_page.c)
endfunction()
