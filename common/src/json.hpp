// Just enough JSON to write: objects and arrays nested by the caller, strings escaped. Bytes that are no UTF-8, as a
// file name or a broken manifest may hold, become U+FFFD: readers refuse the whole text for one of them.
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
    for (size_t i = 0; i < text.size();) {
      const char c = text[i];
      const size_t length = sequence_length(text, i);
      if (length == 0) {
        text_ += "\xEF\xBF\xBD";
      } else if (c == '"' || c == '\\') {
        text_ += {'\\', c};
      } else if (static_cast<unsigned char>(c) < 0x20) {
        text_ += {'\\', 'u', '0', '0', kHex[c >> 4 & 15], kHex[c & 15]};
      } else {
        text_.append(text, i, length);
      }
      i += length == 0 ? 1 : length;
    }
    text_ += '"';
  }

  // Bytes of the UTF-8 character at `i`; 0 when there is none: stray or missing bytes, overlong forms, surrogates.
  static size_t sequence_length(const std::string& text, size_t i) {
    const auto byte = [&](size_t k) { return k < text.size() ? static_cast<unsigned char>(text[k]) : 0u; };
    const unsigned lead = byte(i), second = byte(i + 1);
    const size_t length = lead < 0x80 ? 1 : lead < 0xC2 ? 0 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : lead < 0xF5 ? 4 : 0;
    for (size_t k = 1; k < length; ++k)
      if ((byte(i + k) & 0xC0) != 0x80) return 0;
    const bool bad = (lead == 0xE0 && second < 0xA0) || (lead == 0xED && second > 0x9F) ||
                     (lead == 0xF0 && second < 0x90) || (lead == 0xF4 && second > 0x8F);
    return bad ? 0 : length;
  }

  std::string text_;
  bool fresh_ = true;  // nothing stands before the next item
};

}  // namespace clover
