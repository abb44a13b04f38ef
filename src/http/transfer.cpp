#include "http/transfer.h"

#include <algorithm>
#include <cmath>
#include <new>
#include <stdexcept>

namespace sextant::http {
namespace {

void append(List& list, const std::string& line) {
  curl_slist* longer = curl_slist_append(list.get(), line.c_str());
  if (longer == nullptr) throw std::bad_alloc();
  (void)list.release();
  list.reset(longer);
}

bool one_line(const std::string& text) { return text.find_first_of("\r\n") == std::string::npos; }

}  // namespace

void initialise_libcurl() {
  static const CURLcode initialised = curl_global_init(CURL_GLOBAL_DEFAULT);
  if (initialised != CURLE_OK) throw std::runtime_error("libcurl cannot be initialised");
}

long milliseconds(double seconds) { return std::max(1L, std::lround(std::min(seconds, 1e6) * 1000)); }

FailureKind kind_of(CURLcode code) {
  switch (code) {
    case CURLE_URL_MALFORMAT:
    case CURLE_UNSUPPORTED_PROTOCOL:
      return FailureKind::kBadUrl;
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_COULDNT_CONNECT:
    case CURLE_PROXY:
    case CURLE_SSL_CONNECT_ERROR:  // also a reset within the handshake
      return FailureKind::kConnect;
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_CIPHER:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_ISSUER_ERROR:
      return FailureKind::kTls;
    case CURLE_OPERATION_TIMEDOUT:
      return FailureKind::kTimeout;
    default:
      return FailureKind::kBroken;
  }
}

bool is_connected(CURL* easy) {
  curl_off_t ready_us = 0;
  curl_easy_getinfo(easy, CURLINFO_PRETRANSFER_TIME_T, &ready_us);
  return ready_us > 0;
}

List header_lines(const Request& request) {
  List lines;
  append(lines,
         "Expect:");  // libcurl would ask permission for large bodies, which many servers do not answer
  for (const Header& header : request.headers) append(lines, header.name + ": " + header.value);
  for (const SecretHeader& header : request.secret_headers) {
    append(lines, header.name + ": " + header.prefix + header.value.reveal());
  }
  return lines;
}

bool headers_are_lines(const Request& request) {
  return std::ranges::all_of(request.headers, [](const Header& h) { return one_line(h.name + h.value); }) &&
         std::ranges::all_of(request.secret_headers,
                             [](const SecretHeader& h) { return one_line(h.prefix + h.value.reveal()); });
}

void set_options(CURL* easy, const Request& request, const ClientOptions& options) {
  curl_easy_setopt(easy, CURLOPT_URL, request.url.c_str());
  curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
  curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, 1L);
  curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, 2L);
  curl_easy_setopt(easy, CURLOPT_SSLVERSION, static_cast<long>(CURL_SSLVERSION_TLSv1_2));
  if (!options.authorities_file.empty()) {
    curl_easy_setopt(easy, CURLOPT_CAINFO, options.authorities_file.c_str());
    curl_easy_setopt(easy, CURLOPT_CAPATH, nullptr);
  }
  curl_easy_setopt(easy, CURLOPT_USERAGENT, options.user_agent.c_str());
  curl_easy_setopt(easy, CURLOPT_ACCEPT_ENCODING, "");
  curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, milliseconds(request.timeouts.connect_s));
  curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, milliseconds(request.timeouts.total_s));
  if (request.method == "POST") {
    curl_easy_setopt(easy, CURLOPT_POST, 1L);
    curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request.body.size()));
    curl_easy_setopt(easy, CURLOPT_POSTFIELDS, request.body.data());
  } else {
    curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, request.method.c_str());
  }
}

}  // namespace sextant::http
