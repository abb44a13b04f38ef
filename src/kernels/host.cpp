#include "kernels/host.h"

#include <fstream>
#include <sstream>

namespace sextant::kernels {

std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  std::string line;
  while (std::getline(file, line)) {
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  }
  return "unknown processor";
}

StolenTime::StolenTime() : begin_(read()) {}

double StolenTime::share() const {
  const Jiffies now = read();
  const double all = now.all - begin_.all;
  return all > 0.0 ? (now.stolen - begin_.stolen) / all : 0.0;
}

/// The first line of /proc/stat: "cpu", then user, nice, system, idle, iowait, irq, softirq, steal, …
/// (proc(5)).
StolenTime::Jiffies StolenTime::read() {
  constexpr int kStealColumn = 7;
  std::ifstream file("/proc/stat");
  std::string line;
  std::getline(file, line);
  std::istringstream words(line.size() > 4 ? line.substr(4) : std::string());
  Jiffies jiffies;
  double value = 0.0;
  for (int column = 0; words >> value; ++column) {
    jiffies.all += value;
    if (column == kStealColumn) jiffies.stolen = value;
  }
  return jiffies;
}

}  // namespace sextant::kernels
