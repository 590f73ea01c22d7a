import Foundation
import TestSupport
import Testing

/// Colours and bold letters.
@Suite struct TerminalTests {
  /// A terminal of the test's own.
  private final class Terminal {
    let line: FileHandle
    private let screen: Int32
    private var bytes: [UInt8] = []

    init() throws {
      screen = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC)
      // What posix_openpt, unlockpt and ptsname do, which Swift does not see.
      var (locked, number): (Int32, Int32) = (0, 0)
      try #require(screen >= 0 && ioctl(screen, 0x4004_5431, &locked) == 0 && ioctl(screen, 0x8004_5430, &number) == 0)
      let descriptor = open("/dev/pts/\(number)", O_RDWR | O_NOCTTY | O_CLOEXEC)
      try #require(descriptor >= 0)
      line = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
    }

    deinit { close(screen) }

    /// What was written to it so far.
    var text: String {
      var chunk = [UInt8](repeating: 0, count: 65_536)
      while case let count = read(screen, &chunk, chunk.count), count > 0 { bytes += chunk[..<count] }
      return String(decoding: bytes, as: UTF8.self)
    }

    func wait(for part: String) async throws {
      await eventually("'\(part)' on the terminal: \(text)") { text.contains(part) }
    }
  }

  @Test func noColorIsObeyed() async throws {
    try await CarillonCommand.with { carillon in
      let up = try carillon.start(CarillonCommand.up)
      _ = try await up.firstLine()
      var devices: [(terminal: Terminal, process: RunningCommand, isStyled: Bool)] = []
      for (number, environment, isStyled) in [
        (1, ["NO_COLOR": "1"], false), (2, ["NO_COLOR": "false"], false), (3, ["NO_COLOR": ""], true),
      ] {
        let terminal = try Terminal()
        let token = String(repeating: "\(number)", count: 64)
        let process = try carillon.start(
          ["device", "--token", token, "--app", "com.example", "--user", "ada"], environment: environment,
          streams: .init(output: terminal.line))
        devices.append((terminal, process, isStyled))
        try await terminal.wait(for: "connected")
      }
      let published = try await carillon.run(["publish", "--target", "user:ada", "--app", "com.example", "--title", "Order", "--body", "x"])
      #expect(published.status == 0, "it said: \(published.errors)")
      for (terminal, process, isStyled) in devices {
        try await terminal.wait(for: "Order")
        #expect(terminal.text.contains("\u{1B}[") == isStyled, "on the terminal: \(terminal.text)")
        try await process.stop()
      }
      try await up.stop()
    }
  }
}
