-- Removes a worker that ends, unless another process with its name has reported itself since.
--
-- KEYS: the workers; their reports.
-- ARGV: name; when the process began; the bytes that a report may have.
-- Answers 1 if the worker was there and is removed, else 0.
local report = redis.call('HGET', KEYS[2], ARGV[1])
if report and #report <= tonumber(ARGV[3]) then
  local isRead, said = pcall(cjson.decode, report)
  if isRead and type(said) == 'table' and type(said.started) == 'number' and said.started ~= tonumber(ARGV[2]) then return 0 end
end
redis.call('HDEL', KEYS[2], ARGV[1])
return redis.call('ZREM', KEYS[1], ARGV[1])
