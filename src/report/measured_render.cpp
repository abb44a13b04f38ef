#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "base/units.h"
#include "report/measured.h"
#include "report/planning.h"

namespace sextant::report {
namespace {

std::string heading(const Json& document) {
  return document.at("model").get<std::string>() + " on " + document.at("cluster").get<std::string>();
}

std::string plain_table(const Section& section, const Style& style) {
  Table table(section.header, section.align);
  for (const auto& row : section.rows) table.add(row);
  return table.text(style);
}

bool ends_in_text(const Section& section) {
  return section.align.size() < section.header.size() || section.align.back() == Align::kLeft;
}

/// A table whose last column goes on in further lines where the terminal ends: below itself, or where there
/// is no room, below the line.
std::string folded_table(const Section& section, const Style& style) {
  constexpr std::size_t kRoom = 24;
  constexpr int kIndent = 8;
  const auto without_last = [](std::vector<std::string> cells) {
    cells.pop_back();
    return cells;
  };
  Table table(without_last(section.header), section.align);
  for (const auto& row : section.rows) table.add(without_last(row));
  const std::vector<std::string> lines = base::split(table.text(style), '\n');
  std::size_t begin = 0;
  for (const std::string& line : lines) begin = std::max(begin, display_width(line) + 2);
  const auto width = static_cast<std::size_t>(style.width);
  const bool titled = lines.size() > section.rows.size() + 1;  // the text ends with a line end
  std::string text;
  for (std::size_t i = 0; i < section.rows.size() + (titled ? 1 : 0); ++i) {
    const bool heading = titled && i == 0;
    const std::string& cell = heading ? section.header.back() : section.rows[i - (titled ? 1 : 0)].back();
    text += lines[i];
    if (!cell.empty() && (heading || begin + kRoom <= width || begin + display_width(cell) <= width)) {
      text += std::string(begin - display_width(lines[i]), ' ') +
              (heading ? dim(cell, style) : wrapped(cell, style.width, static_cast<int>(begin)));
    } else if (!cell.empty()) {
      text += "\n" + std::string(kIndent, ' ') + wrapped(cell, style.width, kIndent);
    }
    text += "\n";
  }
  return text;
}

/// A cell of a Markdown table: no line ends, no bars.
std::string cell(const std::string& text) {
  std::string safe;
  for (const char c : text) {
    if (c == '|') safe += '\\';
    safe += c == '\n' ? ' ' : c;
  }
  return safe;
}

std::string markdown_row(const std::vector<std::string>& cells) {
  std::string line = "|";
  for (const std::string& text : cells) line += " " + cell(text) + " |";
  return line + "\n";
}

std::string markdown_table(const Section& section) {
  std::string text = markdown_row(section.header) + "|";
  for (std::size_t i = 0; i < section.header.size(); ++i) {
    const bool right = i < section.align.size() && section.align[i] == Align::kRight;
    text += right ? "---:|" : "---|";
  }
  text += "\n";
  for (const auto& row : section.rows) text += markdown_row(row);
  return text;
}

std::string paragraphs(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += "- " + line + "\n";
  return text.empty() ? text : text + "\n";
}

std::string csv_cell(const Json& value) {
  if (value.is_null()) return "";
  const std::string text = value.is_string() ? value.get<std::string>() : value.dump();
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + "\"";
}

}  // namespace

std::string section_text(const Section& section, const Style& style) {
  std::string text = bold(section.title, style) + "\n";
  for (const std::string& line : section.before) text += "  " + wrapped(line, style.width - 2, 2) + "\n";
  if (!section.rows.empty())
    text += ends_in_text(section) ? folded_table(section, style) : plain_table(section, style);
  for (const std::string& line : section.after) text += "  " + wrapped(line, style.width - 2, 2) + "\n";
  for (const std::string& line : section.commands) text += "  " + line + "\n";
  return text;
}

std::string measured_text(const Json& document, const Style& style) {
  std::string text = bold(heading(document), style) +
                     dim(", " + document.at("backend").get<std::string>() + ", measured by " +
                             document.at("evaluator").get<std::string>(),
                         style) +
                     "\n";
  for (const Section& section : measured_sections(document)) text += "\n" + section_text(section, style);
  return text;
}

std::string measured_markdown(const Json& document) {
  std::string text =
      fmt::format("# {}\n\n{}, measured by `{}`, planner `{}`\n", heading(document),
                  document.at("backend").get<std::string>(), document.at("evaluator").get<std::string>(),
                  document.at("planner").get<std::string>());
  for (const Section& section : measured_sections(document)) {
    text += "\n## " + section.title + "\n\n" + paragraphs(section.before);
    if (!section.rows.empty()) text += markdown_table(section) + "\n";
    text += paragraphs(section.after);
    if (!section.commands.empty()) {
      text += "```\n";
      for (const std::string& line : section.commands) text += line + "\n";
      text += "```\n";
    }
    while (text.ends_with("\n\n")) text.pop_back();
  }
  return text;
}

std::string measured_csv(const Json& document) {
  const std::vector<std::string> fields{"trial",
                                        "point",
                                        "repeat",
                                        "planner",
                                        "state",
                                        "measured",
                                        "projected",
                                        "ratio",
                                        "incumbent",
                                        "peak_bytes",
                                        "projected_peak_bytes",
                                        "price_s",
                                        "why",
                                        "message",
                                        "conditions",
                                        "host",
                                        "folder",
                                        "command"};
  std::string text;
  for (const std::string& field : fields) text += (text.empty() ? "" : ",") + field;
  text += "\r\n";
  for (const Json& trial : document.at("history")) {
    std::string line;
    for (const std::string& field : fields)
      line += (field == fields.front() ? "" : ",") + csv_cell(trial.at(field));
    text += line + "\r\n";
  }
  return text;
}

std::string replay_text(const Json& document, const Style& style) {
  const bool same = document.at("same");
  std::string text = fmt::format(
      "{}: {} decisions, {}\n", document.at("run").get<std::string>(), document.at("decisions").get<int>(),
      same ? green("the same as recorded", style) : red("not those of the record", style));
  if (!same) text += document.at("divergence").get<std::string>() + "\n";
  for (const Json& change : document.at("changes")) text += "  - " + change.get<std::string>() + "\n";
  return text;
}

std::string sweep_text(const Json& document, const Style& style) {
  std::string text =
      bold(heading(document), style) + dim(", " + document.at("backend").get<std::string>(), style) + "\n\n";
  if (document.at("start").is_null()) return text + red("No layout of this space may be run.", style) + "\n";
  const Json& start = document.at("start");
  Section steps{.title = "One knob at a time, by projection"};
  steps.before.push_back("from " + layout_line(start.at("layout")));
  steps.before.push_back(fmt::format("{:.5g} tokens/s/GPU, {:.1f} GiB",
                                     start.at("throughput").at("tokens_per_s_per_gpu").get<double>(),
                                     start.at("memory").at("peak_bytes").get<double>() / base::kGiB));
  steps.header = {"axis", "from", "to", "change", "GiB", ""};
  steps.align = {Align::kLeft, Align::kRight, Align::kRight, Align::kRight, Align::kRight};
  const auto percent = [](const Json& share) {
    return share.is_null() ? "-" : fmt::format("{:+.1f} %", share.get<double>() * 100);
  };
  const auto gib_change = [](const Json& bytes) {
    return bytes.is_null() ? "-" : fmt::format("{:+.1f}", bytes.get<double>() / base::kGiB);
  };
  const auto reason = [](const Json& row) {
    std::string remark;
    for (const Json& other : row.at("also_changed"))
      remark += (remark.empty() ? "with " : " ") + other.get<std::string>();
    if (row.at("rejected").is_null()) return remark;
    return remark + (remark.empty() ? "" : "; ") + row.at("why").get<std::string>();
  };
  for (const Json& row : document.at("effects")) {
    steps.rows.push_back({row.at("axis").get<std::string>(), row.at("from").get<std::string>(),
                          row.at("value").get<std::string>(), percent(row.at("change")),
                          gib_change(row.at("peak_change_bytes")), reason(row)});
  }
  text += section_text(steps, style);
  Section pairs{.title = "Gains in pairs",
                .header = {"together", "if they added up", "projected", ""},
                .align = {Align::kLeft, Align::kRight, Align::kRight}};
  for (const Json& pair : document.at("pairs")) {
    pairs.rows.push_back(
        {pair.at("values")[0].get<std::string>() + " " + pair.at("values")[1].get<std::string>(),
         percent(pair.at("apart")), percent(pair.at("change")), reason(pair)});
  }
  if (!pairs.rows.empty()) text += "\n" + section_text(pairs, style);
  Section notes{.title = "Notes"};
  for (const Json& note : document.at("notes")) notes.before.push_back(note.get<std::string>());
  if (!notes.before.empty()) text += "\n" + section_text(notes, style);
  return text;
}

}  // namespace sextant::report
