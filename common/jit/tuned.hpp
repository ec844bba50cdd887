// Tuned tables: for one kind of device, which provider takes a call and how a kernel is configured. docs/jit.md has the
// format, clover_ops/jit/tuned.py is its twin.
#pragma once

#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "kernel_table.hpp"

namespace clover::jit {

class TunedTable {
 public:
  // Gives the value of a name, or false where there is none.
  using ValueOf = std::function<bool(const std::string& name, Constant* value)>;

  // Throws device::Failure with the line; `where` begins its message.
  static TunedTable parse(const std::string& text, const std::string& where);

  // For a device of that name: the user's own table, else the one beside the plugin, else an empty one. A table that
  // cannot be read is told on stderr and passed over.
  static TunedTable load(const std::string& device);

  // The slot that the first matching line names, or CLOVER_ANY_SLOT.
  int32_t slot(const std::string& op, const ValueOf& value_of) const;

  // The configuration that the first matching line names, or null. It lives as long as the table.
  const Config* config(const std::string& kernel, const ValueOf& value_of) const;

  // The file it came from, or "none".
  const std::string& origin() const { return origin_; }
  bool has_choices() const { return !choices_.empty(); }

 private:
  struct Condition {
    std::string name, relation;
    Constant value;
    bool holds(const ValueOf& value_of) const;
  };
  struct Choice {
    std::string op;
    std::vector<Condition> conditions;
    int32_t slot;
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

  std::vector<Choice> choices_;
  std::deque<Setting> settings_;  // never moved: launches point at their configurations
  std::string origin_ = "none";
};

}  // namespace clover::jit
