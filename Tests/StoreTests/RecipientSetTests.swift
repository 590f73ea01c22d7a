import Notifications
import Testing

@testable import Store

/// The keys of the sets in which the devices of a person are.
@Suite struct RecipientSetTests {
  @Test(arguments: ["ada", "\u{301}ada", "\u{200D}ada", "\u{FE0F}", "é", "e\u{301}", "a:b", "user:ada"])
  func `a registration names the set that a request for its person looks at, whatever the name begins with`(_ user: String) throws {
    let keys = Keys(buckets: 256)
    let token = try #require(DeviceToken(String(repeating: "ab", count: 32)))
    let registration = Registration(device: token, application: "com.example.shop", user: Name(user), since: 0)
    let application = "com.example.shop"
    let arena = Array((user + application).utf8)
    arena.withUnsafeBytes { bytes in
      let set = RecipientSet(
        user: ArenaSpan(start: 0, count: user.utf8.count), application: ArenaSpan(start: user.utf8.count, count: application.utf8.count))
      #expect(keys.sets(of: registration) == [Name(set.key(in: bytes, keys))])
    }
    #expect(keys.sets(of: registration).allSatisfy(keys.isSet))
  }
}
