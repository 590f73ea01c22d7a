-- The verdict if the device gets no request with these terms, else nil: it is not registered, its application or its person is another one,
-- or the person had it only after the request was published. `application` is the hash that the terms begin with. Needs the locals `find`,
-- `sub` and `unpacked`.
local function refusal(owner, application, terms)
  local WRONG_USER, UNREGISTERED, WRONG_APPLICATION = 4, 5, 6
  if not owner then return UNREGISTERED end
  if find(owner, application, 17, true) ~= 17 then return WRONG_APPLICATION end
  if #terms == 8 then return end
  local user, ANYBODY, JOINED_LATE = sub(terms, 9, 16), '\0\0\0\0\0\0\0\0', 5000
  if user == ANYBODY then return end
  if sub(owner, 1, 8) ~= user or unpacked('>I8', owner, 9) > unpacked('>I8', terms, 17) + JOINED_LATE then return WRONG_USER end
end
