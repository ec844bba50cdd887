#include "tuned.hpp"

#include <algorithm>
#include <cctype>
#include <clover_backend/registration.hpp>
#include <cstdio>
#include <cstdlib>
#include <map>
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

// A provider in C++ sets no other kind.
Constant value_from(const std::string& text, const std::string& word) {
  if (text == "true" || text == "false") return {text == "true", true};
  const size_t digits = text[0] == '-' ? 1 : 0;
  const bool number =
      text.size() > digits && text.size() < 19 && text.find_first_not_of("0123456789", digits) == std::string::npos;
  if (!number) fail("`" + word + "`: the value must be an integer, true or false");
  return {std::stoll(text), false};
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
  return value_of(name, &have) && have.boolean == value.boolean && compares(have.value);
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
    Condition one{word.substr(0, at), relation->second, value_from(word.substr(at + length), word)};
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
  if ((words[0] != "device" && words[0] != "architecture") || words.size() < 2)
    fail("a line is device, architecture, choose or config");
}

TunedTable TunedTable::parse(const std::string& text, const std::string& where) {
  std::istringstream lines(text);
  TunedTable table;
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    try {
      if (number > 1)
        table.read_line(split(line));
      else if (line != kFormat)
        fail(std::string("the first line must be `") + kFormat + "`");
    } catch (const device::Failure& failure) {
      fail(where + ":" + std::to_string(number) + ": `" + line + "`: " + failure.what());
    }
  }
  table.origin_ = where;
  return table;
}

TunedTable TunedTable::load(const std::string& device) {
  const std::string name = slug(device);
  const device::CodeCache users("tuned");
  for (const std::string& path : {users.folder() + "/" + std::string(backend::name) + "-" + name + ".txt",
                                  device::own_folder() + "/tuned/" + name + ".txt"}) {
    const std::string text = device::read_file(path);
    if (text.empty()) continue;
    try {
      return parse(text, path);
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
