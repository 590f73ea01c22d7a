import Foundation
import JSON
import TestSupport
import Testing

/// The samples of the device library at a running cluster: what their panels show, and what reaches application and cluster.
@Suite struct DeviceSampleTests {
  @Test func `an invitation shows photo, date and place, says what was answered, and application and cluster get each answer`() async throws
  {
    let gif = "GIF89a`\u{1}\u{8}\u{1}" + String(repeating: "x", count: 96)
    let answer = "HTTP/1.1 200 OK\r\ncontent-length: \(gif.utf8.count)\r\n\r\n\(gif)"
    try await ScriptedServer.with({ _ in .reply(answer) }) { _, port in
      try await CarillonCommand.with { carillon in
        let fetch =
          #"{"name":"fetch","use":"attach","hosts":["127.0.0.1:\#(port)"],"networks":["127.0.0.0/8"],"plaintext":true,"attachments":[{"url":"/photo"}],"budget":30000,"timeout":30000}"#
        let extensions = try carillon.file("extensions.json", #"{"applications":{"com.example.events":[\#(fetch)]}}"#)
        let url = try await Self.up(
          carillon, ["--extensions", extensions, "--media", "\(carillon.folder.path)/media", "--media-listen", "127.0.0.1:0"])
        let sample = try Sample("EventInvitation", carillon, url, token: "d1", ["\(carillon.folder.path)/ada.state"])
        try await sample.expect("-- the cluster has the change")
        for (number, (action, sentence)) in zip(
          1...,
          [("accept", "Going!"), ("decline", "Not going."), ("maybe", "Maybe."), ("comment I bring the cake", "You: I bring the cake")])
        {
          let payload = try carillon.file(
            "payload-\(number).json",
            """
            {"aps":{"alert":{"title":"Party \(number)","body":"You are invited"},"category":"event-invite","mutable-content":1},
             "date":"Saturday, 20:00","place":"At the lake","photo":"http://127.0.0.1:\(port)/cat.gif"}
            """)
          try await Self.publish(carillon, "com.example.events", ["--collapse-id", "party-\(number)", "--payload", payload])
          try await sample.expect("[party-\(number)] Party \(number): You are invited")
          try sample.type("expand party-\(number)")
          for text in [
            "│ Party", "│ photo ", "│ image/gif ", "│ 106 bytes ", "When: Saturday, 20:00", "Where: At the lake",
            "<Accept>  <! Decline>  <Maybe>  <Comment …>",
          ] { try await sample.expect(text) }
          try sample.type("act party-\(number) \(action)")
          let name = action.prefix { $0 != " " }
          for text in [sentence, "-- the panel is closed", "-- the application has the action \(name) of party-\(number)"] {
            try await sample.expect(text)
          }
        }
        let responses = try await Self.events(carillon, "response", 4)
        #expect(responses.map { $0["action"] } == ["accept", "decline", "maybe", "comment"])
        #expect(responses.last?["userText"] == "I bring the cake")
        try sample.type("quit")
        #expect(try await sample.process.result().status == 0)
      }
    }
  }

  @Test(.onlyInAll("the invitation is the sample of the short form"))
  func `a square turns in its panel, and its action to reset comes and goes`() async throws {
    try await CarillonCommand.with { carillon in
      let sample = try Sample("RedGreenNotifications", carillon, try await Self.up(carillon, []), token: "d2")
      try await sample.expect("-- the cluster has the change")
      for (identifier, color) in [("red", "red"), ("far-green", "green")] {
        if identifier == color {
          try sample.type(color)
        } else {
          try await Self.publish(
            carillon, "com.example.squares",
            ["--collapse-id", identifier, "--title", "A square", "--body", "From afar", "--category", color])
        }
        try await sample.expect("[\(identifier)] A square")
        try sample.type("expand \(identifier)")
        try await sample.expect("■ \(color), turned by 0°")
        #expect(try await sample.actions() == "<Rotate 20°>")
        // The reset comes with the first tap, goes with the ninth, comes with the tenth, and goes when it is taken.
        for tap in 1...11 {
          try sample.type("act \(identifier) \(tap == 11 ? "reset" : "rotate")")
          try await sample.expect("turned by \(tap == 11 ? 0 : tap * 20)°")
          #expect(try await sample.actions() == (tap == 9 || tap == 11 ? "<Rotate 20°>" : "<Rotate 20°>  <Reset rotation>"), "tap \(tap)")
        }
        try sample.type("act \(identifier) reset")
        try await sample.expect("!! its panel has no action 'reset'")
        try sample.type("\(identifier == color ? "open" : "dismiss") \(identifier)")
        try await sample.expect("-- the panel is closed")
        let action = identifier == color ? "Default" : "Dismiss"
        try await sample.expect("-- the application has the action com.apple.UNNotification\(action)ActionIdentifier of \(identifier)")
      }
      // The responses in the panels stay there, and so does all of the local notification.
      #expect(try await Self.events(carillon, "dismissed", 1).count == 1)
      let responses = try await carillon.run(["events", "--from", "beginning", "--type", "response", "--until-idle", "1s", "--json"])
      #expect(responses.output.isEmpty, "\(responses.output)")
      // While the phone is locked its watch shows them, and acts.
      try sample.type("lock")
      try sample.type("red")
      try await sample.expect("-- on the watch: It is red")
      try await sample.expect("-- the watch has shown red")
      try sample.type("watch dismiss red")
      try await sample.expect("-- the application has the action com.apple.UNNotificationDismissActionIdentifier of red")
      try sample.type("quit")
      #expect(try await sample.process.result().status == 0)
    }
  }

  @Test(.onlyInAll("KilledDeviceTests have what a trapped extension leaves"))
  func `a response at which a content extension trapped is an event that says so, and explain tells it`() async throws {
    try await CarillonCommand.with { carillon in
      let device = String(repeating: "d3", count: 32)
      let arguments = [try await Self.up(carillon, []), device, carillon.folder.appendingPathComponent("state").path, "0"]
      func start(_ kind: String) throws -> RunningCommand {
        try carillon.start(
          arguments + [kind], environment: ["SWIFT_BACKTRACE": "enable=no"], program: CarillonCommand.product("KilledDevice"))
      }
      let (id, trapping) = (UUID().uuidString.lowercased(), try start("traps"))
      // A request to a device that is not registered yet ends at once.
      #expect(try await Self.events(carillon, "registered", 1).count == 1)
      let published = try await carillon.run([
        "publish", "--target", "device:\(device)", "--app", "com.example.shop", "--collapse-id", "b", "--title", "Order",
        "--category", "reply", "--id", id,
      ])
      #expect(published.status == 0, "it said: \(published.errors)")
      let ended = try await trapping.result()
      #expect(ended.status > 128 && ended.lines.contains { $0.hasPrefix("asked ") }, "\(ended.output) \(ended.errors)")
      let again = try start("forwards")
      let event = try #require(try await Self.events(carillon, "response", 1).first)
      #expect(event["action"] == "like" && event["unanswered"] == true, "\(event.text)")
      let told = try await carillon.run(["explain", id])
      #expect(told.output.contains("unanswered"), "\(told.output) \(told.errors)")
      again.signal(SIGKILL)
    }
  }

  @Test func `every snippet of the tutorial stands in a sample`() throws {
    let package = ReadmeTests.package
    let article = try String(
      contentsOf: package.appendingPathComponent("Sources/carillon/Documentation.docc/DeviceTutorial.md"), encoding: .utf8)
    let folder = package.appendingPathComponent("Sources/Samples/EventInvitation")
    let sources = try ["main.swift", "InvitationExtension.swift"].map {
      Self.lines(try String(contentsOf: folder.appendingPathComponent($0), encoding: .utf8))
    }
    let blocks = article.matches(of: /```swift\n((?s:.+?))```/).map { String($0.1) }
    #expect(blocks.count { $0.hasPrefix("// swift-tools-version") } == 1)
    let snippets = blocks.filter { !$0.hasPrefix("// swift-tools-version") }.map(Self.lines)
    #expect(snippets.count >= 4)
    for snippet in snippets {
      let isThere = sources.contains { lines in
        lines.indices.contains { lines[$0...].starts(with: snippet) }
      }
      #expect(isThere, "no sample has: \(snippet.joined(separator: "\n"))")
    }
  }

  /// `Deploy/check-imports` has what the product brings along.
  @Test(.onlyInAll("SwiftPM reads two packages")) func `the package of the tutorial has its library, from a clone in a folder of any name`()
    async throws
  {
    let package = ReadmeTests.package
    let article = try String(
      contentsOf: package.appendingPathComponent("Sources/carillon/Documentation.docc/DeviceTutorial.md"), encoding: .utf8)
    let manifest = try #require(article.firstMatch(of: /```swift\n(\/\/ swift-tools-version(?s:.+?))```/)?.1)
    try await CarillonCommand.with { carillon in
      let (files, folder) = (FileManager.default, carillon.folder.appendingPathComponent("party"))
      try files.createDirectory(at: folder.appendingPathComponent("Sources/Party"), withIntermediateDirectories: true)
      try "".write(to: folder.appendingPathComponent("Sources/Party/main.swift"), atomically: true, encoding: .utf8)
      try files.createSymbolicLink(at: carillon.folder.appendingPathComponent("any name"), withDestinationURL: package)
      for (product, isThere) in [("CarillonDevice", true), ("CarillonDevices", false)] {
        try manifest.replacing("../carillon", with: "../any name").replacing("CarillonDevice", with: product).write(
          to: folder.appendingPathComponent("Package.swift"), atomically: true, encoding: .utf8)
        let read = try await carillon.run(
          ["swift", "package", "--package-path", folder.path, "show-dependencies"], program: URL(fileURLWithPath: "/usr/bin/env"))
        #expect((read.status == 0) == isThere, "\(read.output) \(read.errors)")
      }
    }
  }

  /// The lines without their indentation.
  private static func lines(_ text: String) -> [String] {
    text.split(separator: "\n").map { $0.trimmingCharacters(in: .whitespaces) }.filter { !$0.isEmpty }
  }

  // MARK: The cluster

  /// Starts a cluster; returns where devices connect.
  private static func up(_ carillon: CarillonCommand, _ flags: [String]) async throws -> String {
    let up = try carillon.start(CarillonCommand.up + flags)
    return try #require(try JSONValue(parsing: try await up.firstLine())["devices"]?.stringValue)
  }

  private static func publish(_ carillon: CarillonCommand, _ application: String, _ flags: [String]) async throws {
    let published = try await carillon.run(["publish", "--target", "user:ada", "--app", application] + flags)
    #expect(published.status == 0, "it said: \(published.errors)")
  }

  private static func events(_ carillon: CarillonCommand, _ type: String, _ count: Int) async throws -> [JSONValue] {
    try await carillon.run(
      ["events", "--from", "beginning", "--type", type, "--limit", "\(count)", "--until-idle", "5m", "--json"]
    ).lines.map { try JSONValue(parsing: $0) }
  }
}

/// A sample that runs, and a person who types and reads.
private final class Sample {
  let process: RunningCommand
  private let input = Pipe()
  /// How many characters of its output the person has read.
  private var read = 0

