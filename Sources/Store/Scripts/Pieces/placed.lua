-- The position of an apns-id's hash in the window of recent ids, or nil. `at` is the first position at which the bytes of the hash occur.
-- Needs the local `find`.
local function placed(window, hash, at)
  while at and (at - 7) % 12 ~= 0 do at = find(window, hash, at + 1, true) end
  return at
end
