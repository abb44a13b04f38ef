// What published tables leave blank, by publisher: data/calibration/sources.yaml.
//
// A table row says "TP 8, PP 8" and leaves out whether the framework keeps attention scores or which FLOPs
// its TFLOP/s count. Every such setting is either known (and from where) or assumed (and why); whoever uses
// an assumed one says so.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "calibration/measured.h"

namespace sextant::calibration {

struct Setting {
  std::string value;
  std::string why;  ///< where it is known from, or why it is assumed
  bool known = false;
  /// The table's own cell would lose: a case that corrects what was printed.
  bool corrects_table = false;
};

struct SourceProfile {
  std::string title;
  std::map<std::string, Setting, std::less<>> settings;

  /// nullptr when nothing is said of `key`.
  const Setting* find(std::string_view key) const;
};

/// The settings that hold for `row`: its publisher's, the cases that match it, and what its model's name
/// says. A row of an unknown publisher has only the latter. Throws base::UserError for a broken file.
SourceProfile profile_of(const MeasuredRow& row);

/// What is known of a row whose error is not the projection's fault, or is unexplained; empty for most.
std::string remark_of(const std::string& id);

/// A row with the settings that fill its blanks; remembers which assumptions were used.
class RowSettings {
 public:
  explicit RowSettings(const MeasuredRow& row) : profile_(profile_of(row)) {}

  bool has(std::string_view key) const { return profile_.find(key) != nullptr; }
  /// The setting, or `fallback` when there is none.
  std::string text(std::string_view key, std::string_view fallback);
  double number(std::string_view key, double fallback);
  int integer(std::string_view key, int fallback);
  bool yes(std::string_view key, bool fallback);
  /// Whether word `word` stands in a setting that is a list of words.
  bool lists(std::string_view key, std::string_view word);

  /// The cell, or else the setting, or else `fallback`. A case that corrects the table wins over the cell.
  std::int64_t cell_or(const MeasuredRow::Count& cell, std::string_view key, std::int64_t fallback);
  std::string cell_or(const std::string& cell, std::string_view key, std::string_view fallback);

  /// A sentence for each assumption used so far, in order of use.
  const std::vector<std::string>& assumptions() const { return assumptions_; }
  void assume(const std::string& sentence);

 private:
  const Setting* use(std::string_view key);

  SourceProfile profile_;
  std::vector<std::string> assumptions_;
};

}  // namespace sextant::calibration
