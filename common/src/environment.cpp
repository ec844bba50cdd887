#include "environment.hpp"

#include <cstdlib>
#include <cstring>
#include <sstream>

#include "error.hpp"

namespace clover {

bool environment_switch(const char* name) {
  const char* text = std::getenv(name);
  if (text == nullptr || *text == '\0' || std::strcmp(text, "0") == 0) return false;
  if (std::strcmp(text, "1") == 0) return true;
  throw Error(CLOVER_INVALID_ARGUMENT, std::string(name) + " must be 0 or 1, got `" + text + "`");
}

std::vector<std::string> environment_list(const char* name, char separator, bool* given) {
  const char* text = std::getenv(name);
  if (given != nullptr) *given = text != nullptr && *text != '\0';
  std::vector<std::string> items;
  if (text == nullptr) return items;
  std::istringstream stream(text);
  for (std::string item; std::getline(stream, item, separator);) {
    const size_t first = item.find_first_not_of(' '), last = item.find_last_not_of(' ');
    if (first != std::string::npos) items.push_back(item.substr(first, last - first + 1));
  }
  return items;
}

}  // namespace clover
