import Notifications
import Store
import Testing

@Suite struct OwnerTests {
  private func takes(_ owner: Owner, user: UInt64, _ application: String = "com.example.shop") -> Bool {
    Array(application.utf8).withUnsafeBytes { owner.takes(user: user, application: $0) }
  }

  @Test func aDeviceGetsWhatIsForItsPersonOrForWhoeverHasItAndNothingOfAnyoneElse() {
    let (ada, grace) = (NameHash.user("ada"), NameHash.user("grace"))
    let adas = Owner(user: ada, since: 5, application: NameHash.hash("com.example.shop"))
    let nobodys = Owner(user: 0, since: 5, application: NameHash.hash("com.example.shop"))
    #expect(takes(adas, user: ada) && takes(adas, user: 0) && takes(nobodys, user: 0))
    #expect(!takes(adas, user: grace) && !takes(nobodys, user: ada))
    #expect(!takes(adas, user: ada, "com.example.other") && !takes(adas, user: 0, "com.example.other"))
  }
}
