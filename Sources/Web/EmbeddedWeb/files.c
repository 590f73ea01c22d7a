// The files that a browser fetches, embedded by the compiler. It knows these files, so a build follows an edit of one.
// A new file gets its four lines here: WebTests compares them with the folder.
#include "EmbeddedWeb.h"

// Begins the bytes of the next file. The first `__COUNTER__` of a C file is 0.
#define FILE(path) \
  case __COUNTER__: { \
    static const char name[] = path; \
    static const unsigned char content[] = {
#define END \
    }; \
    *bytes = content; \
    *count = sizeof content; \
    return name; \
  }

const char *carillon_web_file(int index, const unsigned char **bytes, size_t *count) {
  switch (index) {
    FILE("carillon.js")
#embed "../carillon.js"
    END
    FILE("device/boot.js")
#embed "../device/boot.js"
    END
    FILE("device/device.css")
#embed "../device/device.css"
    END
    FILE("device/index.html")
#embed "../device/index.html"
    END
    FILE("device/page.js")
#embed "../device/page.js"
    END
  }
  return NULL;
}
