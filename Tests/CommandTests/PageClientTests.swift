import Foundation
import JSON
import TestSupport
import Testing

/// The client for a page that the article on the device protocol gives, as it stands there, in a real JavaScript engine.
@Suite struct PageClientTests {
  private static let article = ReadmeTests.package.appendingPathComponent("Sources/carillon/Documentation.docc/DeviceProtocol.md")
  private static let token = String(repeating: "ab", count: 32)

  /// What gives the client a page's surroundings: a store in a file, and a proxy whose connections stand still at SIGUSR2.
  private static let page = #"""
    import { carillon } from "./client.mjs";
    import fs from "node:fs";
    import net from "node:net";

    const [, , devices, device, file] = process.argv, target = new URL(devices), sockets = [];
    const store = {
      getItem: () => (fs.existsSync(file) ? fs.readFileSync(file, "utf8") : null),
      setItem: (_, text) => fs.writeFileSync(file, text) };
    let connections = 0;
    const proxy = net.createServer((client) => {
      const worker = net.connect(target.port, target.hostname);
      for (const socket of [client, worker]) sockets.push(socket.on("error", () => {}));
      client.pipe(worker).pipe(client);
      console.log(`connection ${++connections}`);
    });
    proxy.listen(0, "127.0.0.1", () => {
      const url = `ws://127.0.0.1:${proxy.address().port}${target.pathname}`;
      const hello = () => ({ device, application: "com.example.shop", user: "ada" });
      const respond = carillon(url, hello, store, (shown) => {
        console.log("shown " + shown.map(({ payload }) => payload.aps.alert.body).join());
        const asked = shown.find(({ payload }) => payload.aps.alert.body === "respond");
        if (asked) setTimeout(() => respond(asked, "com.apple.UNNotificationDefaultActionIdentifier"));
      });
    });
    process.on("SIGUSR2", () => {
      for (const socket of sockets.splice(0)) socket.unpipe().pause();
      console.log("frozen");
    });
    """#

  /// A Node that has `WebSocket`, from version 20.10 on.
  private static let node: URL? = {
    for folder in (ProcessInfo.processInfo.environment["PATH"] ?? "").split(separator: ":") {
      let program = URL(fileURLWithPath: "\(folder)/node")
      guard FileManager.default.isExecutableFile(atPath: program.path) else { continue }
      let process = Process()
      process.executableURL = program
      process.arguments = ["--experimental-websocket", "-e", "process.exit(typeof WebSocket === 'function' ? 0 : 1)"]
      process.standardError = FileHandle.nullDevice
      guard (try? process.run()) != nil else { continue }
      process.waitUntilExit()
      if process.terminationStatus == 0 { return program }
    }
    return nil
  }()

  /// Waits until a process has written a line that begins with a text; answers how many lines there are then.
  ///
  /// - Parameter lines: so many of its first lines do not count.
  @discardableResult
  private func line(
    _ beginning: String, of process: RunningCommand, after lines: Int = 0, _ location: SourceLocation = #_sourceLocation
  ) async throws -> Int {
    var written: [Substring] = []
    let isThere = await eventually("'\(beginning)': \(process.outputSoFar)\(process.errorsSoFar)", location) {
      written = process.outputSoFar.split(separator: "\n")
      return written.dropFirst(lines).contains { $0.hasPrefix(beginning) }
    }
    guard isThere else { throw ClusterFailure("no '\(beginning)'") }
    return written.count
  }

  @Test(
    .enabled(if: PageClientTests.node != nil, "needs Node 20.10 or newer in PATH: apt-get install nodejs"),
    .onlyInAll("it is about time: a dead connection is noticed by its pings"))
  func `it shows, replaces, removes and answers, notices a dead connection, and remembers over its end`() async throws {
    let article = try String(contentsOf: Self.article, encoding: .utf8)
    let client = try #require(article.firstMatch(of: /```js\n(\/\*\*(?s:.+?))```/)?.1)
    try await CarillonCommand.with { carillon in
      let up = try carillon.start(["up", "--json", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--ping", "5s"])
      let devices = try #require(try JSONValue(parsing: try await up.firstLine())["devices"]?.stringValue)
      _ = try carillon.file("client.mjs", String(client))
      let program = try carillon.file("page.mjs", Self.page)
      let state = carillon.folder.appendingPathComponent("state.json").path
      func start() throws -> RunningCommand {
        try carillon.start(["--experimental-websocket", program, devices, Self.token, state], program: try #require(Self.node))
      }
      func publish(_ arguments: [String]) async throws {
        let published = try await carillon.run(["publish", "--target", "user:ada", "--app", "com.example.shop"] + arguments)
        #expect(published.status == 0, "it said: \(published.errors)")
      }
      func events(_ type: String, _ count: Int) async throws {
        let found = try await carillon.run(["events", "--from", "beginning", "--type", type, "--limit", "\(count)", "--until-idle", "5m"])
        #expect(found.lines.count == count, "\(type): \(found.output)\(found.errors)")
      }

      let page = try start()
      try await line("connection 1", of: page)
      try await events("registered", 1)
      try await publish(["--body", "one", "--collapse-id", "order-7"])
      try await line("shown one", of: page)
      try await publish(["--body", "two", "--collapse-id", "order-7"])
      try await line("shown two", of: page)
      try await events("updated", 1)

      page.signal(SIGUSR2)
      let frozen = try await line("frozen", of: page)
      try await publish(["--body", "three", "--collapse-id", "order-8"])
      try await line("connection ", of: page, after: frozen)
      try await line("shown two,three", of: page)

      try await publish(["--operation", "remove", "--identifiers", "order-7"])
      try await line("shown three", of: page)
      try await events("removed", 1)
      try await publish(["--body", "respond"])
      try await line("shown three,respond", of: page)
      try await events("response", 1)
      try await page.stop()

      try await publish(["--body", "four"])
      let again = try start()
      try await line("shown three", of: again)
      try await line("shown three,four", of: again)
      try await events("delivered", 4)

      try await publish(["--operation", "remove", "--all"])
      try await publish(["--body", "five"])
      try await line("shown five", of: again)
      // The journal of the last requests comes a moment later.
      _ = try await carillon.answer(["audit", "--grace", "0"], "the audit finds nothing") { $0.status == 0 }
      try await up.stop()
      try await again.stop()
    }
  }
}
