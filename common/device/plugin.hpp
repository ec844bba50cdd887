// What a GPU backend's plugin hands to the core; all of it but the providers is the same for each backend.
#pragma once

#include <clover/plugin.h>

namespace clover::device {

// The table for clover_plugin_entry, with the providers of <clover_backend/registration.hpp>.
const clover_plugin* plugin();

}  // namespace clover::device
