#include "http/server.h"
