-- Sets `refused` to the verdict if the device gets no request with these terms, else to a false value.
-- Needs the piece `refusals`, and the locals `find`, `owner`, `terms`, `application` (its hash) and `isForPerson` (whether the terms name
-- more than the application). It is no function, for it runs for each request.
local refused = not owner and UNREGISTERED or find(owner, application, 17, true) ~= 17 and WRONG_APPLICATION
  or isForPerson and isAnothers(owner, terms) and WRONG_USER
