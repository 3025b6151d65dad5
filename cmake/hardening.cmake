# What makes a mistake harder to exploit, in every build but those for debugging; flags that this
# compiler or architecture lacks are left out. tests/project/hardening.sh looks at what came of it.
# The generated code of the schema reads hostile bytes too, so this is a target of its own.
include(CheckCCompilerFlag)
include(CheckCSourceCompiles)
include(CheckPIESupported)
check_pie_supported(LANGUAGES C)

set(hardening -fstack-protector-strong)
set(CMAKE_REQUIRED_FLAGS -Werror) # some take flags of other architectures, with a warning
foreach(flag -fstack-clash-protection -fcf-protection -mbranch-protection=standard)
  string(MAKE_C_IDENTIFIER "ONV_HAVE${flag}" have)
  check_c_compiler_flag(${flag} ${have})
  if(${have})
    list(APPEND hardening ${flag})
  endif()
endforeach()
# Level 3 also checks sizes that are known only when the program runs; a C library that cannot warns.
set(CMAKE_REQUIRED_FLAGS "-O2 -Werror -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3")
check_c_source_compiles("#include <stdio.h>\nint main(void) { return 0; }" ONV_HAVE_FORTIFY_3)
unset(CMAKE_REQUIRED_FLAGS)
# Sanitizers bring checks of their own, which fortified functions would bypass.
if(NOT ONV_SANITIZE)
  list(APPEND hardening -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=$<IF:$<BOOL:${ONV_HAVE_FORTIFY_3}>,3,2>)
endif()

set(optimised $<CONFIG:Release,RelWithDebInfo,MinSizeRel>)
add_library(onv_hardening INTERFACE)
target_compile_options(onv_hardening INTERFACE "$<${optimised}:${hardening}>")
target_link_options(onv_hardening INTERFACE
  $<${optimised}:-Wl,-z,relro,-z,now,-z,noexecstack>)
