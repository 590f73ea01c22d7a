-- The head of a request, as `unpacked` takes it apart and `RedisCommand.extend(headOf:in:)` writes it:
--
--   8                 hash of the apns-id
--   4                 hash of its source
--   1                 why it comes again: 0 it does not, 1 a replay, 2 a redrive, 3 a redrive of what the device has no outcome of
--   20                revision: timestamp 8, partition 4, offset 8
--   1, then so many   terms: hash of the application 8; for a person also hash of the user 8, time of the record 8; where a removal names
--                     a notification without collapse id these two, or zeros, and its apns-id 16
--   1, then so many   `c` and the collapse id, or nothing
local HEAD = '>c8c4Bc20Bc0Bc0'
