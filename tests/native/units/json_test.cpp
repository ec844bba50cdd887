// Whatever text a plugin or a file name holds, what is written is JSON in UTF-8.
#include "json.hpp"

#include "check.hpp"
#include "json_reader.hpp"

namespace {

std::string written(const std::string& text) {
  clover::JsonWriter writer;
  return writer.open('{').key("k").value(text).close('}').text();
}

}  // namespace

TEST(every_byte_below_128_comes_back) {
  std::string text;
  for (char c = 0; c < 127; ++c) text += c;
  CHECK_EQUAL(json::parse(written(text))["k"].text, text);
}

TEST(utf8_stays) {
  for (const char* text : {"", "\xC3\xA9", "\xE2\x82\xAC", "\xF0\x9F\x8D\x80", "a\xEF\xBF\xBF"})
    CHECK_EQUAL(written(text), "{\"k\": \"" + std::string(text) + "\"}");
}

TEST(what_is_no_utf8_is_replaced) {
  const std::string mark = "\xEF\xBF\xBD";
  // A stray byte, a cut character, an overlong form, a surrogate, beyond the last character.
  for (const char* text : {"\x80", "\xC3", "\xC0\x80", "\xED\xA0\x80", "\xF4\x90\x80\x80", "\xFF"})
    CHECK_EQUAL(written(text).substr(0, 9), "{\"k\": \"" + mark.substr(0, 2));
  CHECK_EQUAL(written("a\xC3z"), "{\"k\": \"a" + mark + "z\"}");
}

TEST(nesting_and_commas) {
  clover::JsonWriter writer;
  writer.open('{').key("a").open('[').value(1).value(std::string("b")).open('[').close(']').close(']');
  writer.key("c").value(-2).close('}');
  CHECK_EQUAL(writer.text(), std::string("{\"a\": [1, \"b\", []], \"c\": -2}"));
}
