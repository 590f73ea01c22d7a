import Foundation
import HTTP
import Testing

@Suite struct OtherClientTests {
  @Test(
    .enabled(
      if: ProcessInfo.processInfo.environment["TESTS_PYTHON"] != nil,
      "TESTS_PYTHON must name a Python that has the package websockets"))
  func anotherClientUnderstandsTheServer() async throws {
    let python = try #require(ProcessInfo.processInfo.environment["TESTS_PYTHON"])
    var webSocket = ServerFixture.carillon()
    webSocket.pingMilliseconds = 100
    webSocket.pongMilliseconds = 60_000
    try await ServerFixture.with(webSocket: webSocket) { fixture, port in
      let process = Process()
      process.executableURL = URL(fileURLWithPath: python)
      process.arguments = ["-c", pythonClient, "ws://127.0.0.1:\(port)/ws"]
      let output = Pipe()
      process.standardOutput = output
      process.standardError = output
      try process.run()
      let text = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
      process.waitUntilExit()
      #expect(process.terminationStatus == 0, "\(text)")
      #expect(text.hasSuffix("done\n"))
      #expect(await fixture.wait { $0.ends == [WebSocketEnd(.peerClosed, .init(rawValue: 4321), "until later")] })
    }
  }
}

private let pythonClient = """
  import asyncio, sys, websockets

  async def main():
      async with websockets.connect(sys.argv[1], subprotocols=["carillon.v1"], compression=None) as ws:
          assert ws.subprotocol == "carillon.v1"
          for size in (0, 1, 125, 126, 65535, 65536, 70000):
              await ws.send("x" * size)
              assert await ws.recv() == "x" * size
              await ws.send(b"\\x00\\xff" * (size // 2))
              assert await ws.recv() == b"\\x00\\xff" * (size // 2)
          await ws.send(["Gr", "üß", "e 🔔"])
          assert await ws.recv() == "Grüße 🔔"
          await (await ws.ping(b"are you there"))
          # The server's pings meanwhile are answered.
          try:
              await asyncio.wait_for(ws.recv(), 0.4)
          except TimeoutError:
              pass
          await ws.send("still here")
          assert await ws.recv() == "still here"
          await ws.close(4321, "until later")
      try:
          async with websockets.connect(sys.argv[1]) as ws:
              raise SystemExit("was not refused")
      except websockets.exceptions.InvalidStatus as refused:
          assert refused.response.status_code == 400
      print("done")

  asyncio.run(main())
  """
