// The scripts that run in Redis, embedded by the compiler. It knows these files, so a build follows an edit of one.
#include "EmbeddedScripts.h"
#include <string.h>

#define FILE(name) {name, (const char[]){
#define END , 0}},

static const struct {
  const char *name;
  const char *text;
} files[] = {
    FILE("cluster-claim")
#embed "../Scripts/cluster-claim.lua"
    END
    FILE("crash-loop-begin")
#embed "../Scripts/crash-loop-begin.lua"
    END
    FILE("crash-loop-clear")
#embed "../Scripts/crash-loop-clear.lua"
    END
    FILE("crash-loop-mark")
#embed "../Scripts/crash-loop-mark.lua"
    END
    FILE("judge")
#embed "../Scripts/judge.lua"
    END
    FILE("lane-beat")
#embed "../Scripts/lane-beat.lua"
    END
    FILE("lane-claim")
#embed "../Scripts/lane-claim.lua"
    END
    FILE("lane-list")
#embed "../Scripts/lane-list.lua"
    END
    FILE("mailbox-cancel")
#embed "../Scripts/mailbox-cancel.lua"
    END
    FILE("mailbox-delete")
#embed "../Scripts/mailbox-delete.lua"
    END
    FILE("mailbox-depth")
#embed "../Scripts/mailbox-depth.lua"
    END
    FILE("mailbox-evict")
#embed "../Scripts/mailbox-evict.lua"
    END
    FILE("mailbox-page")
#embed "../Scripts/mailbox-page.lua"
    END
    FILE("markers")
#embed "../Scripts/markers.lua"
    END
    FILE("presence-enter")
#embed "../Scripts/presence-enter.lua"
    END
    FILE("presence-gap")
#embed "../Scripts/presence-gap.lua"
    END
    FILE("presence-leave")
#embed "../Scripts/presence-leave.lua"
    END
    FILE("presence-refresh")
#embed "../Scripts/presence-refresh.lua"
    END
    FILE("recipients-page")
#embed "../Scripts/recipients-page.lua"
    END
    FILE("registration")
#embed "../Scripts/registration.lua"
    END
    FILE("results")
#embed "../Scripts/results.lua"
    END
    FILE("schedule-cancel")
#embed "../Scripts/schedule-cancel.lua"
    END
    FILE("schedule-due")
#embed "../Scripts/schedule-due.lua"
    END
    FILE("schedule-follow-up")
#embed "../Scripts/schedule-follow-up.lua"
    END
    FILE("schedule-pending")
#embed "../Scripts/schedule-pending.lua"
    END
    FILE("schedule-read")
#embed "../Scripts/schedule-read.lua"
    END
    FILE("schedule-settle")
#embed "../Scripts/schedule-settle.lua"
    END
    FILE("schedule-write")
#embed "../Scripts/schedule-write.lua"
    END
    FILE("worker-beat")
#embed "../Scripts/worker-beat.lua"
    END
    FILE("worker-leave")
#embed "../Scripts/worker-leave.lua"
    END
    FILE("worker-list")
#embed "../Scripts/worker-list.lua"
    END
    FILE("earlier")
#embed "../Scripts/Pieces/earlier.lua"
    END
    FILE("entries")
#embed "../Scripts/Pieces/entries.lua"
    END
    FILE("fields")
#embed "../Scripts/Pieces/fields.lua"
    END
    FILE("floor")
#embed "../Scripts/Pieces/floor.lua"
    END
    FILE("head")
#embed "../Scripts/Pieces/head.lua"
    END
    FILE("mend")
#embed "../Scripts/Pieces/mend.lua"
    END
    FILE("newness")
#embed "../Scripts/Pieces/newness.lua"
    END
    FILE("now")
#embed "../Scripts/Pieces/now.lua"
    END
    FILE("placed")
#embed "../Scripts/Pieces/placed.lua"
    END
    FILE("refusals")
#embed "../Scripts/Pieces/refusals.lua"
    END
    FILE("refused")
#embed "../Scripts/Pieces/refused.lua"
    END
};

const char *carillon_script(const char *name) {
  for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
    if (strcmp(files[i].name, name) == 0) return files[i].text;
  }
  return NULL;
}