  init(_ name: String, _ carillon: CarillonCommand, _ url: String, token: String, _ more: [String] = []) throws {
    process = try carillon.start(
      [url, String(repeating: token, count: 32), "ada"] + more, streams: .init(input: input.fileHandleForReading),
      program: CarillonCommand.product(name))
    // It asks first whether it may show notifications.
    try type("yes")
  }

  func type(_ line: String) throws { try input.fileHandleForWriting.write(contentsOf: Data((line + "\n").utf8)) }

  /// Reads up to a text, and returns what stands before it.
  @discardableResult
  func expect(_ text: String, _ location: SourceLocation = #_sourceLocation) async throws -> Substring {
    var unread: Substring = ""
    await eventually("'\(text)' in \(unread)\(process.errorsSoFar)", location) {
      unread = process.outputSoFar.dropFirst(read)
      return unread.contains(text)
    }
    guard let found = unread.range(of: text) else { throw ClusterFailure("no '\(text)'") }
    read += unread.distance(from: unread.startIndex, to: found.upperBound)
    return unread[..<found.lowerBound]
  }

  /// The actions at the end of the panel that is being read.
  func actions() async throws -> String {
    let rest = try await expect("┘")
    let line = rest.split(separator: "\n").last { $0.hasPrefix("│ ") } ?? ""
    return line.dropFirst(2).dropLast(2).trimmingCharacters(in: .whitespaces)
  }
}
