// What a Triton kernel is asked for by: docs/jit.md has the text's format, clover_ops/jit/request.py is its twin.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace clover::jit {

struct Argument {
  std::string name;
  std::string type;            // *bf16, i32, ...
  std::string specialisation;  // "", "16" or "1"; one that equals 1 is not passed
};

struct Request {
  std::string kernel;
  std::string source;    // digest of the kernel's sources
  std::string target;    // cuda:90:32
  std::string features;  // sramecc+:xnack-, or nothing
  std::vector<Argument> arguments;
  std::vector<std::pair<std::string, std::string>> constexprs;  // values as the text has them
  int num_warps = 4;
  int num_stages = 1;
  std::map<std::string, std::string> options;

  std::string text() const;
  std::string digest() const;
  std::string passed_types() const;  // an artifact's `arguments`
};

}  // namespace clover::jit
