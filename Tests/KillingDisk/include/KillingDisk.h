// Makes SQLite kill the process, as SIGKILL does, before its `step`th change of a file; a write is half done then.
void killing_disk_begin(long step);

// How many changes of files there have been.
long killing_disk_steps(void);
