// Makes SQLite kill the process, as SIGKILL does, before its `step`th change of a file; a write is half done then.
void killing_disk_begin(long step);

// How many changes of files there have been.
long killing_disk_steps(void);

// What happens to the folder of attachments and to the program's file.
enum killing_fault {
  // The process is killed, as SIGKILL does.
  KILLING_KILL,
  // The disk is full from the step on.
  KILLING_FULL,
  // The disk is full at the step, and has room again after it.
  KILLING_FULL_ONCE,
};

// Lets that happen before the `step`th change of them; a write is half done then.
void killing_folder_begin(long step, enum killing_fault fault);

// How many changes of them there have been.
long killing_folder_steps(void);

// Does both, and counts the steps together, as those of the disk: the process is killed before the `step`th.
void killing_device_begin(long step);
