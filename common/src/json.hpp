// Just enough JSON to write: objects and arrays nested by the caller, strings escaped.
#pragma once

#include <cstdint>
#include <string>

namespace clover {

class JsonWriter {
 public:
  JsonWriter& open(char bracket) { return separate(), text_ += bracket, fresh_ = true, *this; }
  JsonWriter& close(char bracket) { return text_ += bracket, fresh_ = false, *this; }
  JsonWriter& key(const std::string& name) { return separate(), quote(name), text_ += ": ", fresh_ = true, *this; }
  JsonWriter& value(const std::string& text) { return separate(), quote(text), *this; }
  JsonWriter& value(int64_t number) { return separate(), text_ += std::to_string(number), *this; }
  const std::string& text() const { return text_; }

 private:
  void separate() {
    if (!fresh_) text_ += ", ";
    fresh_ = false;
  }

  void quote(const std::string& text) {
    static constexpr char kHex[] = "0123456789abcdef";
    text_ += '"';
    for (const char c : text) {
      if (c == '"' || c == '\\') {
        text_ += {'\\', c};
      } else if (static_cast<unsigned char>(c) < 0x20) {
        text_ += {'\\', 'u', '0', '0', kHex[c >> 4 & 15], kHex[c & 15]};
      } else {
        text_ += c;
      }
    }
    text_ += '"';
  }

  std::string text_;
  bool fresh_ = true;  // nothing stands before the next item
};

}  // namespace clover
