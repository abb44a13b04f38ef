// A disk for tests: it can run full, refuse to sync, and lose power.
//
// It is one of SQLite's file layers ("VFS") on top of the system's own. Of each file it keeps what was there
// when the file was last synced: what a power cut leaves for certain.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

namespace sextant::journal {

class FaultyDisk {
 public:
  /// Known to SQLite under `name` as long as it lives.
  explicit FaultyDisk(std::string name);
  FaultyDisk(const FaultyDisk&) = delete;
  FaultyDisk& operator=(const FaultyDisk&) = delete;
  ~FaultyDisk();

  const std::string& name() const { return name_; }

  long long room_bytes = -1;                    ///< so many bytes may still be written; -1: any number
  bool syncs_fail = false;                      ///< as after a failed write-back
  std::function<void()> after_sync{};           ///< called when something more is safe
  std::map<std::string, std::string> synced{};  ///< path -> bytes as of the last sync

  /// Writes what a power cut would leave of the journal `path` into the folder `target`. A journal that was
  /// just renamed is known by its earlier name.
  void lose_power(const std::string& path, const std::string& target) const;

 private:
  struct Registration;
  std::string name_;
  std::unique_ptr<Registration> registration_;
};

}  // namespace sextant::journal
