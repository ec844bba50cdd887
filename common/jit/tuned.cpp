#include "tuned.hpp"

#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <clover_backend/registration.hpp>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <set>
#include <sstream>

#include "common/device/code_cache.hpp"
#include "common/device/failure.hpp"
#include "common/device/own_folder.hpp"

namespace clover::jit {
namespace {

constexpr const char* kFormat = "clover-tuned 1";

[[noreturn]] void fail(const std::string& what) {
  throw device::Failure(CLOVER_COMPILE_ERROR, what);
}

std::vector<std::string> split(const std::string& line) {
  std::istringstream stream(line);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

// An integer as Python writes it: no zero before other digits.
bool is_integer(const std::string& text) {
  const size_t digits = text[0] == '-' ? 1 : 0;
  if (text.size() <= digits || text.size() >= 19) return false;
  if (text.find_first_not_of("0123456789", digits) != std::string::npos) return false;
  return text[digits] != '0' || text == "0";
}

// A provider in C++ sets no other kind.
Constant value_from(const std::string& text, const std::string& word) {
  if (text == "true" || text == "false") return {text == "true", true};
  if (!is_integer(text)) fail("`" + word + "`: the value must be an integer, true or false");
  return {std::stoll(text), false};
}

bool is_float_or_dtype(const std::string& text) {
  static const std::set<std::string> kDtypes = {"bf16", "fp16", "fp32", "fp64", "i1",  "i8", "i16",
                                                "i32",  "i64",  "u8",   "u16",  "u32", "u64"};
  if (kDtypes.count(text) != 0) return true;
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  return *end == '\0' && std::isfinite(value) && text.find_first_of(".e") != std::string::npos;
}

// `NVIDIA H200` is nvidia-h200 in file names.
std::string slug(const std::string& device) {
  std::string text;
  for (const char letter : device) {
    const auto one = static_cast<unsigned char>(letter);
    if (std::isalnum(one) != 0)
      text += static_cast<char>(std::tolower(one));
    else if (!text.empty() && text.back() != '-')
      text += '-';
  }
  if (!text.empty() && text.back() == '-') text.pop_back();
  return text;
}

}  // namespace

bool TunedTable::Condition::compares(int64_t have) const {
  switch (relation) {
    case Relation::kEqual:
      return have == value.value;
    case Relation::kAtLeast:
      return have >= value.value;
    case Relation::kAtMost:
      return have <= value.value;
    case Relation::kAbove:
      return have > value.value;
    default:
      return have < value.value;
  }
}

bool TunedTable::Condition::holds(const ValueOf& value_of) const {
  Constant have;
  return possible && value_of(name, &have) && have.boolean == value.boolean && compares(have.value);
}

std::vector<TunedTable::Condition> TunedTable::conditions(const std::vector<std::string>& words, size_t first,
                                                          size_t last, bool integers) {
  static const std::map<std::string, Relation> kRelations = {{"==", Relation::kEqual},
                                                             {">=", Relation::kAtLeast},
                                                             {"<=", Relation::kAtMost},
                                                             {">", Relation::kAbove},
                                                             {"<", Relation::kBelow}};
  std::vector<Condition> all;
  for (size_t i = first; i < last; ++i) {
    const std::string& word = words[i];
    const size_t at = word.find_first_of("<>=");
    const size_t length = at != std::string::npos && at + 1 < word.size() && word[at + 1] == '=' ? 2 : 1;
    const auto relation = at == std::string::npos ? kRelations.end() : kRelations.find(word.substr(at, length));
    if (relation == kRelations.end() || at == 0 || at + length >= word.size())
      fail("`" + word + "` must read <name><relation><value>, the relation one of >= <= == < >");
    Condition one{word.substr(0, at), relation->second, {0, false}};
    const std::string text = word.substr(at + length);
    one.possible = integers || one.relation != Relation::kEqual || !is_float_or_dtype(text);
    if (one.possible) one.value = value_from(text, word);
    if (one.value.boolean && (integers || one.relation != Relation::kEqual)) fail("`" + word + "` compares integers");
    all.push_back(std::move(one));
  }
  return all;
}

void TunedTable::read_choice(const std::vector<std::string>& words) {
  if (words.size() < 3) fail("`choose <operator> [<condition> ...] <slot>`");
  const Constant slot = value_from(words.back(), words.back());
  if (slot.boolean || slot.value < 0 || slot.value > 19) fail("the slot must be 0 to 19, got `" + words.back() + "`");
  auto known = choices_.find(words[1]);
  if (known == choices_.end()) {
    auto made = std::make_unique<Choices>();
    made->op = words[1];
    const std::string_view op = made->op;
    known = choices_.emplace(op, std::move(made)).first;
  }
  known->second->lines.push_back({conditions(words, 2, words.size() - 1, true), static_cast<int32_t>(slot.value)});
}

void TunedTable::read_setting(const std::vector<std::string>& words) {
  const auto arrow = std::find(words.begin(), words.end(), "->");
  if (words.size() < 4 || arrow == words.end() || arrow + 1 == words.end() || arrow == words.begin() + 1)
    fail("`config <kernel> [<condition> ...] -> <key>=<value> ...`");
  Setting setting{words[1], conditions(words, 2, static_cast<size_t>(arrow - words.begin()), false), {}};
  const auto known = std::find_if(kernel_table().begin(), kernel_table().end(),
                                  [&](const KernelRow& row) { return row.name == setting.kernel; });
  if (known == kernel_table().end()) fail("there is no kernel `" + setting.kernel + "`");
  for (auto word = arrow + 1; word != words.end(); ++word) {
    const size_t at = word->find('=');
    if (at == std::string::npos || at == 0 || at + 1 == word->size()) fail("`" + *word + "` must read <key>=<value>");
    const std::string key = word->substr(0, at), text = word->substr(at + 1);
    if (key == "num_warps" || key == "num_stages") {
      const Constant count = value_from(text, *word);
      if (count.boolean || count.value < 1 || count.value > 64) fail("`" + *word + "`: must be 1 to 64");
      (key == "num_warps" ? setting.config.num_warps : setting.config.num_stages) = static_cast<int>(count.value);
    } else if (std::find(known->constants.begin(), known->constants.end(), key) != known->constants.end()) {
      setting.config.constants.emplace_back(key, value_from(text, *word));
    } else {
      setting.config.options[key] = text;
    }
  }
  settings_.push_back(std::move(setting));
}

void TunedTable::read_line(const std::vector<std::string>& words) {
  if (words.empty() || words[0][0] == '#') return;
  if (words[0] == "choose") return read_choice(words);
  if (words[0] == "config") return read_setting(words);
  std::string* head = words[0] == "device" ? &device_ : words[0] == "architecture" ? &architecture_ : nullptr;
  if (head == nullptr || !head->empty() || words.size() < 2)
    fail("a line is device, architecture (once each), choose or config");
  for (size_t i = 1; i < words.size(); ++i) *head += (i == 1 ? "" : " ") + words[i];
}

void TunedTable::require(const std::string& device, const std::string& architecture) const {
  if (device_ == device && architecture_ == architecture) return;
  fail(origin_ + ": it is of `" + device_ + "` (" + architecture_ + "), this is `" + device + "` (" + architecture +
       ")");
}

TunedTable TunedTable::parse(const std::string& text, const std::string& where) {
  std::istringstream lines(text);
  TunedTable table;
  std::string line;
  for (int number = 1; std::getline(lines, line) || number == 1; ++number) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    try {
      if (number > 1)
        table.read_line(split(line));
      else if (line != kFormat)
        fail(std::string("the first line must be `") + kFormat + "`");
    } catch (const device::Failure& failure) {
      fail(where + ":" + std::to_string(number) + ": `" + line + "`: " + failure.what());
    }
  }
  if (table.device_.empty() || table.architecture_.empty())
    fail(where + ": there is no line `" + (table.device_.empty() ? "device" : "architecture") + " ...`");
  table.origin_ = where;
  return table;
}

TunedTable TunedTable::load(const std::string& device, const std::string& architecture) {
  const std::string name = slug(device);
  const device::CodeCache users("tuned");
  for (const std::string& path : {users.folder() + "/" + std::string(backend::name) + "-" + name + ".txt",
                                  device::own_folder() + "/tuned/" + name + ".txt"}) {
    if (access(path.c_str(), F_OK) != 0) continue;
    try {
      TunedTable table = parse(device::read_file(path), path);
      table.require(device, architecture);
      return table;
    } catch (const device::Failure& failure) {
      std::fprintf(stderr, "clover-ops: %s; the table is passed over\n", failure.what());
    }
  }
  return {};
}

void TunedTable::bind(Choices* choices, const clover_sizes& sizes) {
  for (Choice& line : choices->lines)
    for (Condition& condition : line.conditions)
      for (uint64_t i = 0; i < sizes.count; ++i)
        if (condition.name == sizes.names[i]) condition.place = static_cast<int>(i);
}

int32_t TunedTable::slot(const clover_sizes& sizes) const {
  const auto known = choices_.find(sizes.op);
  if (known == choices_.end()) return CLOVER_ANY_SLOT;
  std::call_once(known->second->bound, bind, known->second.get(), sizes);
  const auto holds = [&](const Condition& one) { return one.place >= 0 && one.compares(sizes.values[one.place]); };
  for (const Choice& line : known->second->lines)
    if (std::all_of(line.conditions.begin(), line.conditions.end(), holds)) return line.slot;
  return CLOVER_ANY_SLOT;
}

const Config* TunedTable::config(const std::string& kernel, const ValueOf& value_of) const {
  for (const Setting& setting : settings_) {
    const auto holds = [&](const Condition& one) { return one.holds(value_of); };
    if (setting.kernel == kernel && std::all_of(setting.conditions.begin(), setting.conditions.end(), holds))
      return &setting.config;
  }
  return nullptr;
}

}  // namespace clover::jit
