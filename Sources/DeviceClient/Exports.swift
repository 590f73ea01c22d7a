// A program of a device imports DeviceClient, and has the names of requests and the values of `userInfo`.
@_exported public import JSON
@_exported public import Notifications
