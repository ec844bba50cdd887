// Environment variables, read in one place. A value that means nothing is an error, never a silent default.
#pragma once

#include <string>
#include <vector>

namespace clover {

// 0/1 switches: unset and empty mean 0. Throws Error(CLOVER_INVALID_ARGUMENT) for anything but 0 and 1.
bool environment_switch(const char* name);

// A list, split at `separator`; empty items are dropped. `given` tells an empty list from an unset variable.
std::vector<std::string> environment_list(const char* name, char separator, bool* given = nullptr);

}  // namespace clover
