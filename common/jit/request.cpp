#include "request.hpp"

#include "common/device/sha256.hpp"

namespace clover::jit {

std::string Request::text() const {
  std::string text = "clover-jit 1\n";
  const auto line = [&](const char* item, const std::string& value) { text += std::string(item) + " " + value + "\n"; };
  line("kernel", kernel);
  line("source", source);
  line("target", target);
  line("features", features);
  for (const Argument& argument : arguments) {
    const std::string suffix = argument.specialisation.empty() ? "" : ":" + argument.specialisation;
    line("arg", argument.name + " " + argument.type + suffix);
  }
  for (const auto& [name, value] : constexprs) line("constexpr", name + " " + value);
  line("num_warps", std::to_string(num_warps));
  line("num_stages", std::to_string(num_stages));
  for (const auto& [key, value] : options) line("option", key + " " + value);
  return text;
}

std::string Request::digest() const {
  return device::sha256_hex(text());
}

std::string Request::passed_types() const {
  std::string types;
  for (const Argument& argument : arguments) {
    if (argument.specialisation == "1") continue;
    if (!types.empty()) types += ' ';
    types += argument.type;
  }
  return types;
}

}  // namespace clover::jit
