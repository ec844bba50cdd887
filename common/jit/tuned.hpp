// Tuned tables: for one kind of device, which provider takes a call and how a kernel is configured. docs/jit.md has the
// format, clover_ops/jit/tuned.py is its twin.
#pragma once

#include <clover/plugin.h>

#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "kernel_table.hpp"

namespace clover::jit {

class TunedTable {
 public:
  // Gives the value of a name, or false where there is none.
  using ValueOf = std::function<bool(const std::string& name, Constant* value)>;

  // Throws device::Failure with the line; `where` begins its message.
  static TunedTable parse(const std::string& text, const std::string& where);

  // For that device: the user's own table, else the one beside the plugin, else an empty one. A table that cannot be
  // read, or is of another device, is told on stderr and passed over.
  static TunedTable load(const std::string& device, const std::string& architecture);

  // The slot that the first matching line names, or CLOVER_ANY_SLOT. The names of an operator's sizes are the same in
  // every call.
  int32_t slot(const clover_sizes& sizes) const;

  // The configuration that the first matching line names, or null. It lives as long as the table.
  const Config* config(const std::string& kernel, const ValueOf& value_of) const;

  // The file it came from, or "none".
  const std::string& origin() const { return origin_; }

 private:
  enum class Relation { kEqual, kAtLeast, kAtMost, kAbove, kBelow };
  struct Condition {
    std::string name;
    Relation relation;
    Constant value;
    bool possible = true;  // a float or a dtype is the value of nothing that a provider in C++ sets
    int place = -1;        // of the name among an operator's sizes
    bool compares(int64_t have) const;
    bool holds(const ValueOf& value_of) const;
  };
  struct Choice {
    std::vector<Condition> conditions;
    int32_t slot;
  };
  struct Choices {
    std::string op;
    std::vector<Choice> lines;
    std::once_flag bound;  // to the places of the names
  };
  struct Setting {
    std::string kernel;
    std::vector<Condition> conditions;
    Config config;
  };

  static std::vector<Condition> conditions(const std::vector<std::string>& words, size_t first, size_t last,
                                           bool integers);
  void read_line(const std::vector<std::string>& words);
  void read_choice(const std::vector<std::string>& words);
  void read_setting(const std::vector<std::string>& words);

  void require(const std::string& device, const std::string& architecture) const;

  static void bind(Choices* choices, const clover_sizes& sizes);

  std::string device_, architecture_;
  std::unordered_map<std::string_view, std::unique_ptr<Choices>> choices_;
  std::deque<Setting> settings_;  // never moved: launches point at their configurations
  std::string origin_ = "none";
};

}  // namespace clover::jit
