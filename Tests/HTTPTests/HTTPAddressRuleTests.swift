import Testing

@testable import HTTP

@Suite struct HTTPAddressRuleTests {
  @Test(arguments: [
    ("0.0.0.0", "unspecified"), ("0.255.255.255", "unspecified"), ("10.0.0.0", "private"), ("10.255.255.255", "private"),
    ("100.64.0.0", "carrier"), ("100.100.100.200", "carrier"), ("100.127.255.255", "carrier"), ("127.0.0.1", "loopback"),
    ("127.255.255.255", "loopback"), ("169.254.0.0", "link-local"), ("169.254.169.254", "link-local"), ("169.254.255.255", "link-local"),
    ("172.16.0.0", "private"), ("172.31.255.255", "private"), ("192.0.0.192", "protocol"), ("192.0.2.1", "documentation"),
    ("192.88.99.1", "6to4"), ("192.168.0.0", "private"), ("192.168.255.255", "private"), ("198.18.0.0", "benchmarking"),
    ("198.19.255.255", "benchmarking"), ("198.51.100.7", "documentation"), ("203.0.113.255", "documentation"), ("224.0.0.1", "multicast"),
    ("239.255.255.255", "multicast"), ("240.0.0.0", "reserved"), ("255.255.255.254", "reserved"), ("255.255.255.255", "broadcast"),
    ("168.63.129.16", "metadata"),

    ("::", "unspecified"), ("::1", "loopback"), ("::7f00:1", "reserved"), ("fc00::", "unique-local"), ("fd00:ec2::254", "unique-local"),
    ("fdff:ffff::1", "unique-local"), ("fe80::1", "link-local"), ("febf::1", "link-local"), ("fec0::1", "site-local"),
    ("ff02::1", "multicast"), ("2001:db8::1", "documentation"), ("3fff::1", "documentation"), ("2001:2::1", "benchmarking"),
    ("2001:20::1", "protocol"), ("100::1", "reserved"), ("4000::1", "reserved"), ("1fff::1", "reserved"), ("5f00::1", "reserved"),

    ("::ffff:10.0.0.1", "private, 10.0.0.1"), ("::ffff:127.0.0.1", "loopback"), ("::ffff:169.254.169.254", "link-local"),
    ("::ffff:0.0.0.0", "unspecified"), ("64:ff9b::10.0.0.1", "private"), ("64:ff9b::a9fe:a9fe", "link-local, 169.254.169.254"),
    ("64:ff9b:1::8.8.8.8", "local NAT64"), ("64:ff9b:1:ffff::1", "local NAT64"), ("2002:7f00:1::", "loopback, 127.0.0.1"),
    ("2002:c0a8:101::1", "private, 192.168.1.1"),
    // Teredo: a private server; then a public one with the client 10.0.0.1, turned over.
    ("2001:0:a00:1::f7f7:f7f7", "private, 10.0.0.1"), ("2001:0:808:808::f5ff:fffe", "private, 10.0.0.1"),
  ])
  func specialPurposeIsRefused(address: String, kind: String) throws {
    let parsed = try #require(IPAddress(address))
    let reason = try #require(HTTPAddressRule().refusal(of: parsed), "\(address) is admitted")
    #expect(reason.contains(kind), "\(address): \(reason)")
  }

  @Test(arguments: [
    "1.1.1.1", "8.8.8.8", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "126.255.255.255", "128.0.0.0", "169.253.255.255",
    "169.255.0.0", "172.15.255.255", "172.32.0.0", "192.167.255.255", "192.169.0.0", "198.17.255.255", "198.20.0.0", "203.0.112.255",
    "223.255.255.255", "168.63.129.15", "2606:4700:4700::1111", "2a00:1450:4001:82a::200e", "2001:4860:4860::8888", "2001:200::1",
    "3ffe::1", "::ffff:8.8.8.8", "64:ff9b::8.8.8.8", "2002:808:808::1", "2001:0:808:808::f7f7:f7f7",
  ])
  func thePublicInternetIsAdmitted(address: String) throws {
    #expect(HTTPAddressRule().refusal(of: try #require(IPAddress(address))) == nil)
  }

  @Test func namedNetworksAreAdmittedInEveryForm() throws {
    let rule = HTTPAddressRule(admitting: [try IPNetwork("10.1.0.0/16"), try IPNetwork("fd00:1::/32"), try IPNetwork("64:ff9b:1::/48")])
    for text in ["10.1.0.0", "10.1.255.255", "::ffff:10.1.2.3", "64:ff9b::10.1.2.3", "2002:a01:203::1", "fd00:1::5", "64:ff9b:1::10.0.0.1"]
    {
      #expect(rule.refusal(of: try #require(IPAddress(text))) == nil, "\(text)")
    }
    for text in ["10.0.255.255", "10.2.0.0", "127.0.0.1", "::ffff:10.2.0.0", "fd00:2::5", "::1"] {
      #expect(rule.refusal(of: try #require(IPAddress(text))) != nil, "\(text)")
    }
    let everything4 = HTTPAddressRule(admitting: [try IPNetwork("0.0.0.0/0")])
    #expect(everything4.refusal(of: try #require(IPAddress("127.0.0.1"))) == nil)
    #expect(everything4.refusal(of: try #require(IPAddress("::1"))) != nil)
  }

  @Test(arguments: [
    ("10.0.0.0/8", "10.0.0.0/8"), ("192.0.2.1", "192.0.2.1/32"), ("0.0.0.0/0", "0.0.0.0/0"), ("::/0", "::/0"), ("::1", "::1/128"),
    ("FD00::/8", "fd00::/8"), ("2001:DB8:0:0::/64", "2001:db8::/64"), ("255.255.255.255/32", "255.255.255.255/32"),
  ])
  func networksAreRead(text: String, form: String) throws {
    let network = try IPNetwork(text)
    #expect(network.description == form)
    #expect(network.contains(network.first))
  }

  @Test(arguments: [
    ("", "no network"), ("ten", "no network"), ("10.0.0/8", "no network"), ("10.0.0.0/", "prefix length"), ("10.0.0.0/33", "0 to 32"),
    ("::/129", "0 to 128"), ("10.0.0.0/-1", "prefix length"), ("10.0.0.0/+8", "prefix length"), ("10.0.0.0/8/8", "prefix length"),
    ("10.0.0.0/0008", "prefix length"), ("10.0.0.1/8", "write 10.0.0.0/8"), ("fe80::1%eth0/64", "no network"), ("[::1]/128", "no network"),
    ("010.0.0.0/8", "no network"), (" 10.0.0.0/8", "no network"), ("10.0.0.0/8\r\n", "prefix length"),
  ])
  func whatIsNoNetworkSaysWhy(text: String, reason: String) {
    do {
      let network = try IPNetwork(text)
      Issue.record("'\(text)' was read as \(network)")
    } catch {
      #expect(error.description.contains(reason), "\(error)")
      #expect(!error.description.contains("\n"))
    }
  }
}
