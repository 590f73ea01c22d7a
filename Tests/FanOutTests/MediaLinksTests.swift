import Cryptography
import Notifications
import Testing

@testable import FanOut

/// A link to a file is good for one file, one device and a while, and nobody else can make one.
@Suite struct MediaLinksTests {
  private static let hash = MediaHash(String(repeating: "ab", count: 32))!
  private static let other = MediaHash(String(repeating: "cd", count: 32))!
  private static let now: Int64 = 1_764_000_000

  private static func keys(_ keys: [UInt8]) -> InForce<KeyRing> {
    InForce(KeyRing(keys.map { KeyRing.Key([UInt8](repeating: $0, count: 32)) }))
  }

  private static func links(_ key: UInt8 = 7) -> MediaLinks {
    MediaLinks(MediaLinkSettings(base: "https://push.example.com/a", seconds: 3_600), keys([key]))
  }

  /// A link's hash and parameters.
  static func parts(_ url: String) throws -> (path: String, parameters: [String: String]) {
    let halves = url.split(separator: "?").map(String.init)
    let pairs = halves[1].split(separator: "&").map { $0.split(separator: "=", maxSplits: 1).map(String.init) }
    return (halves[0], Dictionary(uniqueKeysWithValues: pairs.map { ($0[0], $0[1]) }))
  }

  private static func judge(
    _ links: MediaLinks, _ hash: MediaHash, _ parameters: [String: String], now: Int64 = now
  ) -> MediaLinks.Judgement {
    links.judge(hash, device: parameters["device"], expires: parameters["expires"], signature: parameters["signature"], now: now)
  }

  @Test func aLinkIsGoodUntilItExpires() throws {
    let link = Self.links().link(to: Self.hash, deviceHash: 0xFEED, now: Self.now)
    #expect(link.expires == Self.now + 3_600)
    let (path, parameters) = try Self.parts(link.url)
    #expect(path == "https://push.example.com/a/v1/media/\(Self.hash)")
    let checks = MediaLinks(nil, Self.keys([8, 7]))
    #expect(Self.judge(checks, Self.hash, parameters) == .good(seconds: 3_600))
    #expect(Self.judge(checks, Self.hash, parameters, now: link.expires) == .good(seconds: 0), "clocks differ a little")
    #expect(Self.judge(checks, Self.hash, parameters, now: link.expires + 60) == .expired)
  }

  @Test func aLinkThatWasChangedIsNone() throws {
    let links = Self.links()
    let (_, parameters) = try Self.parts(links.link(to: Self.hash, deviceHash: 0xFEED, now: Self.now).url)
    #expect(Self.judge(links, Self.other, parameters) == .wrong)
    #expect(Self.judge(Self.links(8), Self.hash, parameters) == .wrong)
    for (name, value) in parameters {
      for changed in ["", value + "0", String(value.dropLast()), value.uppercased() + "x", String(repeating: "9", count: 4_000)] {
        #expect(Self.judge(links, Self.hash, parameters.merging([name: changed]) { $1 }) == .wrong, "\(name)=\(changed.prefix(100))")
      }
      #expect(Self.judge(links, Self.hash, parameters.filter { $0.key != name }) == .wrong, "without \(name)")
    }
  }
}
