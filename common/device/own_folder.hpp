// Where this plugin is, with what travels beside its library.
#pragma once

#include <string>

namespace clover::device {

// The folder of the library that this code is in.
std::string own_folder();

// A whole file; empty when it cannot be read.
std::string read_file(const std::string& path);

}  // namespace clover::device
