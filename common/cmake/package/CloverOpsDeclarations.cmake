# Chooses which operators <clover/ops.h> declares for a target.
#
#   clover_ops_declarations(<target> BACKENDS <name>... [DECLARE <operator>... | all] [MANIFESTS <file>...])
#
# By default a target sees the operators that the named backends provide, as their manifests list them. DECLARE adds
# operators by name, or all of them: one without a provider compiles, answers supports() == false and throws
# clover::Unsupported when called. MANIFESTS names manifests of backends that are not installed beside the core.

include("${CMAKE_CURRENT_LIST_DIR}/CloverOpsOperators.cmake")

# The manifest of a backend: given, or in CLOVER_OPS_PLUGIN_PATH (a manifest, its folder, or a folder of plugins, as the
# core library reads it), or beside the core package.
function(_clover_ops_find_manifest backend manifests result)
  foreach(manifest IN LISTS manifests)
    if(NOT EXISTS "${manifest}")
      message(FATAL_ERROR "clover_ops_declarations: there is no manifest ${manifest}")
    endif()
  endforeach()
  string(REPLACE ":" ";" search "$ENV{CLOVER_OPS_PLUGIN_PATH}")
  foreach(entry IN LISTS search ITEMS "${CloverOps_PACKAGE_DIR}/..")
    list(APPEND manifests "${entry}" "${entry}/plugin.manifest" "${entry}/clover_ops_${backend}/plugin.manifest")
  endforeach()
  foreach(candidate IN LISTS manifests)
    if(NOT EXISTS "${candidate}" OR IS_DIRECTORY "${candidate}")
      continue()
    endif()
    file(STRINGS "${candidate}" found REGEX "^name ${backend}$")
    if(found)
      set(${result} "${candidate}" PARENT_SCOPE)
      return()
    endif()
  endforeach()
  message(FATAL_ERROR "clover_ops_declarations: backend `${backend}` is not installed: no plugin.manifest of that name "
                      "beside ${CloverOps_PACKAGE_DIR}, in MANIFESTS or in CLOVER_OPS_PLUGIN_PATH")
endfunction()

function(clover_ops_declarations target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "BACKENDS;DECLARE;MANIFESTS")
  if(arg_UNPARSED_ARGUMENTS)
    list(JOIN arg_UNPARSED_ARGUMENTS " " unknown)
    message(FATAL_ERROR "clover_ops_declarations: unknown arguments: ${unknown}")
  endif()
  if(NOT arg_BACKENDS AND NOT arg_DECLARE)
    message(FATAL_ERROR "clover_ops_declarations: name BACKENDS, DECLARE, or both")
  endif()

  set(declared)
  foreach(backend IN LISTS arg_BACKENDS)
    _clover_ops_find_manifest("${backend}" "${arg_MANIFESTS}" manifest)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${manifest}")
    file(STRINGS "${manifest}" providers REGEX "^provider ")
    list(TRANSFORM providers REPLACE "^provider ([^ ]+) .*$" "\\1")
    list(APPEND declared ${providers})
  endforeach()
  if("all" IN_LIST arg_DECLARE)
    list(APPEND declared ${CloverOps_OPERATORS})
    list(REMOVE_ITEM arg_DECLARE all)
  endif()
  foreach(operator IN LISTS arg_DECLARE)
    if(NOT operator IN_LIST CloverOps_OPERATORS)
      list(JOIN CloverOps_OPERATORS ", " known)
      message(FATAL_ERROR "clover_ops_declarations: `${operator}` is no operator; there are ${known}")
    endif()
    list(APPEND declared "${operator}")
  endforeach()

  set(header "${CMAKE_CURRENT_BINARY_DIR}/clover_ops_declarations_${target}.h")
  # As `clover-ops declarations` writes it, byte for byte.
  string(CONCAT text "// Which operators <clover/ops.h> declares; from clover_ops_declarations() or "
                "`clover-ops declarations`.\n#define CLOVER_OPS_DECLARATIONS_CONFIGURED 1\n")
  foreach(operator IN LISTS CloverOps_OPERATORS)
    string(TOUPPER "${operator}" upper)
    if(operator IN_LIST declared)
      string(APPEND text "#define CLOVER_OPS_DECLARE_${upper} 1\n")
    else()
      string(APPEND text "#define CLOVER_OPS_DECLARE_${upper} 0\n")
    endif()
  endforeach()
  file(CONFIGURE OUTPUT "${header}" CONTENT "${text}" @ONLY)
  target_link_libraries(${target} PRIVATE Clover::ops)
  target_compile_definitions(${target} PRIVATE "CLOVER_OPS_DECLARATIONS_HEADER=\"${header}\"")
endfunction()
