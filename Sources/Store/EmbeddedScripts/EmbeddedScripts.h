#pragma once

/// The text of a file of the folder `Scripts` or `Scripts/Pieces`, by its name without `.lua`; null when there is no such file.
const char *_Nullable carillon_script(const char *_Nonnull name);
