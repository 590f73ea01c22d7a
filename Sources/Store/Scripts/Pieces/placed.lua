-- Where the hash of an apns-id stands in the window of recent ids, or nil. `at` is where the bytes of the hash are found first.
-- Needs the local `find`.
local function placed(window, hash, at)
  while at and (at - 7) % 12 ~= 0 do at = find(window, hash, at + 1, true) end
  return at
end
