// What every transfer of libcurl is set up with, whether one is driven (client.h) or many (streams.h).
// Internal to the room: others see no libcurl.
#pragma once

#include <curl/curl.h>

#include <memory>

#include "http/client.h"
#include "http/message.h"

namespace sextant::http {

struct FreeMulti {
  void operator()(CURLM* multi) const { curl_multi_cleanup(multi); }
};
/// A multi handle keeps the connections that its transfers have opened.
using Multi = std::unique_ptr<CURLM, FreeMulti>;

struct FreeEasy {
  void operator()(CURL* easy) const { curl_easy_cleanup(easy); }
};
using Easy = std::unique_ptr<CURL, FreeEasy>;

struct FreeList {
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};
using List = std::unique_ptr<curl_slist, FreeList>;

/// Once a process. Throws std::runtime_error.
void initialise_libcurl();

/// At least 1.
long milliseconds(double seconds);

FailureKind kind_of(CURLcode code);

/// The connection stands: from here on something may have been sent.
bool is_connected(CURL* easy);

/// The request's header lines; they must outlive the transfer.
List header_lines(const Request& request);

/// No header holds a line break, which would end it and begin another.
bool headers_are_lines(const Request& request);

/// All but callbacks and header lines. `request.body` must outlive the transfer.
void set_options(CURL* easy, const Request& request, const ClientOptions& options);

}  // namespace sextant::http
