// pkg-config points into the folder of hiredis.
#include <hiredis.h>
#include <async.h>
