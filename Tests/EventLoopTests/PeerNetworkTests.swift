import Testing

@testable import EventLoop

@Suite struct PeerNetworkTests {
  private func network(_ host: String) -> PeerNetwork? { SocketAddress(host: host, port: 1).withNumeric { PeerNetwork($0) } ?? nil }

  @Test func anIPv4AddressStandsForItself() {
    #expect(network("192.0.2.1") != nil)
    #expect(network("192.0.2.1") != network("192.0.2.2"))
    #expect(network("::ffff:192.0.2.1") == network("192.0.2.1"))
  }

  @Test func anIPv6AddressStandsForItsNetwork() {
    #expect(network("2001:db8:1:2::1") == network("2001:db8:1:2:ffff::2"))
    #expect(network("2001:db8:1:2::1") != network("2001:db8:1:3::1"))
    #expect(network("::1") != network("127.0.0.1"))
  }

  @Test func aNameHasNone() { #expect(network("localhost") == nil) }
}
