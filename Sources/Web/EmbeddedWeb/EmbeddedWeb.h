#pragma once

#include <stddef.h>

/// The files of `Sources/Web` that a browser fetches, in no order.
///
/// Returns the path of a file within that folder, and gives its bytes; null for an index beyond the last one.
const char *_Nullable carillon_web_file(
    int index, const unsigned char *_Nullable *_Nonnull bytes, size_t *_Nonnull count);
