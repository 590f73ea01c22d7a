/// Sets how long the end of a process that runs tests waits for its named threads, in seconds: 60 unless it is set. One that is ending may
/// take its time.
void threads_left_wait(int seconds);
