#include "report/profile.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/units.h"
#include "report/planning.h"

namespace sextant::report {
namespace {

std::string ratio(const Json& pass) { return fmt::format("{:.3f}", pass.at("factor").get<double>()); }
std::string seconds(const Json& value) { return base::format_seconds(value.get<double>()); }

std::vector<std::string> row_of(const Json& layer) {
  std::vector<std::string> row{layer.at("name").get<std::string>()};
  for (const char* pass : {"forward", "backward"}) {
    const Json& times = layer.at(pass);
    row.insert(row.end(), {seconds(times.at("measured_s")), seconds(times.at("projected_s")), ratio(times)});
  }
  const Json& saved = layer.at("saved");
  row.push_back(saved.is_null() ? "-" : ratio(saved));
  return row;
}

}  // namespace

Section profile_section(const Json& document) {
  Section section{.title = "Measured layers"};
  if (!document.contains("profile")) return section;
  const Json& profile = document.at("profile");
  const Json& layout = profile.at("layout");
  section.before.push_back(
      fmt::format("from {}, measured on {} with tp {}, cp {}, ep {}, mbs {}, {} tokens",
                  profile.at("source").get<std::string>(),
                  layout.at("gpus") == 1 ? "one GPU" : layout.at("gpus").dump() + " GPUs",
                  layout.at("tp").dump(), layout.at("cp").dump(), layout.at("ep").dump(),
                  layout.at("mbs").dump(), layout.at("sequence_tokens").dump()));
  section.header = {"layer",    "forward",   "projected", "factor",
                    "backward", "projected", "factor",    "kept bytes"};
  section.align.assign(section.header.size(), Align::kRight);
  section.align[0] = Align::kLeft;
  for (const Json& layer : profile.at("layers")) section.rows.push_back(row_of(layer));
  section.after.emplace_back(
      "compute of these layers, and bytes they keep, are the cost model's times the factor; all else in "
      "every projection is the cost model's");
  for (const Json& name : profile.at("unmeasured"))
    section.after.push_back(
        fmt::format("{} layers are not in the profile: the cost model's", name.get<std::string>()));
  return section;
}

std::string profile_text(const Json& document, const Style& style) {
  const Section section = profile_section(document);
  return section.rows.empty() ? std::string() : "\n" + section_text(section, style);
}

}  // namespace sextant::report
