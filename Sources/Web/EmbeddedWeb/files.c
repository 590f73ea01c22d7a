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
    FILE("device/alerts.js")
#embed "../device/alerts.js"
    END
    FILE("device/boot.js")
#embed "../device/boot.js"
    END
    FILE("device/center.js")
#embed "../device/center.js"
    END
    FILE("device/device.css")
#embed "../device/device.css"
    END
    FILE("device/dom.js")
#embed "../device/dom.js"
    END
    FILE("device/icon.png")
#embed "../device/icon.png"
    END
    FILE("device/icon.svg")
#embed "../device/icon.svg"
    END
    FILE("device/index.html")
#embed "../device/index.html"
    END
    FILE("device/manifest.webmanifest")
#embed "../device/manifest.webmanifest"
    END
    FILE("device/panel.js")
#embed "../device/panel.js"
    END
    FILE("device/rows.js")
#embed "../device/rows.js"
    END
    FILE("device/samples.js")
#embed "../device/samples.js"
    END
    FILE("device/service-worker.js")
#embed "../device/service-worker.js"
    END
    FILE("device/settings.js")
#embed "../device/settings.js"
    END
    FILE("rules.js")
#embed "../rules.js"
    END
    FILE("extensions.js")
#embed "../extensions.js"
    END
  }
  return NULL;
}
