// CLOVER_OPS_TRACE=1 prints one line of JSON for each call.
#include <clover/ops.h>
#include <unistd.h>

#include <cstdio>
#include <sstream>

#include "check.hpp"
#include "json_reader.hpp"
#include "plugin_files.hpp"

namespace {

// What a body prints on stderr.
template <class Body>
std::vector<std::string> stderr_lines(Body&& body) {
  std::FILE* file = std::tmpfile();
  std::fflush(stderr);
  const int saved = dup(2);
  dup2(fileno(file), 2);
  body();
  std::fflush(stderr);
  dup2(saved, 2);
  close(saved);
  std::rewind(file);
  std::string text;
  for (int c; (c = std::fgetc(file)) != EOF;) text += static_cast<char>(c);
  std::fclose(file);
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

}  // namespace

TEST(one_line_of_json_for_each_call) {
  plugin_files::set_variable("CLOVER_OPS_TRACE", "1");
  const float source[6] = {1, 2, 3, 4, 5, 6};
  float target[6], y[6];
  const clover::TensorView x(source, clover::DType::kFloat32, {1, 2, 3}), weight(source, clover::DType::kFloat32, {3});
  const std::vector<std::string> lines = stderr_lines([&] {
    clover::cast({}, x, {target, clover::DType::kFloat32, {1, 2, 3}});
    clover::rms_norm_gated({}, x, weight, x, 1e-6, {y, clover::DType::kFloat32, {1, 2, 3}});
    CHECK_THROWS(clover::InvalidArgument, [&] { clover::cast({}, x, x); });  // nothing was chosen: no line
  });
  CHECK_EQUAL(lines.size(), size_t{2});
  const std::string prefix = "clover-ops: ";
  for (const std::string& line : lines) CHECK_EQUAL(line.substr(0, prefix.size()), prefix);
  const json::Value first = json::parse(lines.at(0).substr(prefix.size()));
  CHECK_EQUAL(first["op"].text, std::string("cast"));
  CHECK_EQUAL(first["device"].text, std::string("cpu"));
  const json::Value second = json::parse(lines.at(1).substr(prefix.size()));
  CHECK_EQUAL(second["op"].text, std::string("rms_norm_gated"));
  CHECK_EQUAL(second["backend"].text, std::string("cpu"));
  CHECK_EQUAL(second["provider"].text, std::string("native"));
  CHECK_EQUAL(second["slot"].number, 0);
  CHECK_EQUAL(second["dims"]["T"].number, 1);
  CHECK_EQUAL(second["dims"]["HV"].number, 2);
  CHECK_EQUAL(second["dims"]["V"].number, 3);
}
