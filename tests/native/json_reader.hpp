// Reads JSON as strictly as the grammar says, to look at what clover_describe() and the trace print.
#pragma once

#include <cstdlib>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

namespace json {

struct Value {
  enum Kind { kNumber, kText, kList, kObject } kind = kNumber;
  double number = 0;
  std::string text;
  std::vector<Value> list;
  std::map<std::string, Value> object;

  const Value& operator[](const std::string& key) const {
    const auto found = object.find(key);
    if (found == object.end()) throw std::runtime_error("no key " + key);
    return found->second;
  }

  // The object of a list whose `key` holds `text`.
  const Value& with(const std::string& key, const std::string& wanted) const {
    for (const Value& item : list)
      if (item[key].text == wanted) return item;
    throw std::runtime_error("no item with " + key + " " + wanted);
  }
};

class Reader {
 public:
  explicit Reader(const std::string& text) : text_(text) {}

  Value document() {
    Value value = read();
    skip_space();
    if (at_ != text_.size()) fail("more after the document");
    return value;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw std::runtime_error("JSON: " + what + " at " + std::to_string(at_) + " of " + text_);
  }

  void skip_space() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
  }

  char next() {
    skip_space();
    if (at_ == text_.size()) fail("ends too early");
    return text_[at_];
  }

  bool take(char wanted) {
    if (next() != wanted) return false;
    ++at_;
    return true;
  }

  void expect(char wanted) {
    if (!take(wanted)) fail(std::string("expected ") + wanted);
  }

  Value read() {
    Value value;
    if (next() == '"') {
      value.kind = Value::kText;
      value.text = string();
    } else if (take('[')) {
      value.kind = Value::kList;
      if (take(']')) return value;
      do value.list.push_back(read());
      while (take(','));
      expect(']');
    } else if (take('{')) {
      value.kind = Value::kObject;
      if (take('}')) return value;
      do {
        next();
        const std::string key = string();
        expect(':');
        if (!value.object.emplace(key, read()).second) fail("key twice: " + key);
      } while (take(','));
      expect('}');
    } else {
      char* end = nullptr;
      value.number = std::strtod(text_.c_str() + at_, &end);
      if (end == text_.c_str() + at_) fail("no value");
      at_ = static_cast<size_t>(end - text_.c_str());
    }
    return value;
  }

  std::string string() {
    expect('"');
    std::string value;
    while (at_ < text_.size() && text_[at_] != '"') {
      if (static_cast<unsigned char>(text_[at_]) < 0x20) fail("control character in a string");
      if (text_[at_] == '\\') {
        const char escape = text_.at(++at_);
        if (escape == 'u') {
          value += static_cast<char>(std::stoi(text_.substr(at_ + 1, 4), nullptr, 16));
          at_ += 4;
        } else if (escape == '"' || escape == '\\') {
          value += escape;
        } else {
          fail("escape");
        }
      } else {
        value += text_[at_];
      }
      ++at_;
    }
    if (at_ >= text_.size()) fail("string without end");
    ++at_;
    return value;
  }

  const std::string& text_;
  size_t at_ = 0;
};

inline Value parse(const std::string& text) {
  return Reader(text).document();
}

}  // namespace json
