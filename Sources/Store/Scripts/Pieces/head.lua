-- The head of a request, which `unpacked` reads and `RedisCommand.extend(headOf:in:)` writes:
--
--   8                 hash of the apns-id
--   4                 hash of its source
--   1                 flags: why it comes again, COMES_AGAIN: 0 it does not, 1 a redrive, UNFINISHED a redrive of what the device has no
--                     outcome of; REMOVES_ALL, it removes all notifications; WAITS_FOR_PLACE, it has a trigger, so that no removal of all bars
--                     it; IS_BOUNDED, it removes what has its own revision and nothing newer; MAY_REPLACE, it may take the place of what is
--                     pending under its identifier
--   20                revision: timestamp 8, partition 4, offset 8
--   1, then so many   terms: hash of the application 8; for a person also hash of the user 8, time of the record 8; where a removal names
--                     a notification without collapse id these two, or zeros, and its apns-id 16
--   1, then so many   `c` and the collapse id, or nothing
local HEAD = '>c8c4Bc20Bc0Bc0'
local COMES_AGAIN, UNFINISHED, REMOVES_ALL, WAITS_FOR_PLACE, IS_BOUNDED, MAY_REPLACE = 3, 2, 4, 8, 16, 32
