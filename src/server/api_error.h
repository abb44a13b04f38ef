// What a client is told when its request cannot be served: OpenAI's error object.
#pragma once

#include <stdexcept>
#include <string>

#include "base/error.h"
#include "http/message.h"

namespace sextant::server {

struct ApiError {
  int status = 400;
  std::string message = {};
  std::string param = {};      ///< the parameter at fault, as a key path; empty: none
  std::string code = {};       ///< such as "context_length_exceeded"; empty: none
  double retry_after_s = 0.0;  ///< above 0: said in the header Retry-After
};

/// Thrown while a request is read and prepared; caught once, where it is answered.
class RequestError : public std::runtime_error {
 public:
  explicit RequestError(ApiError error) : std::runtime_error(error.message), error_(std::move(error)) {}
  const ApiError& error() const { return error_; }

 private:
  ApiError error_;
};

/// A user's fault that was found below: status 400, the key path as parameter.
ApiError api_error(const base::UserError& error);

/// {"error": {"message", "type", "param", "code"}}; the type follows from the status.
std::string error_json(const ApiError& error);
http::Response error_response(const ApiError& error);

}  // namespace sextant::server
